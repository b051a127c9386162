"""Tree reconstruction error where the vectors, and perhaps the composition, are trained."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.errors import InvalidSettingError
from icy.core.streams import stream_key

from .problem import Composition, Fit, Found, Gap, Target

SETTLED = 0.01  # the change of the error over the last tenth of the steps, as a share, that counts as none
SMALL = 0.1  # an error below which changes are not looked at as shares
PUBLISHED_STEPS, PUBLISHED_RATE = 1000, 0.01


def fit_linear(target: Target, distance: Gap, fit: Fit) -> Found:
    """A learned map over positions per attribute, all restarts as one batched program."""
    said, design = _tensors(target, fit.device)
    positions, symbols = said.shape[1:]
    vectors = torch.zeros(fit.restarts, target.count, positions, symbols, device=fit.device, requires_grad=True)
    owner = torch.from_numpy(_owners(target)).to(fit.device)
    maps, bias = _first_maps(fit.restarts, target.atoms.shape[1], positions, fit.seed, fit.device)
    between = _between(distance, positions, symbols)

    def errors() -> Tensor:
        mapped = maps[:, owner] @ vectors + bias[:, owner, :, None]
        sums = design @ mapped.flatten(2)
        return between(sums, said.flatten(1).expand_as(sums))

    return _finite(_trained(errors, [vectors, maps.requires_grad_(), bias.requires_grad_()], fit))


def fit_function(target: Target, composition: Composition, distance: Gap, derivations: str, fit: Fit) -> Found:
    """Any composition, and any module with what it has to learn; one restart after another."""
    found = [_one_function(target, composition, distance, derivations, fit, restart) for restart in range(fit.restarts)]
    ends = [float(one.errors.mean()) for one in found]
    best = _finite(found[int(np.nan_to_num(ends, nan=math.inf).argmin())])
    return Found(best.errors, {**best.details, "restarts": ends})


def _one_function(
    target: Target, composition: Composition, distance: Gap, derivations: str, fit: Fit, restart: int
) -> Found:
    said, _ = _tensors(target, fit.device)
    generator = torch.Generator().manual_seed(stream_key(fit.seed, "tre", "vectors", restart))
    shape = target.count, said[0].numel()
    vectors = (0.1 * torch.randn(shape, generator=generator)).to(fit.device).requires_grad_()
    atoms = torch.from_numpy(target.atoms).to(fit.device)
    compose = _composed(_own(composition, target, fit, restart), derivations)
    learned = list(compose.parameters()) if isinstance(compose, nn.Module) else []
    between = _between(distance, *said.shape[1:])

    def errors() -> Tensor:
        found = compose(vectors[atoms])
        if not isinstance(found, Tensor) or found.shape != said.flatten(1).shape:
            shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise InvalidSettingError(
                f"The composition gave {shape} for {len(atoms)} rows; {tuple(said.flatten(1).shape)} is wanted."
            )
        return between(found, said.flatten(1)).unsqueeze(0)

    return _trained(errors, [vectors, *learned], fit)


class _Left(nn.Module):
    """A composition of two, applied from the left."""

    def __init__(self, two: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.two = two

    def forward(self, atoms: Tensor) -> Tensor:
        """[N, A, D] -> [N, D]."""
        whole = atoms[:, 0]
        for a in range(1, atoms.shape[1]):
            whole = self.two(whole, atoms[:, a])
        return whole


def _own(composition: Composition, target: Target, fit: Fit, restart: int) -> Any:
    """A composition with weights that are this restart's own: a new module of a class, or a copy of a module."""
    if isinstance(composition, nn.Module):
        return copy.deepcopy(composition).to(fit.device)
    if not (isinstance(composition, type) and issubclass(composition, nn.Module)):
        return composition
    sizes = {"attributes": target.atoms.shape[1], "length": target.said.shape[1], "symbols": target.symbols}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_key(fit.seed, "tre", "composition", restart))
        return composition(**sizes).to(fit.device)


def _composed(composition: Any, derivations: str) -> Callable[[Tensor], Tensor]:
    """[N, A, D] -> [N, D]."""
    if isinstance(composition, str):  # additive, with a distance that the exact form does not know
        return lambda atoms: atoms.sum(1)
    composed: Callable[[Tensor], Tensor] = _Left(composition) if derivations == "left" else composition
    return composed


def _between(distance: Gap, positions: int, symbols: int) -> Callable[[Tensor, Tensor], Tensor]:
    """A distance of composed vectors [..., N, D] from messages, [..., N]."""
    if callable(distance):
        return lambda x, y: _by_stranger(distance, x, y)
    if distance == "l1":
        return lambda x, y: (x - y).abs().sum(-1)
    if distance == "l2":
        return lambda x, y: (x - y).square().sum(-1).add(1e-12).sqrt()
    if distance == "cosine":
        return lambda x, y: 1 - F.cosine_similarity(x, y, dim=-1)

    def cross_entropy(x: Tensor, y: Tensor) -> Tensor:
        scores = x.unflatten(-1, (positions, symbols)).log_softmax(-1)
        said: Tensor = (scores * y.unflatten(-1, (positions, symbols))).sum((-2, -1))
        return -said

    return cross_entropy


def _by_stranger(distance: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    """A distance that someone else wrote, of each restart by itself if there are several; its shape is checked."""
    if x.ndim > 2:
        return torch.stack([_by_stranger(distance, *pair) for pair in zip(x, y, strict=True)])
    found = distance(x, y)
    if not isinstance(found, Tensor) or found.shape != x.shape[:1]:
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise InvalidSettingError(
            f"The distance gave {shape} for {len(x)} rows; {(len(x),)} is wanted, one number each."
        )
    return found


def _optimiser(learned: list[Tensor], name: str, rate: float) -> torch.optim.Optimizer:
    kind = torch.optim.RMSprop if name == "rmsprop" else torch.optim.Adam
    return kind(learned, lr=rate)


def _trained(errors: Callable[[], Tensor], learned: list[Tensor], fit: Fit) -> Found:
    """An optimiser at a falling rate; `errors` gives those of every restart and row, [R, N]."""
    optimiser = _optimiser(learned, fit.optimiser, fit.learning_rate)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, fit.steps)
    late, before = max(1, fit.steps - fit.steps // 10), None
    for step in range(fit.steps):
        loss = errors().mean(-1)
        before = loss.detach().clone() if step + 1 == late else before
        optimiser.zero_grad()
        loss.sum().backward()  # restarts do not meet
        optimiser.step()
        falling.step()
    with torch.no_grad():
        last = errors()
    means = last.mean(-1)
    best = int(means.nan_to_num(math.inf).argmin())
    assert before is not None
    change = abs(float(before[best] - means[best])) / max(float(means[best]), SMALL)
    details = {"restarts": means.tolist(), "steps": fit.steps, "converged": change < SETTLED}
    return Found(last[best].double().cpu().numpy(), details)


def _finite(found: Found) -> Found:
    """What was found, if it is something.

    Raises:
        InvalidSettingError: even the best restart ended with an error that is not a number.
    """
    if not np.isfinite(found.errors.mean()):
        raise InvalidSettingError("The error is no longer a finite number; take a smaller learning_rate.")
    return found


def fit_published(target: Target, fit: Fit) -> Found:
    """The authors' program: maps that are never trained, and the error as it stood before the last update.

    Perkins21 and Icy22 share it, but for the optimiser, which was RMSprop in the first version; see icy-facts 4.6.
    Symbols and positions stand the other way round there, which changes nothing.
    """
    said, design = _tensors(target, fit.device)
    vectors = torch.zeros(target.count, *said.shape[1:], device=fit.device, requires_grad=True)
    owner = torch.from_numpy(_owners(target)).to(fit.device)
    first = _first_maps(1, target.atoms.shape[1], said.shape[1], fit.seed, fit.device)
    maps, bias = (given[0] for given in first)
    optimiser = _optimiser([vectors], fit.optimiser, PUBLISHED_RATE)
    history = []
    for _ in range(PUBLISHED_STEPS):
        mapped = maps[owner] @ vectors + bias[owner, :, None]
        left = (design @ mapped.flatten(1) - said.flatten(1)).abs().sum(-1)
        history.append(float(left.detach().mean()))
        optimiser.zero_grad()
        left.sum().backward()
        optimiser.step()
    change = abs(history[-PUBLISHED_STEPS // 10] - history[-1]) / max(history[-1], SMALL)
    details = {"restarts": history[-1:], "steps": PUBLISHED_STEPS, "converged": change < SETTLED}
    return Found(left.detach().double().cpu().numpy(), details)


def _tensors(target: Target, device: str) -> tuple[Tensor, Tensor]:
    """The messages, and the indicators of atoms [N, atoms]."""
    design = np.zeros((len(target.atoms), target.count), dtype=np.float32)
    np.put_along_axis(design, target.atoms, 1, axis=1)
    said = target.one_hot.astype(np.float32)
    return torch.from_numpy(said).to(device), torch.from_numpy(design).to(device)


def _owners(target: Target) -> Any:
    """The attribute of every atom."""
    owners = np.zeros(target.count, dtype=np.int64)
    owners[target.atoms] = np.arange(target.atoms.shape[1])
    return owners


def _first_maps(restarts: int, attributes: int, positions: int, seed: int, device: str) -> tuple[Tensor, Tensor]:
    """Maps and biases as the library draws those of a linear layer: [R, A, S, S] and [R, A, S]."""
    generator = torch.Generator().manual_seed(stream_key(seed, "tre", "maps"))
    bound = 1 / math.sqrt(positions)
    maps = torch.empty(restarts, attributes, positions, positions).uniform_(-bound, bound, generator=generator)
    bias = torch.empty(restarts, attributes, positions).uniform_(-bound, bound, generator=generator)
    return maps.to(device), bias.to(device)
