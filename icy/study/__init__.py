"""Secret Spy Codes: the human study of Icy22, for people, simulated players and models of the zoo."""

from icy.core.register import register_kind_at

from . import players as _players  # noqa: F401  registers them

DESCRIPTION = "Simulate players of Secret Spy Codes, and let senders of the zoo play."
register_kind_at("study", f"{__name__}.simulate:STUDY", DESCRIPTION, "Icy22 section 4.3; icy")
