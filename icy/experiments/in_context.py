"""`icy.in_context`: measure which grammars a text model learns from examples in its prompt."""

from collections.abc import Iterable
from typing import Any

from icy.config.requests import spell_out
from icy.context.settings import ContextRequest
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
