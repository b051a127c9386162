"""Answers on disk: a text model answers each request once, and an interrupted run resumes."""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from icy.core.errors import IncompatibleError, StoreError
from icy.core.files import require_room, write_atomically
from icy.s2b.players.interface import Seat

from .completion import is_count
from .http import ServerError
from .prompt import parse
from .requests import CUT, TextReply, TextRequest, Usage
from .text_model import TextModel

FORM = 1  # version of the files


def keeping(model: TextModel, folder: str | Path | None) -> TextModel:
    """Wrap a model to save its answers in a folder, unless the folder is None or saving is not useful."""
    return model if folder is None or not model.worth_keeping else CachedModel(model, folder)


class CachedModel(TextModel):
    """A text model that saves its answers: one file per answer, named by a hash of model, settings and request.

    Files contain the answer and its count of tokens, but not the prompt or a key. Invalid answers are saved too, and
    not requested again.

    Args:
        model: the model that answers.
        folder: folder of the answers.

    Raises:
        IncompatibleError: the model is privileged, so its answers do not depend only on the request.
        StoreError: the folder cannot be written.
    """

    def __init__(self, model: TextModel, folder: str | Path) -> None:
        self.model, self.folder = model, Path(folder)
        self.name = model.name
        if model.privileged:
            raise IncompatibleError(
                f"Answers of {model.name} do not depend only on the prompts, so they cannot be saved; use no cache."
            )
        with _by_its_option():
            require_room(self.folder)
        self._identity = model.identity()

    def begin(self, seat: Seat) -> None:
        """Begin a batch of episodes; see TextModel."""
        self.model.begin(seat)

    @property
    def retried(self) -> int:  # type: ignore[override]
        """Number of failed tries that the model repeated."""
        return self.model.retried

    def identity(self) -> dict[str, object]:
        """Return the model's identity."""
        return self._identity

    def reply(self, request: TextRequest) -> TextReply:
        """Return the saved answer to a request, or ask the model."""
        ((_, found),) = self.answer([request])
        return found

    def answer(self, requests: Sequence[TextRequest]) -> Iterator[tuple[int, TextReply]]:
        """Yield the saved replies, then the model's replies, which are saved first."""
        missing: list[int] = []
        for place, request in enumerate(requests):
            if (found := self._found(request)) is None:
                missing.append(place)
            else:
                yield place, found
        try:
            for which, reply in self.model.answer([requests[place] for place in missing]):
                self._keep(requests[missing[which]], reply)
                yield missing[which], reply
        except ServerError as error:
            rest = f"Earlier answers are saved in {self.folder}: run the same command again to continue."
            raise ServerError(f"{error} {rest}") from None

    def path(self, request: TextRequest) -> Path:
        """Return the file of the answer to a request."""
        asked = {"prompt": request.prompt, "choices": request.choices, "max_tokens": request.max_tokens}
        whole = {"form": FORM, **self._identity, "request": {**asked, "seed": request.seed}}
        key = hashlib.blake2b(json.dumps(whole, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()
        return self.folder / key[:2] / f"{key}.json"

    def _found(self, request: TextRequest) -> TextReply | None:
        """Return the saved answer; None if it does not exist or cannot be read."""
        try:
            data = json.loads(self.path(request).read_bytes())
            usage = None if data["usage"] is None else Usage(*data["usage"])
            raw, decision, message = str(data["raw"]), data["decision"], data["message"]
            finish = None if data.get("finish") is None else str(data["finish"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None
        if usage is not None and not all(map(is_count, usage)):
            return None
        if self.model.reads_text:  # an earlier version of icy may have read it differently
            read = parse(raw, cut=finish == CUT)
            decision, message = read.decision, read.message
        return TextReply(decision, message, raw, usage=usage, cached=True, finish=finish)

    def _keep(self, request: TextRequest, reply: TextReply) -> None:
        data = {"raw": reply.raw, "decision": reply.decision, "message": reply.message, "usage": reply.usage}
        data |= {} if reply.finish is None else {"finish": reply.finish}
        with _by_its_option():
            write_atomically(self.path(request), json.dumps(data).encode())


@contextlib.contextmanager
def _by_its_option() -> Iterator[None]:
    """Context manager in which errors name --cache, the option that sets the folder."""
    try:
        yield
    except StoreError as error:
        raise StoreError(str(error).replace("--out", "--cache")) from error
