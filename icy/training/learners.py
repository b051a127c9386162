"""Learners: R models that train as one. Each replicate keeps its own weights, gradient norm and optimiser state.

Three ways to run a stack, from the fastest: *broadcast*, for models built from `icy.models.layers`, whose parameters
may carry a leading axis; *vmap*, for any module whose operations `torch.vmap` can batch; *loop*, one module after
another, for everything else. They give the same numbers to float tolerance.
"""

import copy
import logging
from collections.abc import Callable, Sequence
from typing import Protocol as Interface

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, vmap

from icy.errors import IncompatibleError, unknown
from icy.representations import Representation
from icy.streams import stream_key

from .settings import TrainingSettings

log = logging.getLogger(__name__)
Loss = Callable[[Tensor, Tensor], Tensor]
ROWS_AT_ONCE = 8192  # examples in one forward pass of an evaluation, over the whole stack


ENGINES = ("auto", "broadcast", "vmap", "loop")
WHY = {
    "broadcast": ", as a stack: all its layers are from icy.models.layers",
    "vmap": ", as a stack: torch.vmap can batch its operations",
    "loop": ", one at a time: it cannot be stacked",
}


class Learner(Interface):
    """What the engine asks of a stack of replicates."""

    engine: str

    def update(self, inputs: Tensor, targets: Tensor) -> None:
        """One update of each replicate: `inputs` and `targets` [replicate, batch, ...]."""

    def scores(self, inputs: Tensor) -> Tensor:
        """Scores [replicate, batch, ..., choice] in evaluation mode, without gradients."""

    def losses(self) -> Tensor | None:
        """The loss of each replicate at its last update [replicate], where there is one."""

    def keep(self, which: list[int]) -> None:
        """Go on with these replicates only."""


def accuracy(learner: Learner, inputs: Tensor, targets: Tensor) -> Float[Tensor, " replicate"]:
    """Share of right answers of each replicate: tokens of a sender, attribute values of a receiver."""
    step = max(1, ROWS_AT_ONCE // len(inputs))
    right = [
        (learner.scores(some).argmax(-1) == answers).float().flatten(2).mean(2)
        for some, answers in zip(inputs.split(step, 1), targets.split(step, 1), strict=True)
    ]
    return torch.cat(right, 1).mean(1)


def make_learner(
    models: Sequence[nn.Module],
    seeds: Sequence[int],
    loss: Loss,
    settings: TrainingSettings,
    device: torch.device,
    sample: Tensor,
    engine: str = "auto",
) -> Learner:
    """The learner that suits the models.

    Args:
        models: one per replicate, all of one architecture.
        seeds: one per replicate.
        loss: scores, targets -> one loss per replicate.
        settings: how to train.
        device: where.
        sample: a small batch of inputs [replicate, batch, ...], to try vmap on.
        engine: "auto", or "broadcast", "vmap" or "loop".

    Raises:
        IncompatibleError: there is nothing to train.
    """
    if not getattr(models[0], "learns_by_gradient", True):
        return MemoryLearner(models, device)
    if not any(p.requires_grad for p in models[0].parameters()):
        raise IncompatibleError(
            f"{type(models[0]).__name__} has no parameters to train; a model that stores examples instead says "
            "`learns_by_gradient = False` and has a method `observe` (see icy.models.base.MemoryModel)."
        )
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    name, chosen = type(models[0]).__name__, engine == "auto"
    if engine == "auto":
        engine = "broadcast" if getattr(models[0], "broadcasts", False) else _vmap_or_loop(models, sample, device)
    log.info("%s: replicates train by the engine '%s'%s.", name, engine, WHY[engine] if chosen else ", as asked for")
    return GradientLearner(models, seeds, loss, settings, device, engine)


def _vmap_or_loop(models: Sequence[nn.Module], sample: Tensor, device: torch.device) -> str:
    """Whether `torch.vmap` can batch the model, said in the log when it cannot."""
    name = type(models[0]).__name__
    if any(True for _ in models[0].buffers()):
        log.warning("%s has buffers, which cannot be stacked: its replicates train one at a time.", name)
        return "loop"
    trial = _Stack(copy.deepcopy(list(models[:1])), device, [0])
    try:
        trial.forward(sample[:1], "vmap", training=True).sum().backward()  # type: ignore[no-untyped-call]
    except Exception as error:  # whatever a stranger's module does that vmap refuses
        reason = str(error).strip().partition("\n")[0]
        log.warning("%s cannot be stacked (%s): its replicates train one at a time.", name, reason)
        return "loop"
    return "vmap"


def _random_state(key: int) -> Tensor:
    return torch.Generator().manual_seed(key).get_state()


class _Stack:
    """Parameters of R equal modules, stacked, all in one vector with a view for each tensor [replicate, ...].

    One vector, because then clearing gradients and the optimiser are one operation each, however many tensors a model
    has; a block of it per tensor, because batched matrix products want each tensor contiguous.
    """

    def __init__(self, modules: list[nn.Module], device: torch.device, seeds: Sequence[int]) -> None:
        self.modules = [module.to(device) for module in modules]
        parameters = [dict(module.named_parameters()) for module in self.modules]
        self._trainable = {name: p.requires_grad for name, p in parameters[0].items()}
        self._attach({name: torch.stack([p[name].detach().float() for p in parameters]) for name in parameters[0]})
        # A module that draws (dropout, say) has a random state of its own when it runs alone, so that its numbers do
        # not depend on which replicates run beside it.
        self._noise = [_random_state(stream_key(seed, "noise")) for seed in seeds]

    def _attach(self, values: dict[str, Tensor]) -> None:
        self._shapes = {name: value.shape for name, value in values.items()}
        self.flat = self.pack(values)
        self.flat_grad = torch.zeros_like(self.flat)
        # A frozen parameter keeps a gradient of zero, which Adam leaves where it is.
        self.parameters = {n: view.requires_grad_(self._trainable[n]) for n, view in self.views(self.flat).items()}
        self.gradients = self.views(self.flat_grad)
        for name, parameter in self.parameters.items():
            parameter.grad = self.gradients[name]  # backward adds into it, in place

    def pack(self, values: dict[str, Tensor]) -> Tensor:
        """One vector of all the tensors."""
        return torch.cat([value.flatten() for value in values.values()])

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Each tensor of a packed vector, in its shape."""
        parts = flat.split([shape.numel() for shape in self._shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self._shapes.items(), parts, strict=True)}

    def clip(self, limit: float) -> None:
        """Scale the gradient of each replicate down to a norm of at most `limit`."""
        rows = [gradient.flatten(1) for gradient in self.gradients.values()]
        norms = torch.stack([torch.linalg.vector_norm(row, dim=1) for row in rows])
        scale = (limit / (torch.linalg.vector_norm(norms, dim=0) + 1e-6)).clamp_(max=1)
        for row in rows:
            row.mul_(scale.unsqueeze(1))

    def keep(self, which: list[int]) -> None:
        """Go on with these replicates only."""
        index = torch.tensor(which, device=self.flat.device)
        self._attach({name: value.detach()[index] for name, value in self.parameters.items()})
        self.modules = [self.modules[i] for i in which]
        self._noise = [self._noise[i] for i in which]

    def forward(self, inputs: Tensor, engine: str, training: bool) -> Tensor:
        """Scores [replicate, batch, ...] of every replicate for its own inputs."""
        for module in self.modules if engine == "loop" else self.modules[:1]:
            module.train(training)
        one = self.modules[0]
        if engine == "broadcast":
            scores: Tensor = functional_call(one, self.parameters, (inputs,))
        elif engine == "vmap":
            scores = vmap(lambda p, x: functional_call(one, p, (x,)))(self.parameters, inputs)
        else:
            scores = self._one_by_one(inputs)
        return scores

    def _one_by_one(self, inputs: Tensor) -> Tensor:
        outputs = []
        with torch.random.fork_rng(devices=[]):
            for i, module in enumerate(self.modules):
                torch.random.set_rng_state(self._noise[i])
                mine = {name: p[i] for name, p in self.parameters.items()}
                outputs.append(functional_call(module, mine, (inputs[i],)))
                self._noise[i] = torch.random.get_rng_state()
        return torch.stack(outputs)


class GradientLearner:
    """R replicates of one architecture under Adam, with gradients clipped replicate by replicate.

    Args:
        models: one per replicate, all of one architecture. They are copied.
        seeds: one per replicate, for models that draw random numbers of their own.
        loss: scores, targets -> one loss per replicate.
        settings: learning rate and clipping.
        device: where to train.
        engine: "broadcast", "vmap" or "loop".
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        seeds: Sequence[int],
        loss: Loss,
        settings: TrainingSettings,
        device: torch.device,
        engine: str,
    ) -> None:
        self.engine = engine
        self._stack = _Stack([copy.deepcopy(m) for m in models], device, seeds)
        self._loss = loss
        self._clip = settings.clip_norm
        self._learning_rate = settings.learning_rate
        self._last: Tensor | None = None
        self._optimiser = self._new_optimiser()

    def _new_optimiser(self) -> torch.optim.Adam:
        weights = nn.Parameter(self._stack.flat, requires_grad=True)
        weights.grad = self._stack.flat_grad
        # Adam works element by element, so one call on the whole matrix equals one optimiser per replicate.
        return torch.optim.Adam([weights], lr=self._learning_rate, fused=True, capturable=weights.is_cuda)

    def update(self, inputs: Tensor, targets: Tensor) -> None:
        """One forward and backward pass, clipping, and a step of Adam."""
        self._stack.flat_grad.zero_()
        self._last = self._loss(self._stack.forward(inputs, self.engine, training=True), targets)
        self._last.sum().backward()  # the replicates share nothing, so each gets the gradient of its own loss
        if self._clip is not None:
            self._stack.clip(self._clip)
        self._optimiser.step()

    @torch.no_grad()
    def scores(self, inputs: Tensor) -> Tensor:
        """Scores in evaluation mode."""
        return self._stack.forward(inputs, self.engine, training=False)

    def losses(self) -> Tensor | None:
        """The loss of each replicate at its last update."""
        return None if self._last is None else self._last.detach()

    def keep(self, which: list[int]) -> None:
        """Go on with these replicates only, their optimiser state with them."""
        state: dict[str, Tensor] = next(iter(self._optimiser.state.values()), {})
        index = torch.tensor(which, device=self._stack.flat.device)
        moments = {
            name: {key: view[index] for key, view in self._stack.views(state[name]).items()}
            for name in ("exp_avg", "exp_avg_sq")
            if state
        }
        self._stack.keep(which)
        self._optimiser = self._new_optimiser()
        if state:
            (weights,) = self._optimiser.param_groups[0]["params"]
            kept = {name: self._stack.pack(values) for name, values in moments.items()}
            self._optimiser.state[weights] = {"step": state["step"], **kept}


class MemoryLearner:
    """Replicates that store examples (hash table, nearest neighbours), one after another."""

    engine = "memory"

    def __init__(self, models: Sequence[nn.Module], device: torch.device) -> None:
        self._models = [copy.deepcopy(m).to(device).eval() for m in models]

    def update(self, inputs: Tensor, targets: Tensor) -> None:
        """Store the batch."""
        for model, x, y in zip(self._models, inputs, targets, strict=True):
            model.observe(x, y)  # type: ignore[operator]

    @torch.no_grad()
    def scores(self, inputs: Tensor) -> Tensor:
        """Scores of what is stored."""
        return torch.stack([model(x) for model, x in zip(self._models, inputs, strict=True)])

    def losses(self) -> Tensor | None:
        """There is no loss."""
        return None

    def keep(self, which: list[int]) -> None:
        """Go on with these replicates only."""
        self._models = [self._models[i] for i in which]


def supervised_loss(representation: Representation, side: str) -> Loss:
    """The loss of one side under a representation."""
    return representation.sender_loss if side == "sender" else representation.receiver_loss
