"""What decisions earn on whole dealt episodes, and how much better that is than what was to be expected."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from icy.s2b.game import REWARDS

from .dealt import DealtGames


def rewards(right: Bool[Tensor, "batch game"], games: DealtGames) -> Float[Tensor, "batch game"]:
    """Return the reward of every decision, 0 behind an episode's end."""
    pay = torch.tensor(REWARDS, dtype=torch.float32, device="cpu")
    return pay[games.query.long(), right.long()] * games.there


def returns(reward: Float[Tensor, "batch game"], discount: float) -> Float[Tensor, "batch game"]:
    """Return the sum of a game's reward and of those that follow, discounted."""
    place = torch.arange(reward.shape[1], device="cpu")
    later = place[:, None] - place  # [of the reward, of the game]
    return reward @ torch.where(later >= 0, discount ** later.clamp(min=0).to(reward.dtype), 0.0)


def advantages(gain: Float[Tensor, "batch game"], games: DealtGames, discount: float) -> Float[Tensor, "batch game"]:
    """Return returns less what is expected of the games left in either phase, normalised.

    What is expected is fitted to the batch by least squares.
    """
    there, query = games.there.to(gain.dtype), games.query.to(gain.dtype)
    left = there.flip(1).cumsum(1).flip(1)
    of_phase = [returns(phase, discount) for phase in (query, there - query)]
    told = torch.stack([there, query, left, query * left, *of_phase], -1)
    rows, known = told[games.there], gain[games.there]
    eased = rows.T @ rows + 1e-3 * torch.eye(
        rows.shape[1], dtype=torch.float32, device="cpu"
    )  # some columns may be the same
    fitted = told @ torch.linalg.solve(eased, rows.T @ known)
    return normalised((gain - fitted) * there, games)


def generalised_advantages(
    rewards: Float[Tensor, "batch game"],
    values: Float[Tensor, "batch game"],
    there: Bool[Tensor, "batch game"],
    discount: float = 0.0,
    trace: float = 1.0,
) -> Float[Tensor, "batch game"]:
    """Return generalised advantages of decisions (Schulman et al. 2016), 0 behind the end of an episode.

    Args:
        rewards: reward of each decision.
        values: value of the state before each decision; zeros to get returns.
        there: which decisions there are.
        discount: discount of rewards, per decision.
        trace: how far rewards count rather than the values of later states, from 0 to 1 (lambda).
    """
    left, there = torch.zeros_like(rewards[:, 0]), there.to(rewards.dtype)
    later, found = torch.zeros_like(left), []
    for number in reversed(range(rewards.shape[1])):
        surprise = rewards[:, number] + discount * later - values[:, number]
        left = (surprise + discount * trace * left) * there[:, number]
        later = values[:, number] * there[:, number]
        found.append(left)
    return torch.stack(found[::-1], 1)


def less_phase_mean(reward: Float[Tensor, "batch game"], games: DealtGames) -> Float[Tensor, "batch game"]:
    """Return rewards less the mean of their phase."""
    found = torch.zeros_like(reward)
    for phase in (games.query, games.there & ~games.query):
        found[phase] = reward[phase] - reward[phase].mean()
    return found


def normalised(gain: Float[Tensor, "batch game"], games: DealtGames) -> Float[Tensor, "batch game"]:
    """Return gains in units of their standard deviation over all games."""
    found: Tensor = gain / (gain[games.there].std() + 1e-6)
    return found


def entropy(logs: Float[Tensor, "*lead choice"]) -> Float[Tensor, "*lead"]:
    """Return the entropy of choices by their log-probabilities."""
    return -(logs.exp() * logs).sum(-1)


def log_of(logs: Float[Tensor, "*lead choice"], chosen: Int[Tensor, "*lead"]) -> Float[Tensor, "*lead"]:
    """Return the log-probability of what was chosen."""
    return logs.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)


def accuracies(of_episodes: Float[Tensor, "phase batch"]) -> dict[str, float]:
    """Return the means over episodes of what `phase_means` found: `zsct` in the query, and `support`."""
    query, support = of_episodes.double().mean(1).tolist()
    return {"zsct": query, "support": support}


def phase_means(right: Bool[Tensor, "batch game"], games: DealtGames) -> Float[Tensor, "phase batch"]:
    """Return the share of right decisions of each episode in the query and in the support."""
    phases = games.query, games.there & ~games.query
    return torch.stack([(right & phase).sum(1) / phase.sum(1) for phase in phases])
