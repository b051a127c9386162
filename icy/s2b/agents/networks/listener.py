"""Networks with a core as listeners of dealt episodes: all steps of an episode in one pass.

A listener with a network meets N + 2 observations a game: rounds 0..N, and what the speaker saw. They are known as soon
as an episode is dealt, but for the results, the rewards and the choices of the listener's own before. These tell
nothing that the rest does not, so by default the listener does not see them; then nothing that it meets depends on what
it decides, and supervised learning and learning by reward are one pass. A listener that sees them decides game by game,
and learns from what it has decided in one pass.
"""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from icy.core.errors import IncompatibleError
from icy.core.registry import LISTENER
from icy.s2b.agents.dealt import DealtGames, of_like_length
from icy.s2b.game import REWARDS
from icy.s2b.settings import GameSettings

from .actions import NEVER, Actions
from .network import Network, NetworkSettings, Scored
from .network_player import NetworkPlayer
from .observations import Observation

READ_TOGETHER = 32  # episodes, as more at once are no faster, and then the longer ones are with their like
# The smaller of the papers' LSTMs behind the smaller of their encoders: of those, what learns most in a minute.
DEFAULTS = NetworkSettings.preset("near32", core="LSTM", head="policy", mask="none")


class CoreListener(nn.Module):
    """A network that reads dealt episodes.

    Args:
        game: settings of the game.
        settings: settings of the network; by default an LSTM of 256 and 128 behind the encoders of the
            authors' later program.
        own: whether the listener sees the results, the rewards and the choices of its own before.

    Raises:
        IncompatibleError: a game in which more is heard than dealt games hold, or a network with further input.
    """

    def __init__(self, game: GameSettings, settings: NetworkSettings | None = None, own: bool = False) -> None:
        super().__init__()
        self.game, self.own = game, own
        if game.masks != "paper":
            raise IncompatibleError(
                f"With masks '{game.masks}' a speaker is heard beside the rounds, which dealt games do not hold; take "
                "masks 'paper'."
            )
        self.network = Network(Actions.of_role(game, LISTENER), settings or DEFAULTS)
        if self.network.settings.extra:
            raise IncompatibleError("Dealt games hold nothing for further input of a network; take extra=0.")

    def forward(self, games: DealtGames) -> Float[Tensor, "batch game decision"]:
        """Return the logits of all decisions of whole episodes; see `scored`."""
        return self.scored(games)[..., :-1]

    def scored(self, games: DealtGames) -> Float[Tensor, "batch game score"]:
        """Return the logits of all decisions of whole episodes, and behind them the value of the state.

        A listener that sees what it has done is taken to have decided what `games.decided` says, or else what is
        likeliest.
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
        """Decide game after game; return what `scored` does, and what was decided.

        Args:
            games: the games, of which decisions are not read.
            random: draws decisions; by default the likeliest is taken.
        """
        state = self.network.start(len(games))
        decided, scores = torch.full_like(games.answers, NEVER), []
        for number in range(games.answers.shape[1]):
            seen = self.observations(replace(games, decided=decided), number, number + 1)
            scored, state = self.network.unroll(seen, state)
            scores.append(self._of_decisions(Scored(scored.scores[-1], scored.value[-1])))
            logits = scores[-1][:, :-1].detach()
            likeliest = logits.argmax(-1)
            chosen = likeliest if random is None else torch.multinomial(logits.softmax(-1), 1, generator=random)[:, 0]
            decided = decided.index_copy(1, torch.tensor([number], dtype=torch.int64, device="cpu"), chosen[:, None])
        return torch.stack(scores, 1), decided

    def player(self) -> NetworkPlayer:
        """Return it as a player, which decides step by step what is likeliest."""
        return NetworkPlayer(self.network, own=self.own)

    def observations(self, games: DealtGames, first: int = 0, end: int | None = None) -> Observation:
        """Return what the listener meets at every step of some games, up to the last decision, [T, B].

        It is shown what the speaker saw after a decision: so the steps of a game begin with what it is shown of the
        game before, if there is one.

        Args:
            games: dealt games.
            first: number of the first of them.
            end: number of the one behind the last; by default the end of the longest episode.
        """
        game, actions = self.game, self.network.actions
        part = _Part(game.rounds, first, end)
        stimuli, there = games.stimuli.flatten(2), (*games.query[:, part.games].shape, game.rounds + 2)
        every = games.messages.unflatten(-1, (game.rounds, game.length))
        messages, again = every[:, part.games], part.before(every[:, :, -1]) * self.network.settings.hold
        option, none = torch.arange(actions.width, device="cpu"), actions.width - 1
        may = (part.steps == game.rounds)[:, None] ^ (option == none)
        found = Observation(
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
        found.fresh[0] = first == 0
        return found if self.own else found.without_own()


class _Part:
    """The steps of some games: what is shown of the game before, and then rounds 0..N, for each.

    Args:
        rounds: number of messages in a game, N.
        first: number of the first game.
        end: number of the one behind the last.
    """

    def __init__(self, rounds: int, first: int, end: int | None) -> None:
        self.rounds, self.first, self.games = rounds, first, slice(first, end)
        self.steps = torch.arange(rounds + 2, device="cpu") - 1  # -1: what is shown of the game before

    def before(self, of_games: Tensor, nothing: float = 0) -> Tensor:
        """Return for each game what was of the one before, [B, g, ...]."""
        return torch.cat([torch.full_like(of_games[:, :1], nothing), of_games[:, :-1]], 1)[:, self.games]

    def spread(self, before: Tensor, now: Tensor) -> Tensor:
        """Return one thing at what is shown of the game before, and another in all rounds, [B, g, N + 2, ...]."""
        rounds = now[:, :, None].expand(-1, -1, self.rounds + 1, *[-1] * (now.dim() - 2))
        return torch.cat([before[:, :, None], rounds], 2)

    def rows(self, of_steps: Tensor) -> Tensor:
        """Return steps of games as steps of episodes, [T, B, ...]; nothing comes before the first game."""
        return of_steps.flatten(1, 2).transpose(0, 1)[self.first == 0 :]

    def own(self, games: DealtGames, none: int) -> dict[str, Tensor]:
        """Return what comes of the listener's own decisions, as an observation tells it."""
        known = torch.full_like(games.answers, NEVER) if games.decided is None else games.decided
        decided, right = self.before(known, NEVER), 1 * self.before(known == games.answers)
        reward = torch.tensor(REWARDS, dtype=torch.float32, device="cpu")[1 * self.before(games.query), right] * (
            decided != NEVER
        )
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
