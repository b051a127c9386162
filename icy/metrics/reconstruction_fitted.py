"""TRE by training the vectors, and the composition if it has parameters."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.errors import InvalidSettingError
from icy.core.progress import track
from icy.core.streams import stream_key

from .reconstruction_solvers import Composition, FitSettings, ReconstructionErrors, Target, TensorDistance

SETTLED = 0.01  # training has converged if the last tenth of the steps changed the error by a smaller fraction
SMALL = 0.1  # smaller errors count as this error in the fraction
PUBLISHED_STEPS, PUBLISHED_RATE = 1000, 0.01


def fit_linear(target: Target, distance: TensorDistance, fit: FitSettings) -> ReconstructionErrors:
    """Train the linear composition: one linear map over positions per attribute. All restarts are in one batch.

    Raises:
        InvalidSettingError: the distance returns the wrong shape, or every restart diverged.
    """
    tokens, design = _tensors(target, fit.device)
    positions, symbols = tokens.shape[1:]
    vectors = torch.zeros(
        fit.restarts, target.count, positions, symbols, device=fit.device, requires_grad=True, dtype=torch.float32
    )
    owner = torch.from_numpy(_owners(target)).to(fit.device)
    maps, bias = _first_maps(fit.restarts, target.atoms.shape[1], positions, fit.seed, fit.device)
    between = _distance_function(distance, positions, symbols)

    def errors() -> Tensor:
        mapped = maps[:, owner] @ vectors + bias[:, owner, :, None]
        sums = design @ mapped.flatten(2)
        return between(sums, tokens.flatten(1).expand_as(sums))

    return _finite(_train(errors, [vectors, maps.requires_grad_(), bias.requires_grad_()], target, fit))


def fit_function(
    target: Target, composition: Composition, distance: TensorDistance, derivations: str, fit: FitSettings
) -> ReconstructionErrors:
    """Train any composition, one restart after another.

    Raises:
        InvalidSettingError: the composition or the distance returns the wrong shape, or every restart diverged.
    """
    found = [_one_function(target, composition, distance, derivations, fit, restart) for restart in range(fit.restarts)]
    ends = [float(target.mean(one.errors)) for one in found]
    best = _finite(found[int(np.nan_to_num(ends, nan=math.inf).argmin())])
    return ReconstructionErrors(best.errors, {**best.details, "restarts": ends})


def fit_published(target: Target, fit: FitSettings) -> ReconstructionErrors:
    """Run the authors' program: maps are never trained, and the error is that before the last update.

    Perkins21 and Icy22 used the same program except for the optimizer, which was RMSprop in the first version. It
    stores symbols before positions, which does not matter.
    """
    tokens, design = _tensors(target, fit.device)
    vectors = torch.zeros(target.count, *tokens.shape[1:], device=fit.device, requires_grad=True, dtype=torch.float32)
    owner = torch.from_numpy(_owners(target)).to(fit.device)
    first = _first_maps(1, target.atoms.shape[1], tokens.shape[1], fit.seed, fit.device)
    maps, bias = (given[0] for given in first)
    optimizer = _optimizer([vectors], fit.optimizer, PUBLISHED_RATE)
    history, mean = [], _mean_over_rows(target, fit.device)
    total = 1 if target.weights is None else float(target.weights.sum())
    for _ in track(range(PUBLISHED_STEPS), "updates of tre"):
        mapped = maps[owner] @ vectors + bias[owner, :, None]
        left = (design @ mapped.flatten(1) - tokens.flatten(1)).abs().sum(-1)
        history.append(float(mean(left.detach())))
        optimizer.zero_grad()
        (left.sum() if target.weights is None else mean(left) * total).backward()
        optimizer.step()
    change = abs(history[-PUBLISHED_STEPS // 10] - history[-1]) / max(history[-1], SMALL)
    details = {"restarts": history[-1:], "steps": PUBLISHED_STEPS, "converged": change < SETTLED}
    return ReconstructionErrors(left.detach().double().cpu().numpy(), details)


def _one_function(
    target: Target, composition: Composition, distance: TensorDistance, derivations: str, fit: FitSettings, restart: int
) -> ReconstructionErrors:
    tokens, _ = _tensors(target, fit.device)
    generator = torch.Generator().manual_seed(stream_key(fit.seed, "tre", "vectors", restart))
    shape = target.count, tokens[0].numel()
    vectors = (
        (0.1 * torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu"))
        .to(fit.device)
        .requires_grad_()
    )
    atoms = torch.from_numpy(target.atoms).to(fit.device)
    compose = _composed(_copy_composition(composition, target, fit, restart), derivations)
    learned = list(compose.parameters()) if isinstance(compose, nn.Module) else []
    between = _distance_function(distance, *tokens.shape[1:])

    def errors() -> Tensor:
        found = compose(vectors[atoms])
        if not isinstance(found, Tensor) or found.shape != tokens.flatten(1).shape:
            shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise InvalidSettingError(
                f"The composition returned {shape} for {len(atoms)} rows, not {tuple(tokens.flatten(1).shape)}."
            )
        return between(found, tokens.flatten(1)).unsqueeze(0)

    return _train(errors, [vectors, *learned], target, fit)


def _copy_composition(composition: Composition, target: Target, fit: FitSettings, restart: int) -> Any:
    """Return the composition with separate weights for a restart: a new instance of a class, or a copy of a module."""
    if isinstance(composition, nn.Module):
        return copy.deepcopy(composition).to(fit.device)
    if not (isinstance(composition, type) and issubclass(composition, nn.Module)):
        return composition
    sizes = {"attributes": target.atoms.shape[1], "length": target.tokens.shape[1], "symbols": target.symbols}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_key(fit.seed, "tre", "composition", restart))
        return composition(**sizes).to(fit.device)


def _composed(composition: Any, derivations: str) -> Callable[[Tensor], Tensor]:
    """Return the composition as a function of all atoms, [N, A, D] -> [N, D]."""
    if isinstance(composition, str):  # additive, with a distance without an exact solution
        return lambda atoms: atoms.sum(1)
    return _Left(composition) if derivations == "left" else composition


class _Left(nn.Module):
    """A composition of two vectors, applied from the left."""

    def __init__(self, two: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.two = two

    def forward(self, atoms: Tensor) -> Tensor:
        """Compose the atoms of each row: [N, A, D] -> [N, D]."""
        whole = atoms[:, 0]
        for a in range(1, atoms.shape[1]):
            whole = self.two(whole, atoms[:, a])
        return whole


def _distance_function(distance: TensorDistance, positions: int, symbols: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the distance as a function of composed vectors and messages, ([..., N, D], [..., N, D]) -> [..., N]."""
    if callable(distance):
        return lambda x, y: _apply_user_distance(distance, x, y)
    if distance == "l1":
        return lambda x, y: (x - y).abs().sum(-1)
    if distance == "l2":
        return lambda x, y: (x - y).square().sum(-1).add(1e-12).sqrt()
    if distance == "cosine":
        return lambda x, y: 1 - F.cosine_similarity(x, y, dim=-1)

    def cross_entropy(x: Tensor, y: Tensor) -> Tensor:
        scores = x.unflatten(-1, (positions, symbols)).log_softmax(-1)
        tokens: Tensor = (scores * y.unflatten(-1, (positions, symbols))).sum((-2, -1))
        return -tokens

    return cross_entropy


def _apply_user_distance(distance: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    """Apply a user's distance function, to one restart at a time if there are several, and check its shape."""
    if x.ndim > 2:
        return torch.stack([_apply_user_distance(distance, *pair) for pair in zip(x, y, strict=True)])
    found = distance(x, y)
    if not isinstance(found, Tensor) or found.shape != x.shape[:1]:
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise InvalidSettingError(
            f"The distance returned {shape} for {len(x)} rows, not {(len(x),)}, one number per row."
        )
    return found


def _train(
    errors: Callable[[], Tensor], learned: list[Tensor], target: Target, fit: FitSettings
) -> ReconstructionErrors:
    """Minimize the mean of `errors()`, [R, N] for restarts and rows, and return the best restart."""
    optimizer, mean = _optimizer(learned, fit.optimizer, fit.learning_rate), _mean_over_rows(target, fit.device)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, fit.steps)
    late, before = max(1, fit.steps - fit.steps // 10), None
    for step in track(range(fit.steps), "updates of tre"):
        loss = mean(errors())
        before = loss.detach().clone() if step + 1 == late else before
        optimizer.zero_grad()
        loss.sum().backward()  # restarts share no parameters
        optimizer.step()
        falling.step()
    with torch.no_grad():
        last = errors()
    means = mean(last)
    best = int(means.nan_to_num(math.inf).argmin())
    assert before is not None
    change = abs(float(before[best] - means[best])) / max(float(means[best]), SMALL)
    details = {"restarts": means.tolist(), "steps": fit.steps, "converged": change < SETTLED}
    return ReconstructionErrors(last[best].double().cpu().numpy(), details)


def _mean_over_rows(target: Target, device: str) -> Callable[[Tensor], Tensor]:
    """Return a function that averages errors over the rows, [..., N] -> [...]."""
    if target.weights is None:
        return lambda errors: errors.mean(-1)
    shares = torch.from_numpy((target.weights / target.weights.sum()).astype(np.float32)).to(device)
    return lambda errors: errors @ shares


def _optimizer(learned: list[Tensor], name: str, rate: float) -> torch.optim.Optimizer:
    kind = torch.optim.RMSprop if name == "rmsprop" else torch.optim.Adam
    return kind(learned, lr=rate)


def _finite(found: ReconstructionErrors) -> ReconstructionErrors:
    """Return a reconstruction if its error is finite.

    Raises:
        InvalidSettingError: even the best restart diverged.
    """
    if not np.isfinite(found.errors.mean()):
        raise InvalidSettingError("The error is no longer a finite number; take a smaller learning_rate.")
    return found


def _tensors(target: Target, device: str) -> tuple[Tensor, Tensor]:
    """Return the messages, [N, S, symbols], and the indicators of atoms, [N, atoms]."""
    design = np.zeros((len(target.atoms), target.count), dtype=np.float32)
    np.put_along_axis(design, target.atoms, 1, axis=1)
    tokens = target.one_hot.astype(np.float32)
    return torch.from_numpy(tokens).to(device), torch.from_numpy(design).to(device)


def _owners(target: Target) -> Any:
    """Return the attribute of every atom, [atoms]."""
    owners = np.zeros(target.count, dtype=np.int64)
    owners[target.atoms] = np.arange(target.atoms.shape[1])
    return owners


def _first_maps(restarts: int, attributes: int, positions: int, seed: int, device: str) -> tuple[Tensor, Tensor]:
    """Draw maps, [R, A, S, S], and biases, [R, A, S], as torch initializes a linear layer."""
    generator = torch.Generator().manual_seed(stream_key(seed, "tre", "maps"))
    bound = 1 / math.sqrt(positions)
    maps = torch.empty(restarts, attributes, positions, positions, dtype=torch.float32, device="cpu").uniform_(
        -bound, bound, generator=generator
    )
    bias = torch.empty(restarts, attributes, positions, dtype=torch.float32, device="cpu").uniform_(
        -bound, bound, generator=generator
    )
    return maps.to(device), bias.to(device)
