"""`icy.in_context`: measure which grammars a text model learns from examples in its prompt."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from icy.config.requests import spell_out
from icy.context.learner_settings import LearnerSettings
from icy.context.settings import ContextRequest
from icy.core.progress import progress as showing
from icy.core.surroundings import standard_state

from .display import callbacks_of
from .plan import make_plan
from .progress import Watcher
from .results import ProbeResult
from .run import run_plan


@standard_state()
def in_context(
    model: str | Iterable[str],
    grammar: str | Iterable[str] = "all",
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Any,
) -> ProbeResult:
    """Measure which grammars a text model, such as a language model, learns from examples in its prompt.

    The model answers for held-out meanings after 4, 8, 16 and more examples. No weights change. Answers are saved, and
    finished replicates are kept in the folder `out`. Concat is always included, as the baseline.

    Args:
        model: URL#MODEL for a server, transformers#FOLDER, or other names of `icy list text-models`.
        grammar: names, chains or wildcards of grammars.
        watcher: callbacks that observe the run.
        progress: whether to show the progress of the run. By default it is shown live in notebooks and on terminals,
            and as a line a minute elsewhere, unless a watcher is given or the environment has ICY_PROGRESS=0.
        **options: the other fields of ContextRequest.

    Returns:
        The results of this call's replicates, asked now or on file.

    Raises:
        IcyError: invalid arguments, such as an unknown name, or a server that fails.
        KeyboardInterrupt: at Ctrl-C. Finished replicates and answers are kept.
    """
    request = ContextRequest.asked(model=model, grammar=grammar, **options)
    return run_plan(make_plan(request), callbacks_of(request, watcher, progress))


spell_out(in_context, ContextRequest, ProbeResult)


@standard_state()
def train_context_learner(out: str | Path = "learner.safetensors", **options: Any) -> Path:
    """Train a small network that learns languages from examples in its input, as the text model learner#FILE.

    It is a demonstration for `icy.in_context`. Every update has new languages of 2x4 or 3x4 meanings in either
    direction, so the network cannot learn them by heart. After an interruption, the same call continues.

    Args:
        out: file to write. A finished learner of the same settings is kept.
        **options: the fields of LearnerSettings: cell, grammar, hidden, layers, updates, lr and seed.

    Returns:
        The file.

    Raises:
        IcyError: an unknown name, a number that is not accepted, or a file that has something else.
        KeyboardInterrupt: at Ctrl-C. The last saved state is kept.
    """
    settings = LearnerSettings(**options)
    from icy.context.learner import train_learner  # imports torch

    with showing("updates") as report:
        train_learner(settings, Path(out), report)
    return Path(out)
