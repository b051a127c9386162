"""The recall task with the interface of the referential game, for a listener without a speaker."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np

from icy.core.types import State
from icy.s2b.agents.networks.network_player import NetworkPlayer
from icy.s2b.episode_streams import EpisodeStreams
from icy.s2b.evaluation import episode_seeds
from icy.s2b.players.interface import Seat
from icy.s2b.recall import ASKED, SHOWN, BatchedRecall, RecallSettings, RecallTurn
from icy.s2b.turn import FAILURE, SUCCESS, Seen, Turn

AT_ONCE = 250  # episodes of an evaluation


class RecallTable:
    """The recall task for B episodes, with the interface of the referential game.

    Its turns are turns of that game without messages, so that the same agents, replay buffers and evaluations work.

    Args:
        settings: settings of the task.
        episodes: number of episodes, B.
        autoreset: begin the next episode at the step after an episode ends.
    """

    def __init__(self, settings: RecallSettings, episodes: int, autoreset: bool = False) -> None:
        self.task = BatchedRecall(settings, episodes=episodes, autoreset=autoreset)
        self._idle = np.zeros(episodes, dtype=bool)

    def reset(self, seeds: Iterable[int]) -> Turn:
        """Begin one episode per seed."""
        self._idle[:] = False
        return self._turned(self.task.reset(seeds=seeds))

    def step(self, said: Any = None, decided: Any = None, answered: Any = None) -> Turn:
        """Play one step with answers `decided`, [B]. Messages, and answers without a question, are ignored."""
        now = self._require_turn()
        has_question = (now.asked == ASKED) & ~now.done
        turn = self.task.step(np.where(has_question, decided, self.task.settings.nothing))
        self._idle = now.done & turn.done
        return self._turned(turn)

    def state(self) -> State:
        """Return the state for `load`."""
        return {"task": self.task.state(), "idle": self._idle.tolist()}

    def load(self, state: Mapping[str, Any]) -> Turn:
        """Continue from a state that `state` returned, and return the turn at which it was taken."""
        self._idle = np.array(state["idle"], dtype=bool)
        return self._turned(self.task.load(state["task"]))

    def _require_turn(self) -> RecallTurn:
        assert self.task.turn is not None
        return self.task.turn

    def _turned(self, turn: RecallTurn) -> Turn:
        settings, count = self.task.settings, self.task.episodes
        no = np.zeros(count, dtype=bool)
        earned = np.select([turn.result == SUCCESS, turn.result == FAILURE], [settings.right, settings.wrong], 0.0)
        seen = Seen(
            stimulus=turn.stimulus[:, None],
            message=np.zeros((count, settings.length), dtype=np.int64),
            query=no,
            round=turn.asked,
            result=turn.result,
            reward=earned.astype(np.float32),
            fresh=(self.task.game_number == 0) & (turn.asked == SHOWN),
            may_speak=no,
            may_decide=(turn.asked == ASKED) & ~turn.done,
            over=turn.done,
            feedback=no,
            idle=self._idle,
        )
        return Turn(seen, seen, turn.reward, turn.done, no, no)


def recall_scores(player: NetworkPlayer, settings: RecallSettings, episodes: int, seed: int) -> dict[str, float]:
    """Evaluate a player in the recall task: accuracies, averaged over the episodes of a seed.

    Args:
        player: the agent, as a listener.
        settings: settings of the task.
        episodes: number of episodes.
        seed: seed of the evaluation, see `icy.s2b.evaluate`.

    Returns:
        `zsct`, the accuracy in the last shot, and `support`, the accuracy in the first, under the names that trainings
        use. With a reconstruction head, also `reconstructed`, the fraction of stimulus components that the head
        predicts from the core's state.
    """
    seeds = episode_seeds(seed, episodes)
    scores: dict[str, list[Any]] = {"zsct": [], "support": [], "reconstructed": []}
    for begin in range(0, episodes, AT_ONCE):
        some = seeds[begin : begin + AT_ONCE]
        table = RecallTable(settings, len(some))
        turn = table.reset(some)
        player.begin(Seat(cast(Any, settings), len(some), EpisodeStreams.of_seeds(some)))
        while not turn.done.all():
            turn = table.step(decided=player.act(turn.listener).decision)
        scores["zsct"] += table.task.accuracy().tolist()
        scores["support"] += table.task.accuracy(0).tolist()
        if player.reconstruction is not None:
            scores["reconstructed"] += [player.reconstructed] * len(some)
    return {name: float(np.mean(values)) for name, values in scores.items() if values}
