"""Rewards, returns, advantages and accuracies of decisions on whole dealt episodes."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from icy.s2b.game import REWARDS

from .dealt import Games


def rewards(right: Bool[Tensor, "batch game"], games: Games) -> Float[Tensor, "batch game"]:
    """Return the reward of every decision, [B, G]; 0 for padding."""
    pay = torch.tensor(REWARDS, dtype=torch.float32, device="cpu")
    return pay[games.query.long(), right.long()] * games.there


def returns(reward: Float[Tensor, "batch game"], discount: float) -> Float[Tensor, "batch game"]:
    """Return, for each game, the discounted sum of its reward and all later rewards."""
    place = torch.arange(reward.shape[1], device="cpu")
    later = place[:, None] - place  # rows: rewards, columns: games
    return reward @ torch.where(later >= 0, discount ** later.clamp(min=0).to(reward.dtype), 0.0)


def advantages(gain: Float[Tensor, "batch game"], games: Games, discount: float) -> Float[Tensor, "batch game"]:
    """Return normalized advantages: returns minus a baseline.

    The baseline is a linear function of the phase and of the remaining games of each phase, fitted to the batch by
    least squares.
    """
    there, query = games.there.to(gain.dtype), games.query.to(gain.dtype)
    left = there.flip(1).cumsum(1).flip(1)
    of_phase = [returns(phase, discount) for phase in (query, there - query)]
    features = torch.stack([there, query, left, query * left, *of_phase], -1)
    rows, known = features[games.there], gain[games.there]
    regularized = rows.T @ rows + 1e-3 * torch.eye(
        rows.shape[1], dtype=torch.float32, device="cpu"
    )  # some columns may be equal
    baseline = features @ torch.linalg.solve(regularized, rows.T @ known)
    return normalised((gain - baseline) * there, games)


def generalized_advantages(
    rewards: Float[Tensor, "batch game"],
    values: Float[Tensor, "batch game"],
    there: Bool[Tensor, "batch game"],
    discount: float = 0.0,
    trace: float = 1.0,
) -> Float[Tensor, "batch game"]:
    """Return generalized advantage estimates of decisions (Schulman et al. 2016), 0 for padding.

    Args:
        rewards: reward of each decision.
        values: state value before each decision; with zeros and trace=1, the result is returns.
        there: mask of the decisions, False for padding.
        discount: discount of rewards per decision.
        trace: lambda, from 0 (use the values of later states) to 1 (use rewards only).
    """
    advantage, there = torch.zeros_like(rewards[:, 0]), there.to(rewards.dtype)
    later, reverse = torch.zeros_like(advantage), []
    for number in reversed(range(rewards.shape[1])):
        error = rewards[:, number] + discount * later - values[:, number]
        advantage = (error + discount * trace * advantage) * there[:, number]
        later = values[:, number] * there[:, number]
        reverse.append(advantage)
    return torch.stack(reverse[::-1], 1)


def less_phase_mean(reward: Float[Tensor, "batch game"], games: Games) -> Float[Tensor, "batch game"]:
    """Return rewards minus the mean reward of their phase."""
    centered = torch.zeros_like(reward)
    for phase in (games.query, games.there & ~games.query):
        centered[phase] = reward[phase] - reward[phase].mean()
    return centered


def normalised(gain: Float[Tensor, "batch game"], games: Games) -> Float[Tensor, "batch game"]:
    """Return gains divided by their standard deviation over all games."""
    scaled: Tensor = gain / (gain[games.there].std() + 1e-6)
    return scaled


def entropy(logs: Float[Tensor, "*lead choice"]) -> Float[Tensor, "*lead"]:
    """Return the entropy of distributions given by log-probabilities."""
    return -(logs.exp() * logs).sum(-1)


def log_of(logs: Float[Tensor, "*lead choice"], chosen: Int[Tensor, "*lead"]) -> Float[Tensor, "*lead"]:
    """Return the log-probability of each choice."""
    return logs.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)


def accuracies(of_episodes: Float[Tensor, "phase batch"]) -> dict[str, float]:
    """Average the result of `phase_means` over episodes: `zsct` (query) and `support`."""
    query, support = of_episodes.double().mean(1).tolist()
    return {"zsct": query, "support": support}


def phase_means(right: Bool[Tensor, "batch game"], games: Games) -> Float[Tensor, "phase batch"]:
    """Return each episode's fraction of right decisions, in the query and in the support, [2, B]."""
    phases = games.query, games.there & ~games.query
    return torch.stack([(right & phase).sum(1) / phase.sum(1) for phase in phases])
