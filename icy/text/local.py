"""Models of the library transformers on this machine (an extra).

Models are loaded from a folder, as safetensors: without downloads, pickles, or code of the model.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.core.errors import InvalidSettingError, PluginError, quoted
from icy.core.machine import resolve_device

from .answers import open_thought, without_thoughts
from .interface import CUT, Answer, Question, TextSettings, Usage
from .models import TextModel

if TYPE_CHECKING:
    from torch import Tensor


class TransformersModel(TextModel):
    """A causal language model of transformers, from a folder.

    With constrained answers (any `constrain` except "none"), the decision and each token of the message are drawn only
    from the choices, by the likelihood of their text. Otherwise the model writes freely, and its answer is parsed.

    Args:
        name: the folder of the model and its tokenizer.
        settings: settings of sampling.

    Raises:
        PluginError: transformers is not installed, or the folder has no model.
    """

    def __init__(self, name: str, settings: TextSettings) -> None:
        folder = Path(name)
        if not name or not folder.is_dir():
            raise InvalidSettingError(
                f"A local model is named by its folder, as in transformers#FOLDER; {quoted(name)} is not a folder."
            )
        self.settings, self.name = settings, folder.name
        self.folder = folder.resolve()
        files = sorted(path for path in self.folder.iterdir() if path.is_file())
        self.digest = hashlib.blake2b(b"".join(map(_digest, files)), digest_size=16).hexdigest()
        self.tokenizer, self.model = _loaded(folder)

    def identity(self) -> dict[str, object]:
        """Return the folder, a hash of its files, and the sampling settings."""
        return {
            "model": str(self.folder),
            "files": self.digest,
            **self.settings.sampling,
            "constrained": self.settings.constrain != "none",
        }

    def reply(self, request: Question) -> Any:
        """Answer one question. The random numbers depend only on the question's seed."""
        import torch

        text, parts = self._prompt(request), request.parts()
        with torch.random.fork_rng(), torch.inference_mode():
            torch.manual_seed(request.seed)
            if parts and (request.candidates or self.settings.constrain != "none"):
                return request.read(self._chosen(text, parts))
            return request.read(self._written(text, request.max_tokens))

    def _prompt(self, question: Question) -> str:
        """Apply the model's chat template to a prompt, if it has one."""
        prompt = question.prompt
        said = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        if not self._is_chat():
            return "\n".join(str(one["content"]) for one in said) + question.gap
        return str(self.tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True))

    # -- free answers --------------------------------------------------------------------------------------------------

    def _written(self, text: str, max_tokens: int) -> Answer:
        read = self.tokenizer(text, return_tensors="pt", add_special_tokens=not self._is_chat()).to(self.model.device)
        length = read["input_ids"].shape[1]
        sampling = self.settings.sampling
        if sampling["temperature"] == 0:
            sampling = {name: value for name, value in sampling.items() if name == "repetition_penalty"}
        pad = self.tokenizer.pad_token_id
        whole = self.model.generate(
            **read, max_new_tokens=max_tokens, do_sample="temperature" in sampling,
            pad_token_id=self.tokenizer.eos_token_id if pad is None else pad, **sampling,
        )[0]  # fmt: skip
        written = whole[length:]
        raw, marked = (self.tokenizer.decode(written, skip_special_tokens=skip) for skip in (True, False))
        finish = CUT if len(written) >= max_tokens and int(written[-1]) != self.tokenizer.eos_token_id else "stop"
        rest = without_thoughts(open_thought(text) + marked)  # markers of thoughts may be special tokens
        for token in self.tokenizer.all_special_tokens:
            rest = rest and rest.replace(token, "")
        return Answer(raw, finish, Usage(length, len(written)), marked=rest or "")

    def _is_chat(self) -> bool:
        return bool(getattr(self.tokenizer, "chat_template", None))

    # -- constrained answers -------------------------------------------------------------------------------------------

    def _chosen(self, text: str, parts: Sequence[str | Sequence[str]]) -> Answer:
        """Write an answer of this form, with an option drawn at each place."""
        raw, logprobs = "", dict[str, float]()
        for part in parts:
            if isinstance(part, str):
                raw += part
            else:
                which, found = self._choice(text + raw, part)
                raw, logprobs = raw + part[which], logprobs or dict(zip(part, found, strict=True))
        return Answer(raw, usage=Usage(*(len(self._ids(one)) for one in (text, raw))), logprobs=logprobs)

    def _choice(self, context: str, options: Sequence[str]) -> tuple[int, list[float]]:
        """Draw an option by the likelihood of its text after a context; return its place, all log-probabilities."""
        import torch

        logprobs = torch.log_softmax(
            torch.tensor(self._likelihoods(context, options), dtype=torch.float32, device="cpu"), 0
        )
        temperature = self.settings.temperature
        if temperature == 0:
            which = int(logprobs.argmax())
        else:
            which = int(torch.multinomial(torch.softmax(logprobs / temperature, 0), 1))
        return which, logprobs.tolist()

    def _likelihoods(self, context: str, options: Sequence[str]) -> list[float]:
        """Return the log-likelihoods of the options after the context, without the tokens that all share."""
        end = "," if len(set(map(len, options))) > 1 else ""  # otherwise 1 would be at least as likely as 10
        whole = [self._ids(context + option + end) for option in options]
        shared = next(i for i, column in enumerate(zip(*whole, strict=False)) if len(set(column)) > 1)
        if all(len(one) == shared + 1 for one in whole):  # one token each: the model scores all at once
            last = self._scores(whole[0][:shared])[-1]
            return [float(last[one[-1]]) for one in whole]
        found = []
        for one in whole:
            scores = self._scores(one[:-1])[shared - 1 :]
            found.append(sum(float(step[token]) for step, token in zip(scores, one[shared:], strict=True)))
        return found

    def _scores(self, ids: list[int]) -> "Tensor":
        """Return, for each token, the log-probabilities of the next token."""
        import torch

        scores = self.model(torch.tensor([ids], dtype=torch.int64, device=self.model.device)).logits[0]
        return torch.log_softmax(scores.float(), -1)

    def _ids(self, text: str) -> list[int]:
        found: list[int] = self.tokenizer(text, add_special_tokens=not self._is_chat())["input_ids"]
        return found


def _digest(path: Path) -> bytes:
    """Return a hash of a file's name and content."""
    with path.open("rb") as file:
        return path.name.encode() + hashlib.file_digest(file, "blake2b").digest()


def _loaded(folder: Path) -> tuple[Any, Any]:
    """Load the tokenizer and the model of a folder.

    Raises:
        PluginError: transformers is not installed, or the folder has no model.
    """
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise PluginError(
            "Local text models need the library transformers: pip install 'icy-toolkit[transformers]'."
        ) from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, use_safetensors=True
        )
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().partition("\n")[0].rstrip(".")
        raise PluginError(f"The folder {folder} holds no language model as safetensors: {first}.") from error
    return tokenizer, model.to(resolve_device("auto")).eval()
