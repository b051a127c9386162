"""Secret Spy Codes: the human study of Icy22, for people, simulated players and models of the zoo."""

from icy.core.entry import JOB, Entry
from icy.core.registry import registry

from . import players as _players  # noqa: F401  registers them

DESCRIPTION = "Simulate players of Secret Spy Codes, and let senders of the zoo play."
registry.add(Entry(JOB, "study", f"{__name__}.simulate:STUDY", DESCRIPTION, "Icy22 section 4.3; icy", origin=__name__))
