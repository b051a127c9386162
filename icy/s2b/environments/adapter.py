"""Adapters that give batched games and recall tasks the actions, observations and infos of Gymnasium."""

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any, Literal, TypeVar, Unpack, get_args

import numpy as np
from gymnasium import spaces
from jaxtyping import Int64, UInt8
from numpy.typing import NDArray

from icy.config.requests import names
from icy.core.checks import true_or_false
from icy.core.errors import IcyError, require_known, unknown
from icy.core.registry import LISTENER, PLAYERS, SPEAKER
from icy.s2b.channel import Array
from icy.s2b.game import SUCCESS, BatchedGame, Turn
from icy.s2b.options import GameOptions, RecallOptions
from icy.s2b.players.interface import Player, seated
from icy.s2b.recall import ASKED, BatchedRecall, RecallSettings, RecallTurn
from icy.s2b.settings import GameSettings, WithCompat
from icy.s2b.transcript import Transcript, picture

from .spaces import (
    MESSAGES,
    WIDE,
    ActionForm,
    ActionsName,
    Arrays,
    Infos,
    Masks,
    MessagesName,
    ObservationForm,
    ObservationsName,
    Observed,
    Space,
    observation_space,
    observed,
    privileged,
    whole_actions,
)

RenderMode = Literal["ansi", "rgb_array"]
RENDER_MODES = get_args(RenderMode)
METADATA: Infos = {"render_modes": list(RENDER_MODES), "render_fps": 1}
Rendered = str | UInt8[NDArray[np.uint8], "height width 3"] | None
NO_SCORE = -1.0  # score in infos before the first game of its phase

Settings = TypeVar("Settings", bound=WithCompat)


def checked_mode(render_mode: str | None, modes: Sequence[str] = RENDER_MODES) -> str | None:
    """Check a render mode, and return it.

    Raises:
        UnknownNameError: an unknown render mode.
    """
    if render_mode is not None and render_mode not in modes:
        raise unknown("render mode", str(render_mode), modes)
    return render_mode


def settings_of(
    kind: type[Settings], settings: Settings | None, given: Mapping[str, Any], adapter: type, own: Sequence[str] = ()
) -> Settings:
    """Return the settings of an environment from an instance or from keyword arguments.

    Args:
        kind: class of the settings.
        settings: an instance, or None.
        given: keyword arguments.
        adapter: class of the adapter, whose keywords are options of the environment.
        own: further arguments of the environment.

    Raises:
        UnknownNameError: a name that is not a setting or another option of the environment.
        InvalidSettingError: settings that are not accepted.
    """
    options = [p.name for p in signature(adapter).parameters.values() if p.kind is p.KEYWORD_ONLY]
    known = [*own, "settings", *options, *names(kind), "compat"]
    for name in given:
        require_known("option of the environment", name, known)
    return kind.of(settings, **given)


class GameAdapter:
    """Adapts a batched game to the actions and observations of Gymnasium.

    Args:
        settings: settings of the game; or give them by name.
        episodes: number of episodes to play at once, B.
        autoreset: see BatchedGame.
        speaker: name of a speaker, or a `Player`, that is part of the environment; then only the listener acts, by
            `act`.
        actions: format of actions, see ActionForm.
        messages: format of observed messages, "one-hot" or "tokens".
        latents: whether infos include privileged facts, see `privileged`.
        observations: format of observations, "dict" or "box", see ObservationForm.
        observe_mask: whether observations include the action mask, see ObservationForm.
        render_mode: None, "ansi" or "rgb_array".
        **given: settings by name, see GameSettings.

    Raises:
        IcyError: an option that is not accepted.
    """

    def __init__(
        self,
        settings: GameSettings | None,
        episodes: int = 1,
        autoreset: bool = False,
        speaker: str | Player | None = None,
        /,
        *,
        actions: ActionsName = "factored",
        messages: MessagesName = "one-hot",
        latents: bool = False,
        observations: ObservationsName = "dict",
        observe_mask: bool = False,
        render_mode: RenderMode | None = None,
        **given: Unpack[GameOptions],
    ) -> None:
        own = ["num_envs"] * autoreset + ["speaker"] * (speaker is not None)
        settings = settings_of(GameSettings, settings, given, type(self), own)
        checked_mode(render_mode)
        true_or_false("latents", latents)
        require_known("way to observe messages", messages, MESSAGES)
        self.settings, self.latents, self.messages = settings, latents, messages
        self.game = BatchedGame(settings, episodes=episodes, autoreset=autoreset)
        self.actions = {player: ActionForm(settings, player, actions) for player in PLAYERS}
        self.features = {player: observation_space(settings, player, messages) for player in PLAYERS}
        self.forms = {
            player: ObservationForm(self.features[player], self.actions[player].choices, observations, observe_mask)
            for player in PLAYERS
        }
        self.spaces: tuple[Space, Space] = self.forms[LISTENER].space, self.actions[LISTENER].space  # of the listener
        self.illegal = self._no_illegal()
        self._masks: dict[str, Masks] = {}
        self.speaker = speaker
        self._seated: Player | None = None  # the inner speaker
        self.render_mode: str | None = render_mode
        self.transcript = None if render_mode is None else Transcript(self.game)

    def reset(self, seed: int | None = None, seeds: Sequence[int] | None = None) -> Turn:
        """Begin an episode in every slot; see BatchedGame.reset.

        With new seeds, the inner speaker starts again (`Player.begin`); otherwise it keeps its state.
        """
        turn = self.game.reset(seed, seeds)
        if self.speaker is not None and (self._seated is None or seed is not None or seeds is not None):
            self._seated = seated(self.speaker, SPEAKER, self.game)
        self.illegal, self._masks = self._no_illegal(), {}
        if self.transcript is not None:
            self.transcript.begin(turn)
        return turn

    def _no_illegal(self) -> dict[str, Array]:
        return {player: np.zeros(self.game.episodes, dtype=np.int64) for player in PLAYERS}

    def step(self, given: Mapping[str, object]) -> Turn:
        """Play one step with the actions of each player. Actions have a leading axis of episodes.

        Raises:
            InvalidSettingError: actions have the wrong shape, or are not whole numbers.
        """
        speaker, listener = (
            self.actions[player].checked_actions(given[player], self.game.episodes) for player in PLAYERS
        )
        self._count_illegal(SPEAKER, speaker)
        return self._step(self.actions[SPEAKER].read(speaker).message, listener)

    def act(self, actions: object) -> Turn:
        """Play one step: the inner speaker acts by itself, and the listener takes `actions`.

        Raises:
            IcyError: before the first reset, or actions with the wrong shape.
        """
        if self._seated is None:
            raise IcyError("The game has not begun; call reset() first.")
        said = self._seated.act(self.game.turn.speaker).message
        return self._step(said, self.actions[LISTENER].checked_actions(actions, self.game.episodes))

    def _step(self, said: Array, listener: NDArray[np.int64]) -> Turn:
        """Play one step with the speaker's tokens [B, L] and the listener's action."""
        before = self.game.turn
        self._count_illegal(LISTENER, listener)
        heard = self.actions[LISTENER].read(listener)
        turn = self.game.step(said, heard.decision, heard.message)
        self.illegal = {player: counts * ~turn.speaker.fresh for player, counts in self.illegal.items()}
        self._masks = {}
        if self.transcript is not None:
            self.transcript.add(before, turn, said, heard.decision)
        return turn

    def _count_illegal(self, player: str, given: NDArray[np.int64]) -> None:
        """Count actions that the mask does not allow, whether or not the game ignores them."""
        forbidden = self.actions[player].forbidden(given, self.masks(player))
        self.illegal[player] = self.illegal[player] + (forbidden & ~self.game.turn.done)

    def masks(self, player: str = LISTENER) -> Masks:
        """Return a player's action masks; before the first reset, the masks of an episode's first step."""
        if player not in self._masks:
            begun = self.game.begun
            turn = self.game.turn if begun else BatchedGame(self.settings, episodes=self.game.episodes).reset(0)
            self._masks[player] = self.actions[player].masks(turn.seen_by(player))
        return self._masks[player]

    def render(self) -> Rendered:
        """Return the last step as text, or a picture of the last lines; None without a render mode."""
        if self.transcript is None:
            return None
        return self.transcript.text() if self.render_mode == "ansi" else picture(self.transcript.episode_lines)

    def features_of(self, player: str) -> Arrays:
        """Return the features that a player observes, with a leading axis of episodes."""
        return observed(self.game.turn.seen_by(player), player, self.settings, self.messages)

    def observed(self, player: str = LISTENER) -> Observed:
        """Return the observation of a player, with a leading axis of episodes."""
        return self.forms[player].of(self.features_of(player), self.masks(player))

    def infos(self, player: str = LISTENER) -> Arrays:
        """Return the infos of a player, with a leading axis of episodes. The keys are the same at every step.

        Scores cover the episode so far; they are NO_SCORE before the first game of their phase.
        """
        game, scores = self.game, self.game.scores()
        told = {"zsct": scores.zsct, "support_accuracy": scores.support, "yes_rate": scores.yes}
        infos: Arrays = {
            "action_mask": self.masks(player).copy(),
            "game": game.game_number,
            "illegal_actions": self.illegal[player],
            **{name: np.where(np.isnan(score), NO_SCORE, score) for name, score in told.items()},
        }
        return infos | privileged(game) if self.latents else infos

    def nothing(self, player: str) -> Int64[NDArray[np.int64], "..."]:
        """Return the action of a player that does nothing, in all episodes."""
        space = self.actions[player].space
        none = int(getattr(space, "n", 1)) - 1 if self.actions[player].form == "flat" else 0
        return np.full((self.game.episodes, *(space.shape or ())), none, dtype=np.int64)


class RecallAdapter:
    """Adapts recall tasks to the actions, observations and infos of Gymnasium; like GameAdapter.

    Args:
        settings: settings of the task; or give them by name.
        episodes: number of episodes to play at once, B.
        autoreset: see BatchedRecall; such tasks cannot be rendered.
        latents: whether infos include the right answers.
        observations: form of observations, "dict" or "box", see ObservationForm.
        observe_mask: whether observations include the action mask, see ObservationForm.
        render_mode: None, "ansi" or "rgb_array".
        **given: settings by name, see RecallSettings.
    """

    def __init__(
        self,
        settings: RecallSettings | None,
        episodes: int = 1,
        autoreset: bool = False,
        /,
        *,
        latents: bool = False,
        observations: ObservationsName = "dict",
        observe_mask: bool = False,
        render_mode: RenderMode | None = None,
        **given: Unpack[RecallOptions],
    ) -> None:
        settings = settings_of(RecallSettings, settings, given, type(self), ["num_envs"] * autoreset)
        self.task = BatchedRecall(settings, episodes=episodes, autoreset=autoreset)
        self.latents, wide = true_or_false("latents", latents), WIDE if settings.truncate == "none" else 1.0
        features = spaces.Dict(
            {
                "stimulus": spaces.Box(-wide, wide, (settings.width,), np.float32),
                "step": spaces.Discrete(2),
                "previous_result": spaces.Discrete(3),
            }
        )
        self.form = ObservationForm(features, settings.most + 1, observations, observe_mask)
        self.spaces: tuple[Space, Space] = self.form.space, spaces.Discrete(settings.most + 1)
        self.render_mode = checked_mode(render_mode, () if autoreset else RENDER_MODES)
        self._lines: list[str] = []  # text of the first task, line by line

    def reset(self, seed: int | None = None, seeds: Sequence[int] | None = None) -> RecallTurn:
        """Begin an episode in every slot; see BatchedGame.reset."""
        turn = self.task.reset(seed, seeds)
        self._lines = [f"shown {_recall_numbers(turn)}"]
        return turn

    def act(self, actions: object) -> RecallTurn:
        """Play one step in all episodes: an answer at a question, or the action for no answer.

        Raises:
            IcyError: before the first reset, or actions with the wrong shape.
        """
        given = whole_actions(actions, (self.task.episodes,))
        turn = self.task.step(given)
        if self.render_mode is None:
            return turn
        over = bool(turn.done[0])
        if turn.asked[0] == ASKED and not over:
            self._lines.append(f"asked {_recall_numbers(turn)}")
        else:
            result = "right" if turn.result[0] == SUCCESS else "wrong"
            after = "" if over else f"; shown {_recall_numbers(turn)}"
            self._lines.append(f"answered {int(given[0])}, {result}{after}")
        return turn

    def masks(self) -> Masks:
        """Return the action masks, [B, choices]; before the first reset, the masks of an episode's first step."""
        turn = self.task.turn
        asked = np.zeros(self.task.episodes, dtype=bool) if turn is None else (turn.asked == ASKED) & ~turn.done
        mask = np.repeat(asked[:, None], self.task.settings.most + 1, axis=1)
        mask[:, -1] = ~asked
        return mask.astype(np.int8)

    def observed(self) -> Observed:
        """Return observations, with a leading axis of episodes."""
        turn = self.task.turn
        assert turn is not None
        features: Arrays = {"stimulus": turn.stimulus, "step": turn.asked, "previous_result": turn.result}
        return self.form.of(features, self.masks())

    def infos(self) -> Arrays:
        """Return the infos, with a leading axis of episodes. The keys are the same at every step."""
        task = self.task
        infos: Arrays = {
            "action_mask": self.masks(),
            "illegal_actions": task.illegal.copy(),
            "accuracy": task.accuracy(),
            "first_accuracy": task.accuracy(0),
        }
        return infos | {"answer": task.answers} if self.latents else infos

    def render(self) -> Rendered:
        """Return the last step as text, or a picture of the last lines; None without a render mode."""
        if self.render_mode is None:
            return None
        return self._lines[-1] if self.render_mode == "ansi" else picture(self._lines)


def _recall_numbers(turn: RecallTurn) -> str:
    return " ".join(f"{x:+.2f}" for x in turn.stimulus[0].tolist())
