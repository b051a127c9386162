"""`icy s2b train`: train agents of meta-referential games."""

from __future__ import annotations

from icy.cli.commands.job import job_command
from icy.records.kinds import job_kind

EPILOG = """\b
Examples:
  icy s2b train --quick
  icy s2b train --shots 1,2,4 --samples 1,4,16 --most 5 --seeds 3 -o agents
  icy s2b train --core joint --learner supervised --learner ppo --deaf
  icy s2b train --learner pair --most 3 --keep-models -o pairs
  icy s2b train --set learning_rate=0.002 --option heads=4 --game query=tss --dry-run

\b
A row per combination of what is several. A training that was interrupted, or killed, goes on where it was: run the same
command again. `icy s2b eval --listener FOLDER` plays what was kept (--keep-models).
"""

train_command = job_command(job_kind("s2b"), "train", EPILOG)
