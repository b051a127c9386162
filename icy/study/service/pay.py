"""Pay and completion codes. icy computes amounts; it does not transfer money."""

from __future__ import annotations

from icy.core.errors import StoreError

from .database import Row
from .platforms import return_address
from .play import game_of
from .studies import Study


def bonus_cents(study: Study, game: Row) -> int:
    """Return the bonus of a finished game, in cents, at most `most_bonus_cents` of the plan.

    Raises:
        StoreError: the game is not finished.
    """
    if game["state"] != "closed":
        raise StoreError("A bonus is paid only for a finished game.")
    most = study.plan.people.most_bonus_cents
    return min(most, round(game_of(game["rules_json"]).settings.bonus_cents(game["score"])))


def money(cents: int, currency: str) -> str:
    """Format an amount.

    Example:
        >>> money(305, "GBP")
        '3.05 GBP'
    """
    return f"{cents // 100}.{cents % 100:02d} {currency}"


def code_of(study: Study, outcome: str, own: str = "") -> str:
    """Return the completion code: the plan's code for the outcome, or the person's own code for "complete"."""
    return study.plan.platform.codes.get(outcome, own if outcome == "complete" else "")


def leave_address(study: Study, outcome: str, external: str = "", own: str = "") -> str:
    """Return the address to which a person returns at the end, for an outcome; "" if there is none."""
    platform, code = study.plan.platform, code_of(study, outcome, own)
    if outcome != "complete" and not code:
        return ""
    return return_address(platform.name, platform.return_to, code, external)


def outcome_of(stage: str) -> str:
    """Return the outcome for a final page (stage)."""
    return {"done": "complete", "screened": "failed_check", "withdrawn": "withdrawn"}[stage]
