"""Answers on disk: a text model answers each request once, and an interrupted run resumes."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from icy.core.code import digest_of, parts_of, short_hash
from icy.core.errors import IncompatibleError, StoreError
from icy.core.files import require_room, write_atomically

from .interface import Answer, BudgetError, Question, ServerError, TextSettings
from .models import FunctionModel, TextModel, text_model

FORM = 1  # version of the files
OPTION = "--cache"  # the option that sets the folder
NOT_SAVED = "none"  # in place of a folder
log = logging.getLogger(__name__)
_shared: dict[tuple[str, str], TextModel] = {}  # by name and run


def keeping(model: TextModel, folder: str | Path | None, most: int | None = None) -> TextModel:
    """Wrap a model to save its answers in a folder, and to get at most a number of requests.

    Args:
        model: the model.
        folder: folder of the answers; None does not save them. Answers of scripted models are not saved.
        most: largest number of requests that the model gets; None for any number.
    """
    model = model if most is None else LimitedModel(model, most)
    return model if folder is None or not model.worth_keeping else CachedModel(model, folder)


def shared_model(name: str, settings: TextSettings, folder: str, most: int | None, run: str) -> TextModel:
    """Return the text model of a run. All calls of a process for a run get the same one, which counts its requests.

    Args:
        name: name of the text model.
        settings: settings of sampling, and of requests to a server.
        folder: folder of the answers; NOT_SAVED does not save them.
        most: largest number of requests that the model gets in the run.
        run: any text that distinguishes runs.
    """
    if any(run != other for _, other in _shared):
        _shared.clear()  # local models need much memory
    if (name, run) not in _shared:
        _shared[name, run] = keeping(text_model(name, settings), None if folder == NOT_SAVED else folder, most)
    return _shared[name, run]


class _Wrapper(TextModel):
    """A text model that asks another one."""

    def __init__(self, model: TextModel) -> None:
        self.model, self.name = model, model.name
        self.privileged, self.worth_keeping, self.remote = model.privileged, model.worth_keeping, model.remote
        self.reads_text, self.registration = model.reads_text, model.registration
        self.note_answers = model.note_answers  # type: ignore[method-assign]

    def begin(self, seat: Any) -> None:
        """Begin a batch of questions; see TextModel."""
        self.model.begin(seat)

    @property
    def retried(self) -> int:  # type: ignore[override]
        """Number of failed tries that the model repeated."""
        return self.model.retried

    def identity(self) -> dict[str, object]:
        """Return the model's identity."""
        return self.model.identity()

    def description(self) -> dict[str, object]:
        """Return the server's description of the model."""
        return self.model.description()


class LimitedModel(_Wrapper):
    """A text model that gets at most a number of requests.

    Args:
        model: the model that answers.
        most: the number.
    """

    def __init__(self, model: TextModel, most: int) -> None:
        super().__init__(model)
        self.most = self.left = most

    def answer(self, requests: Sequence[Question]) -> Iterator[tuple[int, Any]]:
        """Yield the model's replies.

        Raises:
            BudgetError: there are more requests than are left; replies to the others are yielded first.
        """
        allowed = requests[: self.left]
        self.left -= len(allowed)
        yield from self.model.answer(allowed) if allowed else ()
        if len(allowed) < len(requests):
            raise BudgetError(f"{self.name} got {self.most:,} requests, the largest number (max_requests).")


class CachedModel(_Wrapper):
    """A text model that saves its answers: one file per answer, named by a hash of model, settings and request.

    Files contain the answer and its count of tokens, but not the prompt or a key. Invalid answers are saved too, and
    not requested again.

    A server may change its model while its address remains. So each batch of episodes first sends one request. Its
    reply names the model, and saved answers are used only if the same model (and fingerprint) gave them.

    Args:
        model: the model that answers.
        folder: folder of the answers.

    Raises:
        IncompatibleError: the model is privileged, so its answers do not depend only on the request.
        StoreError: the folder cannot be written.
    """

    def __init__(self, model: TextModel, folder: str | Path) -> None:
        super().__init__(model)
        self.folder = Path(folder)
        if model.privileged:
            raise IncompatibleError(
                f"Answers of {model.name} do not depend only on the prompts, so they cannot be saved; use no cache."
            )
        try:
            require_room(self.folder)
        except StoreError as error:
            raise StoreError(str(error).replace("--out", OPTION)) from error
        self._identity = model.identity()
        self._code = dict(model.registration) or _code(model.model if isinstance(model, LimitedModel) else model)
        self._served: list[dict[str, object]] = []  # reports of the server's present model, the last one last
        self._asks, self._warned = model.remote, set[str]()
        self._description: dict[str, object] = {}

    def begin(self, seat: Any) -> None:
        """Begin a batch of questions; see TextModel."""
        self.model.begin(seat)
        self._asks = self.model.remote

    def identity(self) -> dict[str, object]:
        """Return the model's identity, as it was at the start."""
        return self._identity

    def answer(self, requests: Sequence[Question]) -> Iterator[tuple[int, Any]]:
        """Yield the saved replies, then the model's replies, which are saved first."""
        missing: list[int] = []
        try:
            if asks := self._asks and bool(requests):
                self._description, self._served, self._asks = self.model.description(), [], False
                for _, reply in self.model.answer(requests[:1]):
                    yield 0, self._taken(requests[0], reply)
            for place, request in list(enumerate(requests))[asks:]:
                if (found := self._found(request)) is None:
                    missing.append(place)
                else:
                    yield place, found
            for which, reply in self.model.answer([requests[place] for place in missing]):
                yield missing[which], self._taken(requests[missing[which]], reply)
            self.model.note_answers()
        except ServerError as error:
            rest = f"Earlier answers are saved in {self.folder}: run the same command again to continue."
            raise type(error)(f"{error} {rest}") from None

    def path(self, request: Question, served: Mapping[str, object] | None = None) -> Path:
        """Return the file of the answer to a request.

        Args:
            request: the request.
            served: the server's report of its model; by default the last report.
        """
        last = self._served[-1] if self._served else self._description
        facts = {"served": last if served is None else served, "registration": self._code}
        whole = {
            "form": FORM,
            **self._identity,
            "request": request.asked(),
            **{name: fact for name, fact in facts.items() if fact},
        }
        key = short_hash(json.dumps(whole, sort_keys=True, default=str), 16)
        return self.folder / key[:2] / f"{key}.json"

    def _taken(self, request: Question, reply: Any) -> Any:
        """Save a reply of the model, and return it; but prefer an answer that the same model gave before."""
        if self.model.remote:
            self._note_model(reply)
            if (before := self._found(request)) is not None:
                if not any(self._served) and before.raw != reply.raw:
                    self._warn("%s answers a saved request differently now, so its model may have changed.")
                return before
        data = {name: getattr(reply, name) for name in reply.SAVED}
        data |= {} if reply.finish is None else {"finish": reply.finish}
        write_atomically(self.path(request), json.dumps(data).encode(), OPTION)
        return reply

    def _note_model(self, reply: Any) -> None:
        """Note which model answered, and warn if it is unknown or another model than before."""
        facts = {"model": reply.model, "fingerprint": reply.fingerprint}
        report = {name: fact for name, fact in facts.items() if fact and fact != self._identity.get("model")}
        served = self._description | report
        if not any(facts.values()) and (self._served or not reply.raw):  # such as a refusal by a content filter
            return
        if self._served and served.get("model") != self._served[-1].get("model"):
            before, now = (one.get("model", self.name) for one in (self._served[-1], served))
            self._warn("%s answered first as the model %s and then as %s, so tables mix their answers.", before, now)
            self._served.clear()
        if not served:
            self._warn(
                "%s does not report which model answers: choose another --cache, or save no answers, after you change "
                "its model, because icy cannot distinguish saved answers of the two models."
            )
        self._served = [one for one in self._served if one != served] + [served]

    def _warn(self, sentence: str, *names: object) -> None:
        """Warn once about the model."""
        if sentence not in self._warned:
            self._warned.add(sentence)
            log.warning(sentence, self.name, *names)

    def _found(self, request: Question) -> Any | None:
        """Return the saved answer of the present model; None if it does not exist or cannot be read."""
        found = (
            self._read(request, self.path(request, served)) for served in self._served[::-1] or [self._description]
        )
        return next((one for one in found if one is not None), None)

    def _read(self, request: Question, path: Path) -> Any:
        """Return the reply in a file; None if it does not exist or cannot be read."""
        try:
            data = json.loads(path.read_bytes())
            # A text is read again, since an earlier version of icy may have read it differently.
            return request.read(Answer.restored(data), None if self.model.reads_text else data)
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None


def _code(model: TextModel) -> dict[str, object]:
    """Return the digest of a user's model that is not registered; {} for icy's models."""
    code: Any = model.function if isinstance(model, FunctionModel) else type(model)
    if str(getattr(code, "__module__", "")).partition(".")[0] == "icy":
        return {}
    own = type(model).identity is not TextModel.identity  # it names the settings that matter
    return {"code": digest_of(parts_of(code if own or isinstance(model, FunctionModel) else model))}
