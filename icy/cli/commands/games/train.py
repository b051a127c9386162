"""`icy games train`: train agents of multi-target games."""

from __future__ import annotations

from icy.cli.session import job_command
from icy.records.kinds import job_kind

EPILOG = """\b
Examples:
  icy games train --quick
  icy games train --world thing --representation gs --representation qt --rule-length 1,4 --seeds 3 -o games
  icy games train --rule-length 4 --distractor-kind near --distractor-kind uniform --keep-models -o games
  icy games train --world shape --world-options canvas=32 --representation qt --updates 50000
  icy games train --sender HierZero:GRU --receiver RNN1L:GRU --set learning_rate=0.001 --dry-run
  icy games train --preset mugoodman21/concept --seeds 5

\b
Options with several values give one row per combination. The seeds and kinds of distractors of a row train as one
stack. After an interruption the same command resumes the training. `icy games eval FOLDER` evaluates saved agents
(--keep-models), and `icy metrics FOLDER` measures their languages.
"""

train_command = job_command(job_kind("games"), "train", EPILOG)
