"""`icy study simulate`: let simulated players and senders of the zoo play."""

from __future__ import annotations

from icy.cli.session import job_command
from icy.records.kinds import job_kind

EPILOG = """\b
Examples:
  icy study simulate --quick
  icy study simulate --player composer --player memoriser --player HierZero:GRU -o games
  icy study simulate --player FC2L --protocol converged --protocol yoked --dataset eng -o games
  icy study simulate --player composer --preset published --game held_out_feedback=verdict
  icy study simulate --player FC2L --protocol yoked --yoked-to games.jsonl

\b
One row per player, dataset, protocol and preset; one game per instance. `icy list study-players` describes simulated
players; any sender of `icy list models` can play too. Finished games are not played again.
"""

simulate_command = job_command(job_kind("study"), "simulate", EPILOG)
