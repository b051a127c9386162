"""`icy.train`: run any registered kind of job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from icy.config.requests import RunRequest
from icy.core.fields import described, spell_out_arguments
from icy.core.registry import registry
from icy.core.surroundings import standard_state
from icy.records.kinds import job_kind

from .display import callbacks_of
from .plan import make_plan
from .progress import Watcher
from .results import ProbeResult
from .run import run_plan


@standard_state()
def train(
    kind: str,
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    plugin: str | Path | list[str | Path] = (),  # type: ignore[assignment]
    **options: Any,
) -> ProbeResult:
    """Run a kind of job, and return the results.

    Finished replicates are kept in the folder `out`; the same call again trains only the missing replicates.

    Args:
        kind: name of a kind of job: "s2b" for agents of meta-referential games; "probe", "e2e", or a kind of a plug-in.
        watcher: callbacks that observe the run.
        progress: whether to show the progress of the run. By default it is shown live in notebooks and on terminals,
            and as a line a minute elsewhere, unless a watcher is given or the environment has ICY_PROGRESS=0.
        plugin: files that register models, cores or kinds of jobs.
        **options: arguments of the kind, with the names of its command's options (`icy s2b train --help`): core,
            learner, shots and so on; and these, which all kinds share:

    Returns:
        The results of this call's replicates, trained now or on file.

    Raises:
        IcyError: invalid arguments, such as an unknown name.
        KeyboardInterrupt: at Ctrl-C. Finished replicates are kept. If it is not caught, the script ends with a sentence
            instead of a traceback.

    Example:
        >>> import icy, tempfile
        >>> result = icy.train("s2b", most=2, updates=2, seeds=1, episodes=10, workers=1, out=tempfile.mkdtemp(),
        ...                    settings={"episodes": 4})
        >>> [(r["model"], r["grammar"], r["steps"]) for r in result.records]
        [('pairs+ppo', 'posdis', 2)]
    """
    registry.load_files(plugin)
    request = job_kind(kind).request_class().asked(**options, **({"plugin": plugin} if plugin else {}))
    return run_plan(make_plan(request), callbacks_of(request, watcher, progress))


spell_out_arguments(train, {name: said for name, said in described(RunRequest).items() if name != "plugin"}, keep=True)
