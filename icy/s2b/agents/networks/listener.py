"""Listeners with a network, for dealt episodes: all steps of an episode in one pass. Training by PPO, or supervised.

In each game, the listener gets N + 2 observations: rounds 0..N, and the feedback with the speaker's stimuli. They are
known when an episode is dealt, except for the listener's own choices and their results and rewards. These add no
information to the other observations, so by default the listener does not see them. Then its observations do not
depend on its decisions, and supervised learning and PPO need one pass. A listener that sees its own choices (`own`)
decides game by game, and then learns from these decisions in one pass.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from icy.core.errors import IncompatibleError
from icy.core.registry import LISTENER
from icy.s2b.agents.dealt import DealtGames, generalized_advantages, log_of, normalised, of_like_length, rewards
from icy.s2b.agents.memories.dealt_learning import DealtLearning, Sampled
from icy.s2b.game import REWARDS
from icy.s2b.settings import GameSettings

from .network import Network, NetworkPlayer, NetworkSettings, Scored
from .observations import NEVER, Actions, Observation

READ_TOGETHER = 32  # episodes; larger groups are not faster and need more padding
# The smaller LSTM with the smaller encoder of the papers: of the papers' combinations, it learns most per minute.
DEFAULTS = NetworkSettings.preset("near32", core="LSTM", head="policy", mask="none")


class CoreListener(nn.Module):
    """Listener with a network, which decides about dealt episodes.

    Args:
        game: settings of the game.
        settings: settings of the network; by default an LSTM of 256 and 128 after the encoders of the authors' later
            program.
        own: whether the listener sees its previous choice and the result and reward of its previous decision.

    Raises:
        IncompatibleError: the rule of legal actions is not "paper", or the network has extra input.
    """

    def __init__(self, game: GameSettings, settings: NetworkSettings | None = None, own: bool = False) -> None:
        super().__init__()
        self.game, self.own = game, own
        if game.masks != "paper":
            raise IncompatibleError(
                f"With masks '{game.masks}' the listener also receives messages outside the rounds, and dealt games "
                "do not hold these; take masks 'paper'."
            )
        self.network = Network(Actions.of_role(game, LISTENER), settings or DEFAULTS)
        if self.network.settings.extra:
            raise IncompatibleError("Dealt games have no values for extra input of a network; take extra=0.")

    def forward(self, games: DealtGames) -> Float[Tensor, "batch game decision"]:
        """Return the logits of all decisions in whole episodes; see `scored`."""
        return self.scored(games)[..., :-1]

    def scored(self, games: DealtGames) -> Float[Tensor, "batch game score"]:
        """Return the logits of all decisions in whole episodes, followed by the state value in the last column.

        A listener with `own` sees the decisions in `games.decided`. If this is None, it takes the most likely
        decisions.
        """
        if self.own and games.decided is None:
            return self.play(games)[0]
        return of_like_length(self._unrolled, games, -(-len(games) // READ_TOGETHER))

    def _unrolled(self, games: DealtGames) -> Tensor:
        scored, _ = self.network.unroll(self.observations(games), self.network.start(len(games)))
        every, rounds = self.game.rounds + 2, self.game.rounds
        return self._of_decisions(Scored(scored.scores[rounds::every], scored.value[rounds::every])).transpose(0, 1)

    def _of_decisions(self, scored: Scored) -> Tensor:
        return torch.cat([scored.scores[..., : self.game.decisions], scored.value[..., None]], -1)

    def play(
        self, games: DealtGames, random: torch.Generator | None = None
    ) -> tuple[Float[Tensor, "batch game score"], Int[Tensor, "batch game"]]:
        """Decide game by game, and return the scores (see `scored`) and the decisions.

        Args:
            games: the games. The field `decided` is not used.
            random: generator to sample decisions with; by default the most likely decision is taken.
        """
        state = self.network.start(len(games))
        decided, scores = torch.full_like(games.answers, NEVER), []
        for number in range(games.answers.shape[1]):
            seen = self.observations(replace(games, decided=decided), number, number + 1)
            scored, state = self.network.unroll(seen, state)
            scores.append(self._of_decisions(Scored(scored.scores[-1], scored.value[-1])))
            logits = scores[-1][:, :-1].detach()
            best = logits.argmax(-1)
            chosen = best if random is None else torch.multinomial(logits.softmax(-1), 1, generator=random)[:, 0]
            decided = decided.index_copy(1, torch.tensor([number], dtype=torch.int64, device="cpu"), chosen[:, None])
        return torch.stack(scores, 1), decided

    def player(self) -> NetworkPlayer:
        """Return a player that takes the most likely decision at each step."""
        return NetworkPlayer(self.network, own=self.own)

    def observations(self, games: DealtGames, first: int = 0, end: int | None = None) -> Observation:
        """Return the listener's observations at all steps of games first..end - 1, up to the last decision, [T, B].

        A game's steps begin with the feedback on the previous game, if there is one, because the listener sees it after
        its decision.

        Args:
            games: dealt games.
            first: number of the first game.
            end: number after the last game; None: the end of the longest episode.
        """
        game, actions = self.game, self.network.actions
        part = _Part(game.rounds, first, end)
        stimuli, there = games.stimuli.flatten(2), (*games.query[:, part.games].shape, game.rounds + 2)
        every = games.messages.unflatten(-1, (game.rounds, game.length))
        messages, again = every[:, part.games], part.before(every[:, :, -1]) * self.network.settings.hold
        option, none = torch.arange(actions.width, device="cpu"), actions.width - 1
        may = (part.steps == game.rounds)[:, None] ^ (option == none)
        observed = Observation(
            stimulus=part.rows(part.spread(part.before(games.feedback.flatten(2)), stimuli[:, part.games])),
            message=part.rows(torch.cat([again[:, :, None], torch.zeros_like(messages[:, :, :1]), messages], 2)),
            speaks=part.rows(torch.zeros(there, dtype=torch.bool, device="cpu")),
            query=part.rows(part.spread(part.before(games.query), games.query[:, part.games])),
            round=part.rows((part.steps % (game.rounds + 2)).expand(there)),
            **part.own(games, none),
            legal=part.rows(may.expand(*there, -1)),
            extra=part.rows(torch.zeros(*there, 0, dtype=torch.float32, device="cpu")),
            fresh=part.rows(torch.zeros(there, dtype=torch.bool, device="cpu")),
        )
        observed.fresh[0] = first == 0
        return observed if self.own else observed.without_own()


class _Part:
    """Arranges values per game as values per step. A game's steps are the previous game's feedback and rounds 0..N.

    Args:
        rounds: number of messages in a game, N.
        first: number of the first game.
        end: number after the last game.
    """

    def __init__(self, rounds: int, first: int, end: int | None) -> None:
        self.rounds, self.first, self.games = rounds, first, slice(first, end)
        self.steps = torch.arange(rounds + 2, device="cpu") - 1  # -1: feedback on the previous game

    def before(self, of_games: Tensor, nothing: float = 0) -> Tensor:
        """Shift values by one game: each game gets the previous game's value, [B, g, ...], the first `nothing`."""
        return torch.cat([torch.full_like(of_games[:, :1], nothing), of_games[:, :-1]], 1)[:, self.games]

    def spread(self, before: Tensor, now: Tensor) -> Tensor:
        """Combine values for the feedback step (`before`) and for all rounds (`now`), [B, g, N + 2, ...]."""
        rounds = now[:, :, None].expand(-1, -1, self.rounds + 1, *[-1] * (now.dim() - 2))
        return torch.cat([before[:, :, None], rounds], 2)

    def rows(self, of_steps: Tensor) -> Tensor:
        """Concatenate the steps of games, [T, B, ...]. The first game has no feedback step."""
        return of_steps.flatten(1, 2).transpose(0, 1)[self.first == 0 :]

    def own(self, games: DealtGames, none: int) -> dict[str, Tensor]:
        """Return the parts of an observation that depend on the listener's own decisions."""
        known = torch.full_like(games.answers, NEVER) if games.decided is None else games.decided
        decided, right = self.before(known, NEVER), 1 * self.before(known == games.answers)
        pay = torch.tensor(REWARDS, dtype=torch.float32, device="cpu")
        reward = pay[1 * self.before(games.query), right] * (decided != NEVER)
        result = (1 + right) * (decided != NEVER)
        previous = self.spread(decided, torch.full_like(decided, none))
        if self.first == 0:
            previous[:, 0, 1] = NEVER
        return {
            "result": self.rows(self.spread(result, result)),
            "reward": self.rows(self.spread(reward, reward)),
            "earned": self.rows(self.spread(reward, 0 * reward)),
            "previous": self.rows(previous[..., None]),
        }


# -- training ----------------------------------------------------------------------------------------------------------


# Settings of supervised learning that differ from the defaults. Batches are small: cores then learn more per game.
SUPERVISED: dict[str, Any] = {
    "learner": "supervised",
    "updates": 6000,
    "episodes": 16,
    "minibatch": 16,
    "learning_rate": 2e-3,
    "decay": 0.5,
}


@dataclass(frozen=True, eq=False)
class Valued(Sampled):
    """Sampled decisions with their returns, the targets of the state values.

    Attributes:
        returned: the return of each decision.
    """

    returned: Float[Tensor, "batch game"]


class CoreLearning(DealtLearning):
    """Training of a listener with a core on dealt episodes; see DealtLearning."""

    model: CoreListener

    def listener(self) -> NetworkPlayer:
        """Return a player with the listener in its current state."""
        return self.model.player()

    def _decided(self, games: DealtGames) -> tuple[Tensor, Tensor]:
        """Sample decisions; return the scores of whole episodes, [B, G, decisions + 1], and the decisions, [B, G]."""
        if self.model.own:
            return self.model.play(games, self.random)
        scores = self.model.scored(games)
        chances = scores[..., :-1].softmax(-1).flatten(0, 1)
        return scores, torch.multinomial(chances, 1, generator=self.random).view(scores.shape[:2])

    def _drawn(self, games: DealtGames) -> tuple[Tensor, Tensor]:
        scores, drawn = self._decided(games)
        return scores[..., :-1].log_softmax(-1), drawn

    @torch.no_grad()
    def _sample(self, games: DealtGames) -> Sampled:
        """Sample the model's decisions in all games and compute their advantages."""
        if self.settings.baseline == "phase":
            return super()._sample(games)
        scores, drawn = self._decided(games)
        paid, values = rewards(drawn == games.answers, games), scores[..., -1]
        gain = generalized_advantages(paid, values, games.there, self.settings.discount, self.settings.trace)
        log = log_of(scores[..., :-1].log_softmax(-1), drawn)
        return Valued(drawn, log, normalised(gain - gain[games.there].mean(), games), gain + values)

    def _loss(self, games: DealtGames, sampled: Sampled | None) -> Tensor:
        """Return the loss; see DealtLearning. The listener itself groups episodes of similar length."""
        scores = self.model.scored(games if sampled is None else replace(games, decided=sampled.drawn))
        logs = scores[..., :-1].log_softmax(-1)
        if sampled is None:
            return self._supervised(games, logs)
        loss = self._ppo(games, logs, sampled)
        if isinstance(sampled, Valued):
            error = (scores[..., -1] - sampled.returned)[games.there].square().mean()
            loss = loss + self.settings.value_weight * error
        return loss
