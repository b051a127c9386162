"""A small network that learns languages from examples in its input: a demonstration that needs no server.

It is meta-trained: every update has new languages, so no language can be learned by heart, and the loss is that of all
examples after the earlier ones. No weights change when it answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from icy.core.errors import IncompatibleError, PluginError, StoreError
from icy.core.files import write_atomically
from icy.core.progress import Report
from icy.core.registry import registry
from icy.core.streams import stream, stream_key
from icy.grammars import expand_grammars, make_language
from icy.languages.meanings import MeaningSpace
from icy.models.cells import Recurrent
from icy.text.interface import Answer, Question, TextSettings
from icy.text.models import TextModel
from icy.training.weights import card_of, pack_weights, unpack_weights

from .learner_settings import HEADS, ROLES, TRANSFORMER, LearnerSettings
from .prompts import LABELS, Rows, Sheet, Shown

SPACES = ("2x4", "3x4")  # of the languages in training
WORD_LENGTHS = (2, 4)
VOCAB_SIZE = 4
ATTRIBUTES, VALUES, LENGTH = 3, 4, 12  # the largest sizes in training
MOST = 16  # examples of a language in training
BATCH = 16  # languages per update
WARM_UP = 100  # updates until the largest learning rate
FIRST_SEED = 2**40  # seeds of languages in training are larger, so that they differ from all seeds of users
SAVE_EVERY = 100  # updates between two saved files
START = 3.0  # preference of heads at the start
CARD = "learner"  # name of the settings in the card of a file
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # state of the optimizer, by parameter
FILE = Path(__file__).with_name("learner.safetensors")  # the learner that comes with icy


# -- the network -------------------------------------------------------------------------------------------------------


class Steps(NamedTuple):
    """Input of a network: for each example, a step per place of its output, and a first step.

    Attributes:
        inputs: the example's input, shown at each step [batch, step, place].
        before: the output at the place before, 0 at the first step, otherwise one more than the symbol [batch, step].
        places: number of each step in its example [step].
        examples: number of the example of each step [step].
    """

    inputs: Tensor
    before: Tensor
    places: Tensor
    examples: Tensor

    @classmethod
    def of(cls, inputs: Tensor, outputs: Tensor, first: int = 0) -> Steps:
        """Return the steps of examples, inputs [batch, example, place] and outputs [batch, example, place].

        Args:
            inputs: the inputs.
            outputs: the outputs, or their beginnings.
            first: number of the first example.
        """
        count, length = outputs.shape[1], outputs.shape[2] + 1
        before = nn.functional.pad(outputs + 1, (1, 0))
        shown = inputs.unsqueeze(2).expand(-1, -1, length, -1).flatten(1, 2)
        examples = torch.arange(first, first + count, device=inputs.device).repeat_interleave(length)
        places = torch.arange(length, device=inputs.device).repeat(count)
        return cls(shown, before.flatten(1), places, examples)


class Attention(nn.Module):
    """A layer of a transformer. Steps have no positions but the one in their example, so any number can be read.

    Each head has learned preferences for the steps of the same example, and for steps by their place relative to the
    own one. At first, heads prefer earlier examples that are like the own one, and there the step that has the symbol
    to predict: without this start, a learner was near chance after 200 updates.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.project, self.combine = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.feed = nn.Sequential(nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden))
        self.preferences = nn.Parameter(torch.zeros(HEADS, 2, 2 * LENGTH + 1))  # same example or not; by offset
        with torch.no_grad():
            self.preferences[:, 0, LENGTH + 1] = START
            queries, keys, _ = self.project.weight.chunk(3)
            keys.copy_(queries.mul_(math.sqrt(3)))

    def forward(self, x: Tensor, relation: Tensor, past: Sequence[Tensor] | None) -> tuple[Tensor, Any]:
        """Return the outputs [batch, step, hidden], and the keys and values of all steps.

        Args:
            x: the inputs [batch, step, hidden].
            relation: the relation of each step to all steps, a place in `preferences`; -1 if it is later.
            past: keys and values of earlier steps.
        """
        rows = self.project(self.first(x)).unflatten(-1, (3 * HEADS, -1)).transpose(1, 2)
        query, key, value = rows.chunk(3, 1)
        if past is not None:
            key, value = (
                torch.cat([old.expand(len(x), -1, -1, -1), new], 2) for old, new in zip(past, (key, value), strict=True)
            )
        biases = nn.functional.pad(self.preferences.flatten(1), (0, 1), value=-math.inf)  # -1 is the last one
        mask = biases[:, relation]
        scores = query @ key.mT / math.sqrt(query.shape[-1]) + mask
        found = torch.softmax(scores, -1) @ value
        x = x + self.combine(found.transpose(1, 2).flatten(2))
        return x + self.feed(self.second(x)), (key, value)


class Learner(nn.Module):
    """A network that reads examples step by step, and gives the scores of the next symbol.

    Args:
        settings: how it is made. The weights are drawn from torch's generator.
    """

    def __init__(self, settings: LearnerSettings) -> None:
        super().__init__()
        self.settings, hidden = settings, settings.hidden
        self.inputs = nn.ModuleDict(
            {"sender": nn.Embedding(ATTRIBUTES * VALUES, hidden), "receiver": nn.Embedding(LENGTH * VOCAB_SIZE, hidden)}
        )
        self.places = nn.ModuleDict(
            {"sender": nn.Embedding(LENGTH + 1, hidden), "receiver": nn.Embedding(ATTRIBUTES + 1, hidden)}
        )
        self.before = nn.ModuleDict(
            {"sender": nn.Embedding(VOCAB_SIZE + 1, hidden), "receiver": nn.Embedding(VALUES + 1, hidden)}
        )
        self.layers: nn.ModuleList | None = None
        self.cells: Recurrent | None = None
        if settings.cell == TRANSFORMER:
            self.layers = nn.ModuleList(Attention(hidden) for _ in range(settings.layers))
        else:
            self.cells = Recurrent(registry.get(settings.cell, "cell").create, hidden, settings.layers)
        self.norm = nn.LayerNorm(hidden)
        self.scores = nn.Linear(hidden, max(VOCAB_SIZE, VALUES))

    def forward(self, role: str, steps: Steps, past: Any = None) -> tuple[Tensor, Any]:
        """Return the scores of the next symbol after each step [batch, step, symbol], and the state to continue from.

        Args:
            role: "sender" or "receiver".
            steps: the steps.
            past: the state after earlier steps, and the numbers of their examples.
        """
        width = VALUES if role == "sender" else VOCAB_SIZE
        symbols = steps.inputs + width * torch.arange(steps.inputs.shape[-1], device=steps.inputs.device)
        x = self.inputs[role](symbols).sum(2) + self.places[role](steps.places) + self.before[role](steps.before)
        x, kept = self._attended(x, steps, past) if self.layers is not None else self._run(x, past)
        return self.scores(self.norm(x)), kept

    def _attended(self, x: Tensor, steps: Steps, past: Any) -> tuple[Tensor, Any]:
        own = torch.stack([steps.examples, steps.places], 1)
        before, rows = past or (own[:0], [None] * self.settings.layers)
        every = torch.cat([before, own])
        same, offset = (every[None] - own[:, None]).unbind(-1)
        relation = (same == 0) * (2 * LENGTH + 1) + offset + LENGTH
        relation[torch.ones_like(relation).triu(len(before) + 1) == 1] = -1
        kept = []
        for layer, row in zip(self.layers or (), rows, strict=True):
            x, both = layer(x, relation, row)
            kept.append(both)
        return x, (every, kept)

    def _run(self, x: Tensor, states: Any) -> tuple[Tensor, Any]:
        assert self.cells is not None
        x = x.transpose(0, 1)  # [step, batch, hidden]
        if states is None:
            states = self.cells.start(torch.zeros_like(x[0]))
        else:
            states = [tuple(part.expand(x.shape[1], -1) for part in state) for state in states]
        gates, outputs = self.cells.first.project(x), []
        for gate in gates.unbind(0):
            states = self.cells.step(gate, states)
            outputs.append(states[-1][0])
        return torch.stack(outputs, 1), states


# -- training ----------------------------------------------------------------------------------------------------------


def languages_of(settings: LearnerSettings, update: int) -> tuple[str, Tensor, Tensor]:
    """Return the direction, and the inputs and outputs of the examples of an update [batch, example, place].

    Everything is drawn: sizes, direction, grammars, words, order of attributes, and examples with their order.
    """
    rng = stream(settings.seed, "context learner", update)
    role, space = str(rng.choice(ROLES)), MeaningSpace.of(str(rng.choice(SPACES)))
    word_length, names = int(rng.choice(WORD_LENGTHS)), expand_grammars(settings.grammar, role)
    pairs = []
    for seed in rng.integers(FIRST_SEED, 2 * FIRST_SEED, size=BATCH).tolist():
        language = make_language(str(rng.choice(names)), space, VOCAB_SIZE, word_length, seed)
        chosen = rng.permutation(space.size)[:MOST]
        meanings = language.meanings[chosen][:, rng.permutation(space.attributes)]
        pairs.append((meanings, language.messages[chosen])[:: 1 if role == "sender" else -1])
    inputs, outputs = (torch.from_numpy(np.stack(rows).astype(np.int64)) for rows in zip(*pairs, strict=True))
    return role, inputs, outputs


def train_learner(settings: LearnerSettings, file: Path, report: Report) -> Learner:
    """Train a learner; continue if the file has an unfinished one of the same settings.

    Args:
        settings: how it is made.
        file: file of the learner, written again after every SAVE_EVERY updates.
        report: callback for the number of finished updates and of all.

    Raises:
        StoreError: the file has something else, or cannot be written.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_key(settings.seed, "context learner"))
        learner = Learner(settings)
    optimizer = torch.optim.AdamW(learner.parameters(), lr=settings.lr)
    done = 0
    if file.exists():
        there, done, moments = load_learner(file)
        if there.settings != settings:
            raise StoreError(f"{file} has a learner with other settings: {there.settings}. Choose another file.")
        learner.load_state_dict(there.state_dict())
        for name, weights in learner.named_parameters():
            if name in moments:  # otherwise it had no gradient yet, as it belongs to one direction
                optimizer.state[weights] = moments[name]
    for update in range(done, settings.updates):
        role, inputs, outputs = languages_of(settings, update)
        scores, _ = learner(role, Steps.of(inputs, outputs))
        scores = scores.unflatten(1, (inputs.shape[1], -1))[:, :, :-1]
        loss = nn.functional.cross_entropy(scores.flatten(0, 2), outputs.flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
        cooling = 0.5 + 0.5 * math.cos(math.pi * update / settings.updates)
        optimizer.param_groups[0]["lr"] = settings.lr * min(1.0, (update + 1) / WARM_UP) * cooling
        optimizer.step()
        report(update + 1, settings.updates)
        if (update + 1) % SAVE_EVERY == 0 or update + 1 == settings.updates:
            _save(learner, optimizer, update + 1, file)
    return learner


def _save(learner: Learner, optimizer: torch.optim.Optimizer, done: int, file: Path) -> None:
    """Write a learner; with the optimizer's moments if it is not finished."""
    tensors = learner.state_dict()
    if done < learner.settings.updates:
        for name, weights in learner.named_parameters():
            state = optimizer.state[weights]
            tensors |= {f"{moment}/{name}": state[moment] for moment in MOMENTS if moment in state}
    write_atomically(file, pack_weights(tensors, {CARD: asdict(learner.settings), "updates": done}))


def load_learner(file: Path) -> tuple[Learner, int, dict[str, dict[str, Tensor]]]:
    """Return the learner in a file, its number of updates, and the moments of its optimizer by parameter.

    Raises:
        StoreError: the file cannot be read, or has something else.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror or error}.") from error
    try:
        card, tensors = card_of(content), unpack_weights(content)
        with torch.random.fork_rng(devices=[]):
            learner = Learner(LearnerSettings(**card[CARD]))
        learner.load_state_dict({name: value for name, value in tensors.items() if "/" not in name})
        done = int(card["updates"])
    except (StoreError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise StoreError(f"{file} has no learner of `icy learner`, or is damaged.") from error
    moments: dict[str, dict[str, Tensor]] = {}
    for moment, slash, name in (key.partition("/") for key in tensors):
        if slash:
            moments.setdefault(name, {})[moment] = tensors[f"{moment}/{name}"]
    return learner.eval(), done, moments


# -- answers -----------------------------------------------------------------------------------------------------------


class LearnerModel(TextModel):
    """A learner as a text model; it reads the examples as data, and no text.

    Args:
        name: file of the learner; "" for the one that comes with icy.
        settings: settings of sampling; only the temperature counts.

    Raises:
        StoreError: the file cannot be read, or has something else.
    """

    worth_keeping = False  # answers are computed faster than they are read

    def __init__(self, name: str, settings: TextSettings) -> None:
        self.learner, _, _ = load_learner(Path(name) if name else FILE)
        self.temperature = settings.temperature
        self._shown: Shown | None = None
        self._past: Any = None

    def answer(self, requests: Sequence[Question]) -> Iterator[tuple[int, Any]]:
        """Answer questions of `icy context`; questions with the same examples are answered at once.

        Raises:
            PluginError: a question of another part of icy.
            IncompatibleError: a language with larger sizes than those in training.
        """
        groups: dict[Any, list[int]] = {}
        for place, request in enumerate(requests):
            shown = request.data
            if not isinstance(shown, Shown):
                raise PluginError("The text model 'learner' answers only the questions of `icy context`.")
            same = id(shown.inputs), id(shown.outputs), len(shown.begun), bool(request.candidates)
            groups.setdefault(same, []).append(place)
        with torch.inference_mode():
            for places in groups.values():
                some = [requests[place] for place in places]
                for place, answer in zip(places, self._answers(some), strict=True):
                    yield place, requests[place].read(answer)

    def _answers(self, requests: Sequence[Question]) -> Iterator[Answer]:
        """Yield the answers to questions that share their examples."""
        first, sizes = requests[0].data, [len(request.data.queries) for request in requests]
        sheet, past, number = first.sheet, self._read(first), len(first.inputs)
        queries = torch.from_numpy(np.concatenate([request.data.queries for request in requests]))[:, None]
        begun = [[*request.data.begun] for request in requests for _ in request.data.queries]
        steps = Steps.of(queries, torch.tensor(begun, dtype=torch.int64, device="cpu")[:, None], number)
        written: list[Rows] = []
        for place, options in list(enumerate(sheet.options))[len(first.begun) :]:
            scores, past = self.learner(sheet.role, steps, past)
            logprobs = torch.log_softmax(scores[:, -1, : len(options)], -1).numpy()
            noise = [
                self._noise(request, place, (size, len(options))) for request, size in zip(requests, sizes, strict=True)
            ]
            chosen = (logprobs + np.concatenate(noise)).argmax(1)
            if requests[0].candidates:
                for row, which in zip(logprobs.tolist(), chosen.tolist(), strict=True):
                    yield Answer(options[which], logprobs=dict(zip(options, row, strict=True)))
                return
            written.append(chosen)
            before = torch.from_numpy(chosen)[:, None] + 1
            places, numbers = torch.tensor([[place + 1], [number]], dtype=torch.int64, device="cpu")
            steps = Steps(queries, before, places, numbers)
        label = LABELS[sheet.role][1]
        for rows in np.split(np.stack(written, 1), np.cumsum(sizes)[:-1]):
            yield Answer("\n".join(sheet.text(label, row) for row in rows))

    def _noise(self, request: Question, place: int, shape: tuple[int, int]) -> Any:
        """Return what makes the largest log-probability a draw (Gumbel); zeros at temperature 0."""
        return self.temperature * stream(request.seed, "in-context learner", place).gumbel(size=shape)

    def _read(self, shown: Shown) -> Any:
        """Return the state of the learner after the examples, which many questions share."""
        last = self._shown
        if last is None or shown.inputs is not last.inputs or shown.outputs is not last.outputs:
            _require_sizes(shown.sheet)
            inputs, outputs = (torch.from_numpy(rows.astype("int64"))[None] for rows in (shown.inputs, shown.outputs))
            _, self._past = self.learner(shown.sheet.role, Steps.of(inputs, outputs))
            self._shown = shown
        return self._past


def _require_sizes(sheet: Sheet) -> None:
    """Raise IncompatibleError if a language is larger than those in training."""
    sizes = sheet.space.size_of_each
    if len(sizes) > ATTRIBUTES or max(sizes) > VALUES or sheet.vocab_size > VOCAB_SIZE or sheet.length > LENGTH:
        raise IncompatibleError(
            f"The text model 'learner' reads at most {ATTRIBUTES} attributes of {VALUES} values, {VOCAB_SIZE} tokens "
            f"and messages of {LENGTH}; not {sheet.space}, {sheet.vocab_size} tokens and messages of {sheet.length}."
        )
