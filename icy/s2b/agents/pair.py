"""Train a speaker and a listener together, by reward alone, on whole dealt episodes.

Neither player sees rewards or results while it plays, so an episode is two passes: the speaker finds its tokens game by
game, and the listener decides all games at once. `Player`s that play the same step by step are in `stepped`.
"""

import io
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from icy.core.checks import whole_number
from icy.core.errors import IncompatibleError, unknown
from icy.core.files import write_atomically
from icy.s2b.game import REWARDS
from icy.s2b.language_probe import probe_language
from icy.s2b.settings import GameSettings

from .dealt import DealtGames, deal_silent, decide
from .memory import MemoryListener, MemorySettings
from .speaker import MemorySpeaker, SpeakerSettings, pick
from .stepped import TrainedSpeaker

ESTIMATORS = ("reinforce", "gumbel")
LANGUAGE = ("topsim", "posdis", "bosdis")
SHARP = ("sharpness", "new")  # weights of the speaker that say what counts as the same number
DEALT_AT_ONCE = 16  # updates whose episodes are dealt together, as dealing many at once is faster
SEEDS_PER_RUN = 10**9  # seeds of episodes set aside for a run
EVALUATED = 10**15  # first seed of the episodes to evaluate on
EVALUATED_AT_ONCE = 4_000_000  # pairs of games, of all episodes of a batch


@dataclass(frozen=True, kw_only=True)
class PairSettings:
    """Settings of the training of a pair.

    Attributes:
        speaker: settings of the speaker.
        listener: settings of the listener.
        estimator: "reinforce": both learn by reward alone; "gumbel": gradients pass from the listener, which is told
            the right decisions, to the speaker, an upper reference.
        episodes: episodes in an update.
        updates: number of updates.
        rate: learning rate.
        warmup: updates in which the learning rate rises.
        decay: share of the updates, the last ones, in which it falls.
        clip: largest norm of the gradients of a player.
        entropy: weight of the entropy of tokens and decisions.
        discount: discount of later rewards per game, for the speaker.
        speaker_weight: weight of the speaker's reward.
        alignment_rate: learning rate of the alignment, as a multiple of the others.
        memory_rate: that of how sharply the speaker attends, and of what counts as new, likewise.
        temperature: temperature of straight-through tokens.
        seed: seed of weights, episodes and draws.
    """

    speaker: SpeakerSettings = field(default_factory=SpeakerSettings)
    listener: MemorySettings = field(default_factory=MemorySettings)
    estimator: str = "reinforce"
    episodes: int = 64
    updates: int = 3000
    rate: float = 1e-3
    warmup: int = 100
    decay: float = 0.3
    clip: float = 1.0
    entropy: float = 0.01
    discount: float = 0.9
    speaker_weight: float = 0.3
    alignment_rate: float = 20.0
    memory_rate: float = 1.0
    temperature: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise unknown("estimator", self.estimator, ESTIMATORS)
        whole_number("number of episodes", self.episodes, least=2)
        whole_number("number of updates", self.updates)


class Pair:
    """A speaker and a listener, and their training.

    Args:
        game: settings of the game.
        settings: settings of the players and of their training.

    Raises:
        IncompatibleError: a game that cannot be dealt whole, or that the speaker cannot speak in.
    """

    def __init__(self, game: GameSettings, settings: PairSettings | None = None) -> None:
        self.game, self.settings = game, settings or PairSettings()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.settings.seed)
            self.speaker = MemorySpeaker(game, self.settings.speaker)
            self.listener = MemoryListener(game, self.settings.listener)
        self.random = torch.Generator().manual_seed(self.settings.seed)
        self.done = 0  # updates
        self._pool: tuple[int, DealtGames, Tensor] | None = None
        times = {"alignment": self.settings.alignment_rate} | dict.fromkeys(SHARP, self.settings.memory_rate)
        named = [*self.speaker.named_parameters(), *self.listener.named_parameters(prefix="listener")]
        self.optimiser = torch.optim.Adam(
            [
                {"params": [p for name, p in named if times.get(name, 1.0) == each], "times": each}
                for each in sorted({1.0, *times.values()})
            ],
            self.settings.rate,
        )

    # -- training ------------------------------------------------------------------------------------------------------

    def train(self, updates: int | None = None, told: Callable[[int], None] | None = None) -> None:
        """Train for some updates, or to the end of the schedule.

        Args:
            updates: number of updates from here.
            told: progress callback, called after each update with the number of updates so far.
        """
        end = self.settings.updates if updates is None else min(self.done + updates, self.settings.updates)
        while self.done < end:
            self.update()
            if told is not None:
                told(self.done)

    def update(self) -> None:
        """Play a batch of episodes, and learn from it."""
        games, heard = self._batch()
        learn = self._straight if self.settings.estimator == "gumbel" else self._reinforced
        loss = learn(games, heard)
        self.optimiser.zero_grad()
        loss.backward()
        for player in (self.speaker, self.listener):
            torch.nn.utils.clip_grad_norm_(player.parameters(), self.settings.clip)
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.rate * self._schedule() * group["times"]
        self.optimiser.step()
        self.done += 1

    def _schedule(self) -> float:
        """Return the present factor of the learning rate."""
        settings = self.settings
        falling = (settings.updates - self.done) / max(1.0, settings.decay * settings.updates)
        return min(1.0, (self.done + 1) / max(1, settings.warmup), falling)

    def _batch(self) -> tuple[DealtGames, Tensor]:
        """Return the episodes of the present update, a function of the seed and of the number of the update alone."""
        count, chunk = self.settings.episodes, self.done // DEALT_AT_ONCE
        if self._pool is None or self._pool[0] != chunk:
            first = self.settings.seed * SEEDS_PER_RUN + chunk * DEALT_AT_ONCE * count
            self._pool = (chunk, *deal_silent(self.game, range(first, first + DEALT_AT_ONCE * count)))
        place = self.done % DEALT_AT_ONCE * count
        some = slice(place, place + count)
        return self._pool[1].take(some), self._pool[2][some]

    def _uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.random)

    def _reinforced(self, games: DealtGames, heard: Tensor) -> Tensor:
        """Return the loss of both players by the rewards of decisions that are drawn."""
        settings, there = self.settings, games.there
        batch, count = there.shape
        dimensions = self.speaker.draw_dimensions(self._uniform(batch, self.speaker.positions))
        recall = self.speaker.recall(games.shown, dimensions)
        tokens = self.speaker.speak(recall, self._uniform(batch, self.speaker.positions, count))
        decisions = self._heard(games, hear(tokens, heard))
        chosen = pick(decisions.detach().exp(), self._uniform(batch, count))
        reward = rewards(chosen == games.answers, games)
        said = self.speaker.log_chances(recall, tokens)
        log_said = said.gather(-1, tokens.unsqueeze(-1)).squeeze(-1).sum(1)
        log_chosen = decisions.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
        better = advantages(returns(reward, settings.discount), games, settings.discount)
        own = less_phase_mean(reward, games)
        of_episode = (better * there).sum(1) / there.sum(1)
        speaking = (better * log_said)[there].mean()
        aligning = (of_episode * self.speaker.dimension_log_chances(dimensions)).mean()
        surprise = entropy(said).sum(1)[there].mean() + entropy(decisions)[there].mean()
        listening = (own * log_chosen)[there].mean()
        return -(listening + settings.speaker_weight * (speaking + aligning) + settings.entropy * surprise)

    def _straight(self, games: DealtGames, heard: Tensor) -> Tensor:
        """Return the loss of both players by the right decisions, with gradients through the tokens."""
        settings, there = self.settings, games.there
        batch, count = there.shape
        shape = batch, self.speaker.positions, count, self.speaker.vocab
        dimensions = self.speaker.draw_dimensions(self._uniform(*shape[:2]))
        noise = -torch.log(-torch.log(self._uniform(*shape).clamp(1e-9, 1 - 1e-7)))
        recall = self.speaker.recall(games.shown, dimensions)
        said, logs = self.speaker.speak_straight(recall, noise, settings.temperature)
        decisions = self._heard(games, hear_straight(said, heard))
        right = decisions.gather(-1, games.answers.unsqueeze(-1)).squeeze(-1)
        of_episode = (right.detach() * there).sum(1) / there.sum(1)
        better = (of_episode - of_episode.mean()) / (of_episode.std() + 1e-6)
        aligning = (better * self.speaker.dimension_log_chances(dimensions)).mean()
        surprise = entropy(logs).sum(1)[there].mean()
        return -(right[there].mean() + settings.speaker_weight * aligning + settings.entropy * surprise)

    def _heard(self, games: DealtGames, messages: Tensor) -> Tensor:
        """Return the log-probabilities of the listener's decisions, [B, G, decisions]."""
        return decide(self.listener, replace(games, messages=messages))

    # -- evaluation ----------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def evaluate(self, episodes: int = 1000, game: GameSettings | None = None, seed: int = 0) -> dict[str, float]:
        """Return the accuracy in the query and in the support of players that choose what is likeliest.

        Args:
            episodes: number of episodes.
            game: settings of the game; those of the training by default.
            seed: seed of the episodes, none of which was trained on.
        """
        first = EVALUATED + seed * SEEDS_PER_RUN
        games, heard = deal_silent(game or self.game, range(first, first + episodes))
        longest = games.there.shape[1]
        found = []
        for rows in torch.arange(episodes).split(max(1, EVALUATED_AT_ONCE // (40 * longest**2))):
            some = games.take(rows)
            dimensions = self.speaker.likeliest_dimensions(len(rows))
            messages = hear(self.speaker.speak(self.speaker.recall(some.shown, dimensions)), heard[rows])
            right = self.listener(replace(some, messages=messages)).argmax(-1) == some.answers
            phases = some.query, some.there & ~some.query
            found.append(torch.stack([(right & phase).sum(1) / phase.sum(1) for phase in phases]))
        query, support = torch.cat(found, 1).mean(1).tolist()
        return {"zsct": query, "support": support}

    def language(self, episodes: int = 20, seed: int = 123) -> dict[str, float]:
        """Return how compositional what the speaker says is (topsim, posdis, bosdis), and how distinct.

        A code is compositional by position even where different values share a token, so `distinct`, the share of
        meanings with messages of their own, stands beside it.

        Args:
            episodes: number of episodes.
            seed: seed of the episodes.
        """
        speaker = TrainedSpeaker(self.speaker)
        table = probe_language(speaker, self.game, metrics=LANGUAGE, episodes=episodes, seed=seed)
        meanings = np.array([math.prod(map(int, space.split("x"))) for space in table["space"]])
        means = {name: float(table[name].mean()) for name in LANGUAGE}
        return means | {"distinct": float(np.minimum(table["messages"] / meanings, 1.0).mean())}

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def save(self, path: Path | str) -> None:
        """Save all that the training continues from."""
        held = io.BytesIO()
        torch.save(self._state(), held)
        write_atomically(Path(path), held.getvalue())

    def load(self, path: Path | str) -> None:
        """Continue as a pair of the same settings was when it was saved.

        Raises:
            IncompatibleError: the pair that was saved had other settings.
        """
        state = torch.load(Path(path), weights_only=True)
        if state["settings"] != self._settings():
            raise IncompatibleError(f"{Path(path).name} was saved in a training with other settings.")
        self.speaker.load_state_dict(state["speaker"])
        self.listener.load_state_dict(state["listener"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.random.set_state(state["random"])
        self.done = state["done"]

    def _state(self) -> dict[str, Any]:
        return {
            "settings": self._settings(),
            "speaker": self.speaker.state_dict(),
            "listener": self.listener.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "random": self.random.get_state(),
            "done": self.done,
        }

    def _settings(self) -> str:
        return f"{self.game} {self.settings}"


# -- messages ----------------------------------------------------------------------------------------------------------


def hear(
    tokens: Int[Tensor, "batch position game"], heard: Int[Tensor, "batch vocab"]
) -> Int[Tensor, "batch game position"]:
    """Return the messages that the listener hears, of tokens that the speaker says, counted from 0."""
    said = tokens.mT + 1
    return heard[:, None].expand(-1, said.shape[1], -1).gather(2, said)


def hear_straight(
    said: Float[Tensor, "batch position game token"], heard: Int[Tensor, "batch vocab"]
) -> Float[Tensor, "batch game position vocab"]:
    """Return the messages that the listener hears as one-hots over 0..V, through which gradients pass."""
    renamed = F.one_hot(heard[:, 1:], heard.shape[1]).to(said.dtype)
    return torch.einsum("blgv,bvw->bglw", said, renamed)


# -- rewards -----------------------------------------------------------------------------------------------------------


def rewards(right: Bool[Tensor, "batch game"], games: DealtGames) -> Float[Tensor, "batch game"]:
    """Return the reward of every decision, 0 behind an episode's end."""
    pay = torch.tensor(REWARDS)
    return pay[games.query.long(), right.long()] * games.there


def returns(reward: Float[Tensor, "batch game"], discount: float) -> Float[Tensor, "batch game"]:
    """Return the sum of a game's reward and of those that follow, discounted."""
    place = torch.arange(reward.shape[1])
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
    eased = rows.T @ rows + 1e-3 * torch.eye(rows.shape[1])  # some columns may be the same
    fitted = told @ torch.linalg.solve(eased, rows.T @ known)
    better = (gain - fitted) * there
    normalised: Tensor = better / (better[games.there].std() + 1e-6)
    return normalised


def less_phase_mean(reward: Float[Tensor, "batch game"], games: DealtGames) -> Float[Tensor, "batch game"]:
    """Return rewards less the mean of their phase."""
    found = torch.zeros_like(reward)
    for phase in (games.query, games.there & ~games.query):
        found[phase] = reward[phase] - reward[phase].mean()
    return found


def entropy(logs: Float[Tensor, "*lead choice"]) -> Float[Tensor, "*lead"]:
    """Return the entropy of choices by their log-probabilities."""
    return -(logs.exp() * logs).sum(-1)
