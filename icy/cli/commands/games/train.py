"""`icy games train`: train agents of multi-target games."""

from __future__ import annotations

from icy.cli.job_command import job_command
from icy.records.kinds import job_kind

EPILOG = """\b
Examples:
  icy games train --quick
  icy games train --world thing --channel gs --channel qt --rule-length 1,4 --seeds 3 -o games
  icy games train --rule-length 4 --distractor-kind near --distractor-kind uniform --keep-models -o games
  icy games train --world shape --world-options canvas=32 --channel qt --steps 50000
  icy games train --sender HierZero:GRU --receiver RNN1L:GRU --set learning_rate=0.001 --dry-run
  icy games train --preset mugoodman21/concept --seeds 5

\b
A row per combination of what is several; its seeds and kinds of distractors train as one stack. A training that was
interrupted, or killed, goes on where it was: run the same command again. `icy games eval FOLDER` plays what was kept
(--keep-models), and `icy metrics FOLDER` scores the languages.
"""

train_command = job_command(job_kind("games"), "train", EPILOG)
