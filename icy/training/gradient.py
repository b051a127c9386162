"""Train replicates by gradient, stacked or one by one, each with its own weights, gradient norm and moments."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from icy.config.settings import OPTIMIZERS, TrainingSettings
from icy.core import gpu
from icy.core.errors import IncompatibleError
from icy.core.noise import Noise
from icy.core.surroundings import no_subnormals
from icy.core.types import State

from .stack import CapturedCall, CapturedUpdates, Owners, PlainUpdates, Stack

# -- optimizers of one vector of parameters ----------------------------------------------------------------------------


BETAS = 0.9, 0.999  # of the moving averages of the gradient and of its square
EPSILON = 1e-8


class Adam:
    """Adam (Kingma & Ba 2015), with exactly the numbers of `torch.optim.Adam(fused=True, capturable=True)`.

    Optimizers of `torch.optim` import PyTorch's compiler, which takes one to two seconds in every process; this class
    does not.

    Args:
        weights: the parameters, a vector; changed in place.
        gradient: gradient of the weights; read at every step.
        learning_rate: step size.

    Attributes:
        steps: number of steps, a tensor on the device of the weights, so that captured steps are counted.
        moments: moving averages of the gradient and of its square, by their names in PyTorch; vectors.
    """

    def __init__(self, weights: Tensor, gradient: Tensor, learning_rate: float) -> None:
        self._weights, self._gradient, self._learning_rate = weights.detach(), gradient, learning_rate
        self.steps = torch.zeros((), device=weights.device)
        self.moments = {name: torch.zeros_like(self._weights) for name in ("exp_avg", "exp_avg_sq")}

    def load(self, moments: Mapping[str, Tensor], steps: Any) -> None:
        """Continue from the moments and steps of another optimizer of this kind."""
        for name, moment in self.moments.items():
            moment.copy_(moments[name])
        self.steps.copy_(steps)

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights by the gradient."""
        self.steps += 1
        torch._fused_adam_(
            *([self._weights], [self._gradient], *([moment] for moment in self.moments.values()), [], [self.steps]),
            lr=self._learning_rate,
            beta1=BETAS[0],
            beta2=BETAS[1],
            weight_decay=0.0,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )


class AgedAdam(Adam):
    """Adam for parameters with different numbers of steps: new parameters replace others during the training.

    Attributes:
        moments: also the number of steps of each parameter, "age".
    """

    def __init__(self, weights: Tensor, gradient: Tensor, learning_rate: float) -> None:
        super().__init__(weights, gradient, learning_rate)
        self.moments["age"] = torch.zeros_like(self._weights)

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights by the gradient."""
        self.steps += 1
        mean, square, age = self.moments.values()
        age += 1
        mean.lerp_(self._gradient, 1 - BETAS[0])
        square.mul_(BETAS[1]).addcmul_(self._gradient, self._gradient, value=1 - BETAS[1])
        # 1 - beta ** age, exact also for the first steps
        of_mean, of_square = (-torch.expm1(age * math.log(beta)) for beta in BETAS)
        root = square.div(of_square).sqrt_().add_(EPSILON)
        self._weights.addcdiv_(mean / of_mean, root, value=-self._learning_rate)


class OfTorch:
    """An element-wise optimizer of `torch.optim`, with its default settings except the learning rate.

    Args:
        name: name of the optimizer in the setting `optimizer`.
        weights: the parameters, a vector; changed in place.
        gradient: gradient of the weights; read at every step.
        learning_rate: step size.
        frozen: mask of frozen parameters, a vector; None if all are trained.

    Attributes:
        steps: the other parts of the optimizer's state, such as the number of steps; empty before the first step.
        moments: the vectors in the optimizer's state, by their names in PyTorch; empty before the first step.
    """

    def __init__(
        self, name: str, weights: Tensor, gradient: Tensor, learning_rate: float, frozen: Tensor | None = None
    ) -> None:
        self._vector = nn.Parameter(weights.detach())
        self._vector.grad = gradient
        self._frozen = frozen
        self._optimizer: torch.optim.Optimizer = getattr(torch.optim, OPTIMIZERS[name])(
            [self._vector], lr=learning_rate
        )

    @property
    def moments(self) -> dict[str, Tensor]:
        return {name: part for name, part in self._state.items() if self._is_vector(part)}

    @property
    def steps(self) -> State:
        return {name: part for name, part in self._state.items() if not self._is_vector(part)}

    @property
    def _state(self) -> State:
        return dict(self._optimizer.state.get(self._vector, {}))

    def _is_vector(self, part: Any) -> bool:
        return isinstance(part, Tensor) and part.ndim > 0

    def load(self, moments: Mapping[str, Tensor], steps: Any) -> None:
        """Continue from the moments and steps of another optimizer of this kind."""
        if moments or steps:
            self._optimizer.state[self._vector] = {**moments, **steps}

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights by the gradient."""
        before = None if self._frozen is None else self._vector[self._frozen]
        self._optimizer.step()
        if before is not None:  # weight decay changes frozen parameters, so restore them
            self._vector[self._frozen] = before


Loss = Callable[[Any, Tensor, Noise], Tensor]  # scores, targets, noise -> a loss per replicate
Prepare = Callable[[Tensor], Tensor]  # inputs [replicate, ...] -> inputs of the models
FILLING = 64  # a multiple of these rows fills registers for every size of a row
REST = 32  # most numbers at the end of a tensor that may be computed separately: two registers of AVX-512


def label_of(model: nn.Module) -> str:
    """Return the name of a model for messages: its class, or both classes of a pair."""
    return str(getattr(model, "label", type(model).__name__))


def with_copies(places: Sequence[int], copies: int) -> list[int]:
    """Return the indices of some replicates, followed by copies of the last index."""
    return [*places, *[places[-1]] * copies]


def count_right(scores: Tensor, targets: Tensor) -> Tensor:
    """Return the number of correct argmax choices [replicate] of scores [replicate, batch, place, choice]."""
    return (scores.argmax(-1) == targets).flatten(1).sum(1)


class GradientLearner:
    """R replicates of one architecture with one optimizer; gradients are clipped for each replicate separately.

    Args:
        models: a model per replicate, all of one architecture. They are copied.
        seeds: a seed per replicate, for models that draw random numbers.
        loss: scores, targets, noise -> a loss per replicate.
        settings: optimizer, learning rate and clipping.
        device: where to train.
        stacking: "broadcast", "vmap", "vmap+layers" or "loop".
        issue: "plain" or "graph"; see icy.training.stack.
        name: name of the engine; by default the stacking.
        prepare: converts inputs of the learner to inputs of the models.
    """

    parts: Sequence[str] = ("",)  # beginnings of the names of parameters with a gradient norm of their own

    def __init__(
        self,
        models: Sequence[nn.Module],
        seeds: Sequence[int],
        loss: Loss,
        settings: TrainingSettings,
        device: torch.device,
        stacking: str,
        issue: str = "plain",
        name: str | None = None,
        prepare: Prepare | None = None,
    ) -> None:
        self._prepare = prepare
        self._stacking, self._issue, self._engine = stacking, issue, name or stacking
        self._name = label_of(models[0])
        self._on_cpu = device.type == "cpu"
        self._batch_size = settings.batch_size
        self._narrowest = getattr(models[0], "narrowest", 1)  # numbers per example in the smallest tensor
        self._count = len(models)
        self._copies = self._copies_for(self._count, self._batch_size)
        places = with_copies(range(self._count), self._copies)
        copies = [copy.deepcopy(models[i]) for i in places]
        self._stack = Stack(copies, device, [seeds[i] for i in places], all_buffers=stacking.startswith("vmap"))
        self._loss = loss
        self._clip = settings.clip_norm
        self._kind, self._learning_rate = settings.optimizer, settings.learning_rate
        self._teaches = getattr(models[0], "teacher_forcing", False)
        self._last: Tensor | None = None
        self._tf32 = settings.tf32 if gpu.is_gpu(device) else None
        self._optimizer = self._new_optimizer()
        self._issued: CapturedUpdates | PlainUpdates | None = None
        self._prepare_issue()

    @property
    def engine(self) -> str:
        """The stacking of the replicates, with "+graph" if updates are captured as a graph."""
        return f"{self._engine}+graph" if self._captured() else self._engine

    def _captured(self) -> bool:
        return isinstance(self._issued, CapturedUpdates) and not self._issued.failed

    def _prepare_issue(self) -> None:
        """Prepare to issue updates of a changed stack. A failed capture is not tried again."""
        captured = self._issue == "graph" and (self._issued is None or self._captured())
        self._issued = CapturedUpdates(self.update, self._name) if captured else PlainUpdates(self.update)
        self._forward = CapturedCall(self._evaluate) if captured else self._evaluate

    def _new_optimizer(self) -> Adam | OfTorch:
        # The optimizer works element by element, so a call on the whole vector equals an optimizer per replicate.
        how = self._stack.flat, self._stack.flat_grad, self._learning_rate
        return Adam(*how) if self._kind == "adam" else OfTorch(self._kind, *how, self._stack.frozen())

    def _copies_for(self, replicates: int, examples: int) -> int:
        """Return the number of copies of the last replicate at the end of a stack.

        Without them, a replicate's numbers would depend on its place and on the size of the stack. On a CPU, PyTorch
        computes the last elements of a tensor, which do not fill a register, by other instructions with other
        rounding; and it computes products of a single replicate by another kernel. So copies are added if the examples
        do not fill registers (enough copies to cover the last elements), or if there is a single replicate (one copy).
        """
        alone = replicates == 1 and self._engine.startswith(("broadcast", "vmap"))
        if not self._on_cpu or not (alone or examples % FILLING):
            return 0
        return -(-REST // (examples * self._narrowest)) if examples % FILLING else 1

    @no_subnormals()
    def update(self, inputs: Tensor, targets: Tensor, keys: Tensor, partners: Tensor | None = None) -> None:
        """Run one forward and backward pass, clip, and step the optimizer.

        Args:
            inputs, targets: a batch [replicate, batch, ...].
            keys: noise keys [replicate].
            partners: rows of the sender and the receiver of each pairing of a population, [2, row].
        """
        owners = None if partners is None else self._owners(partners)
        if self._copies:
            filled = with_copies(range(self._count), self._copies)
            inputs, targets, keys = inputs[filled], targets[filled], keys[filled]
        if self._prepare is not None:
            inputs = self._prepare(inputs)
        with gpu.products_in(self._tf32):
            self._stack.flat_grad.zero_()
            arguments = [inputs, targets] if self._teaches else [inputs]
            scores = self._stack.forward(arguments, self._stacking, keys, owners=owners)
            losses = self._loss(scores, targets, Noise(keys))
            losses.sum().backward()  # replicates share no parameters, so each gets the gradient of its own loss
            # Detached, as the autograd graph would keep a reference to its stream.
            self._last = losses.detach()[: self._count]
            if self._clip is not None:
                self._stack.clip(self._clip, self.parts)
            self._optimizer.step()

    def _owners(self, partners: Tensor) -> Owners:
        """Return the rows of the stack that own the parameters in the pairings of an update."""
        raise NotImplementedError

    def train(self, inputs: Tensor, targets: Tensor, keys: Tensor, *partners: Tensor) -> None:
        """Update once per batch; batches are the first axis of all arguments, as of `update`."""
        assert self._issued is not None
        self._issued(inputs, targets, keys, *partners)

    def scores(self, inputs: Tensor, which: Sequence[int] | None = None) -> Tensor:
        """Return scores in evaluation mode, of all replicates or of some."""
        # With `which`, scores are computed once, when replicates end, so a capture would cost more than it saves.
        scores: Tensor = self.run(inputs) if which is None else self._evaluate(inputs, which=which)
        return scores

    def right(self, inputs: Tensor, targets: Tensor, which: Sequence[int] | None = None) -> Tensor:
        """Return the number of positions where the target has the largest score, per replicate."""
        return count_right(self.scores(inputs, which), targets)

    def run(self, *inputs: Tensor) -> Any:
        """Return all outputs in evaluation mode, for one or several arguments."""
        return self._forward(*inputs)

    @no_subnormals()
    @torch.no_grad()
    def _evaluate(self, *inputs: Tensor, which: Sequence[int] | None = None, owners: Owners | None = None) -> Any:
        count, examples = inputs[0].shape[:2]
        copies = self._copies_for(count, examples)
        if which is None and copies > self._copies:
            which = range(count)
        if which is None:
            copies = self._copies  # the stack has these already
        else:
            which = with_copies(which, copies)
        if copies:
            filled = with_copies(range(count), copies)
            inputs = tuple(x[filled] for x in inputs)
            owners = owners and {part: rows[filled] for part, rows in owners.items()}
        if self._prepare is not None:
            inputs = (self._prepare(inputs[0]), *inputs[1:])
        with gpu.products_in(self._tf32):
            outputs = self._stack.forward(inputs, self._stacking, which=which, owners=owners)
        if not copies:
            return outputs
        return tuple(x[:count] for x in outputs) if isinstance(outputs, tuple) else outputs[:count]

    def weights(self, place: int) -> dict[str, Tensor]:
        """Return a copy of the weights at this index of the stack, for `load_state_dict`."""
        return self._stack.state(place)

    def losses(self) -> Tensor | None:
        """Return the loss of each replicate at the last update."""
        return self._last

    def state(self, place: int) -> State:
        """Return a copy of the training state of the replicate at this index of the stack, for `resume`."""
        moments = {
            moment: {name: view[place].clone() for name, view in self._stack.views(flat).items()}
            for moment, flat in self._optimizer.moments.items()
        }
        of_cpu, of_device = self._stack.random_states[place]
        random = {"cpu": of_cpu} if of_device is None else {"cpu": of_cpu, "device": of_device}
        steps = copy.deepcopy(self._optimizer.steps)
        return {"weights": self._stack.state(place), "moments": moments, "steps": steps, "random": random}

    def resume(self, states: Sequence[State]) -> None:
        """Resume from the `state` of each replicate; all states have the same number of updates.

        Raises:
            IncompatibleError: compiled code made the last updates.
        """
        if not all("random" in state for state in states):
            raise IncompatibleError("another engine saved it")
        whole = [states[at] for at in with_copies(range(self._count), self._copies)]
        for place, state in enumerate(whole):
            self._stack.load(place, state["weights"])
            self._stack.random_states[place] = state["random"]["cpu"], state["random"].get("device")
        device = self._stack.flat.device
        moments = {
            moment: {name: torch.stack([s["moments"][moment][name] for s in whole]).to(device) for name in named}
            for moment, named in whole[0]["moments"].items()
        }
        self._optimizer.load(
            {moment: self._stack.pack(named) for moment, named in moments.items()},
            copy.deepcopy(whole[0]["steps"]),
        )

    def keep(self, which: list[int]) -> None:
        """Keep only these replicates and their optimizer states."""
        self._count, self._copies = len(which), self._copies_for(len(which), self._batch_size)
        which = with_copies(which, self._copies)
        index, before = torch.tensor(which, device=self._stack.flat.device, dtype=torch.int64), self._optimizer
        moments = {
            name: {key: view[index] for key, view in self._stack.views(moment).items()}
            for name, moment in before.moments.items()
        }
        self._stack.keep(which)
        self._optimizer = self._new_optimizer()
        self._optimizer.load({name: self._stack.pack(values) for name, values in moments.items()}, before.steps)
        self._prepare_issue()
