"""A learner that trains the agents of games by native cores: perception, messages, scores, gradients and optimizer."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core.errors import IncompatibleError
from icy.core.representations import LearnedCodebook, Representation
from icy.core.representations.codes import attracted
from icy.models.base import time_last
from icy.models.layers import flat_one_hot
from icy.models.native import calls
from icy.models.native.program import Program, chunk_for
from icy.training.native import NativeStack, Part, require_supported

from .model import GameModel, Played
from .worlds.world import World

STEP = 8  # rows that a product computes at once


class Talking(nn.Module):
    """A sender, a representation and a receiver.

    Args:
        model: the agents.
    """

    def __init__(self, model: GameModel) -> None:
        super().__init__()
        self.sender, self.receiver, self.channel = model.sender, model.receiver, model.channel

    def forward(self, described: Float[Tensor, "batch 1 size"]) -> Float[Tensor, "batch 1 wanted"]:
        """Return the vector that the receiver compares with candidates, for the sender's embedding of each turn."""
        scores = self.sender(described).unbind(-2)
        if self.training and isinstance(self.channel, LearnedCodebook):
            how = self.channel.codes, self.channel.commitment, len(scores)
            scores = tuple(attracted(one, *how) for one in scores)
        steps = [self.channel.feed_back(one, step, self.training) for step, one in enumerate(scores)]
        wanted: Tensor = self.receiver(time_last(steps))
        return wanted


class Seeing(Part):
    """A perception whose inputs are numbers of concepts.

    Args:
        name: name of the perception among the agents.
        module: the perception.
        block: size of a block of the world.
    """

    def __init__(self, name: str, module: nn.Module, block: int) -> None:
        super().__init__(name, module)
        self._block = block

    def forward(self, inputs: Tensor) -> Float[Tensor, "batch 1 size"]:
        """Return the embedding of each object."""
        return super().forward(flat_one_hot(inputs, self._block, torch.float32)).unsqueeze(-2)


class NativeGame(NativeStack):
    """The agents of R replicates, trained one after another by compiled code.

    Args:
        models: agents of each replicate, all of one architecture.
        settings: optimizer, learning rate, batch size and clipping.
        device: the CPU.
        world: world of the objects.

    Raises:
        IncompatibleError: compiled code is missing, or does not support the world or a part of the agents.

    Attributes:
        whole: whether the words of a turn depend on the other turns of its batch.
    """

    def __init__(
        self, models: Sequence[GameModel], settings: TrainingSettings, device: torch.device, world: World
    ) -> None:
        model = models[0]
        super().__init__(model, settings, device)
        self._model, self._game, self._world = model, model.settings, world
        self._concepts = torch.tensor(world.first_concepts, dtype=torch.long, device="cpu")
        self._require_concepts()
        for part in (model.sender, model.receiver, model.sender_sees, model.receiver_sees):
            require_supported(part)
        self._names = {parameter: name for name, parameter in model.named_parameters()}
        self._make_programs()
        self._take(models)

    def _require_concepts(self) -> None:
        """Raise unless objects of the world look like blocks with a number per concept."""
        if not self._world.block:
            raise IncompatibleError(f"objects of the world {self._game.world} are not rows of concepts")
        ends = [[0] * len(self._world.sizes), [n - 1 for n in self._world.sizes]]
        objects = torch.tensor(ends, dtype=torch.long, device="cpu")
        looks = self._world.observe(objects, torch.zeros(2, dtype=torch.long, device="cpu"))
        if not torch.equal(looks, flat_one_hot(objects + self._concepts, self._world.block, torch.float32)):
            raise IncompatibleError(f"objects of the world {self._game.world} differ from rows of concepts")

    def _make_programs(self) -> None:
        model, objects, block = self._model, self._concepts.expand(2, -1), self._world.block
        assert block is not None
        sees = [Seeing(name, getattr(model, name), block) for name in ("sender_sees", "receiver_sees")]
        described = torch.zeros(2, 1, self._game.sender_hidden * self._game.parts, dtype=torch.float32, device="cpu")
        chunk, turns = chunk_for(self._layout.size), -(-self._settings.batch_size // STEP) * STEP
        self.whole = getattr(model.channel, "normalise", "") == "batch"
        turns = max(chunk, turns) if self.whole else min(chunk, turns)
        see, judge = (self._program(part, objects, True) for part in sees)
        talk = self._program(Talking(model), described, True, turns, self.whole)
        self._trains = {"program": see, "talk": talk, "judge": judge}
        self._seen, self._judged = (self._program(part, objects, False) for part in sees)
        of_batch = (turns, True) if self.whole else ()
        self._spoken = self._program(Part("sender", model.sender), described, False, *of_batch)
        message = self._spoken.expected[:2].softmax(-1)
        self._heard = self._program(Part("receiver", model.receiver), message, False)

    def train(self, inputs: Tensor, targets: Tensor, keys: Tensor, **fields: int | None) -> None:
        """Update once per batch of turns.

        Args:
            inputs: objects [update, replicate, turn, object, column], from `pack_objects`.
            targets: ignored: in each turn the targets come first.
            keys: keys of the noise [update, replicate].
            **fields: further fields of the description.
        """
        shape, (shown, candidates) = inputs.shape[:3], (x.contiguous() for x in self._split(inputs))
        sizes = {"targets": self._game.turns.targets, "shown": shown.shape[-2], "candidates": candidates.shape[-2]}
        see, judge = (self._trains[name] for name in ("program", "judge"))
        read = calls.address_of_inputs(see, shown, shape.numel() * sizes["shown"])
        judged = calls.address_of_inputs(judge, candidates, shape.numel() * sizes["candidates"])
        self._train(shape, keys, inputs=read, answers=judged, **sizes, **fields)

    def _split(self, objects: Tensor) -> tuple[Tensor, Tensor]:
        """Return the objects that the sender sees and the candidates, as numbers of concepts [..., object, attr]."""
        turns = self._game.turns
        count = turns.targets + turns.distractors
        shown = count if self._game.parts > 1 else turns.targets
        concepts = objects[..., :-1] + self._concepts
        return concepts[..., :shown, :], concepts[..., -count:, :]

    @torch.no_grad()
    def run(self, objects: Integer[Tensor, "replicate turn object column"]) -> Played:
        """Play turns in evaluation mode, and return the same values as `GameModel.forward`."""
        shown, candidates = self._split(objects)
        targets = self._game.turns.targets
        seen = self._perceived(self._seen, shown)
        means = [part.mean(-2) for part in (seen[..., :targets, :], seen[..., targets:, :]) if part.shape[-2]]
        described = torch.cat(means, -1).unsqueeze(-2)
        scores = self._caller.scores(self._spoken, self._parameters, described)
        channel = self._channel()
        message = channel.message(scores, None)
        wanted = self._caller.scores(self._heard, self._parameters, message)
        logits = (self._perceived(self._judged, candidates) * wanted).sum(-1)
        sent = channel.as_sent(scores)
        return logits, sent, channel.words(message), channel.extra_loss(sent)

    def _channel(self) -> Representation:
        """Return the representation, with the parameters of all replicates if it has parameters."""
        channel = self._model.channel
        if not isinstance(channel, nn.Module):
            return channel
        stacked, views = copy.deepcopy(channel), self._layout.views(self._parameters)
        for own, parameter in zip(stacked.parameters(), channel.parameters(), strict=True):
            own.data = views[self._names[parameter]]
        return cast(Representation, stacked)

    def _perceived(self, program: Program, concepts: Tensor) -> Float[Tensor, "replicate turn object size"]:
        """Return the embedding of each object."""
        rows = self._caller.scores(program, self._parameters, concepts.flatten(1, 2))
        return rows.view(*concepts.shape[:3], -1)
