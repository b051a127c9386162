"""`icy.train`: run any registered kind of job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from icy.config.specs import RunSpec
from icy.core.docs import described, spell_out_arguments
from icy.core.surroundings import standard_state
from icy.records.kinds import job_kind

from .display import with_progress
from .plan import load_plugins, make_plan
from .results import ProbeResult
from .run import run_plan
from .trackers.make import watching
from .watcher import Watcher


@standard_state()
def train(
    kind: str,
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    plugin: str | Path | list[str | Path] = (),  # type: ignore[assignment]
    **options: Any,
) -> ProbeResult:
    """Train what a kind of job trains, and return the results.

    What has finished is kept in the folder `out`; the same call again trains only what is missing.

    Args:
        kind: name of a kind of job: "s2b", agents of meta-referential games; "probe", "e2e", or one of a plug-in.
        watcher: callbacks that observe the run.
        progress: whether its progress is shown; by default in notebooks and on terminals, and a line a minute
            elsewhere, unless there is a watcher or the environment has ICY_PROGRESS=0.
        plugin: files that register models, cores or kinds of jobs.
        **options: arguments of the kind, as its command has them (`icy s2b train --help`): core, learner, shots and so
            on; and these, which all kinds share:

    Returns:
        The results of this call's trainings, made now or on file.

    Raises:
        IcyError: an unknown name, a value that cannot be, and the like.
        KeyboardInterrupt: at Ctrl-C. Finished replicates are kept; uncaught, it ends a script with a sentence.

    Example:
        >>> import icy, tempfile
        >>> result = icy.train("s2b", most=2, updates=2, seeds=1, episodes=10, workers=1, out=tempfile.mkdtemp(),
        ...                    settings={"episodes": 4})
        >>> [(r["model"], r["grammar"], r["steps"]) for r in result.records]
        [('pairs+ppo', 'posdis', 2)]
    """
    load_plugins(plugin)
    spec = job_kind(kind).load_spec().asked(**options, **({"plugin": plugin} if plugin else {}))
    return run_plan(make_plan(spec), watching(with_progress(watcher, progress), spec.track, spec.out))


spell_out_arguments(train, {name: said for name, said in described(RunSpec).items() if name != "plugin"}, keep=True)
