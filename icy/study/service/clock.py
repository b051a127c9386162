"""Times in UTC with milliseconds, in the format of the database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Format a time as text that sorts chronologically.

    Example:
        >>> stamp(datetime(2026, 11, 23, 3, 7, 56, 123456, UTC))
        '2026-11-23T03:07:56.123Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(text: str) -> datetime:
    """Parse a timestamp from `stamp`."""
    return datetime.fromisoformat(text)


def readable(text: str) -> str:
    """Format a timestamp from `stamp` for readers.

    Example:
        >>> readable("2026-11-23T03:07:56.123Z")
        '2026-11-23 03:07 UTC'
    """
    return f"{moment(text):%Y-%m-%d %H:%M} UTC"


def before(now: datetime, *, minutes: float = 0, days: float = 0) -> str:
    """Return the timestamp of a time before `now`."""
    return stamp(now - timedelta(minutes=minutes, days=days))


def minutes_between(first: str, last: str) -> float:
    """Return the minutes between two timestamps.

    Example:
        >>> minutes_between("2026-11-23T03:07:00.000Z", "2026-11-23T03:08:30.000Z")
        1.5
    """
    return (moment(last) - moment(first)).total_seconds() / 60
