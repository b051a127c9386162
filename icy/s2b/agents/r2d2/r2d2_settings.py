"""Settings of R2D2: how an agent plays, stores and learns, with the presets of the papers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from icy.core.errors import InvalidSettingError, require_known
from icy.core.fields import check_fields, setting
from icy.core.registry import LISTENER, SPEAKER, registry
from icy.s2b.agents.networks.network import NetworkSettings, ReconstructionSettings


@dataclass(frozen=True, kw_only=True)
class R2D2Settings:
    """Settings of R2D2. Defaults are from MetaRG22 where it gives them.

    Attributes:
        network: settings of the networks.
        players: the players that learn: "listener" or "both".
        shared: whether both players share one network. The network gets the role as input, and has the options of both
            players.
        sad: whether each player sees the other's greedy choice, if both learn.
        speaker: name of the speaker if only the listener learns; this speaker must not have a memory.
        reconstruction: settings of the reconstruction loss; None to train without it.
        observations: length of the training in observations: steps, summed over all episodes.
        observations_per_update: number of observations from one update to the next.
        learning_starts: number of observations before the first update.
        actors: number of episodes that are played at once.
        length: number of steps of a sequence, including the burn-in.
        overlap: number of steps that consecutive sequences share.
        burn_in: number of steps at the start of a sequence that only update the core's state.
        steps: number of rewards in a target, n.
        capacity: capacity of the replay buffer in observations.
        batch: number of sequences in an update.
        priority: exponent of priorities.
        importance: exponent of importance weights.
        eta: weight of a sequence's highest error in its priority; the mean error has weight 1 - eta.
        discount: discount of later rewards.
        double: double Q-learning: the network selects the next option, and the target network gives its value.
        greedy: the options that this selection considers: "legal": legal options only; "raw": all options, as in the
            authors' program.
        tail: treatment of steps with fewer than n following rewards in their sequence: "masked": left out; "short":
            their targets have fewer rewards. A sequence's last step is always left out.
        learning_rate: learning rate of Adam.
        adam_epsilon: epsilon of Adam.
        max_grad_norm: largest norm of a gradient.
        target: update of the target network: "hard": a copy every `target_interval` updates; "soft": a step towards the
            network by 1 / `target_interval` at every update.
        target_interval: number of updates, see `target`.
        epsilon: probability x with which the first actor explores. Actor i of A explores with probability
            x^(1 + e i / (A - 1)).
        explore_exponent: the exponent e in this probability.

    Raises:
        UnknownNameError, InvalidSettingError: settings that are not accepted.
    """

    old_names: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"rate": "learning_rate", "least": "learning_starts", "explore": "epsilon", "clip": "max_grad_norm"}
    )

    network: NetworkSettings = field(default_factory=NetworkSettings)
    players: Literal["listener", "both"] = setting("listener", "players that learn")
    shared: bool = True
    sad: bool = False
    speaker: str = "posdis"
    reconstruction: ReconstructionSettings | None = None
    observations: int = setting(5_000_000, least=1)
    observations_per_update: int = setting(320, least=1)
    learning_starts: int = setting(2_000, least=0)
    actors: int = setting(32, least=1)
    length: int = 20
    overlap: int = setting(10, least=0)
    burn_in: int = setting(10, least=0)
    steps: int = setting(3, least=1)
    capacity: int = 50_000
    batch: int = setting(32, least=1)
    priority: float = setting(0.9, least=0)
    importance: float = setting(0.6, least=0)
    eta: float = setting(0.9, least=0, most=1)
    discount: float = setting(0.997, least=0, most=1)
    double: bool = True
    greedy: Literal["legal", "raw"] = setting("legal", "greedy option")
    tail: Literal["masked", "short"] = setting("masked", "tail of sequences")
    learning_rate: float = setting(6.25e-5, above=0)
    adam_epsilon: float = setting(1e-12, above=0)
    max_grad_norm: float = setting(5.0, above=0)
    target: Literal["hard", "soft"] = setting("hard", "update of target networks")
    target_interval: int = setting(2_500, least=1)
    epsilon: float = setting(0.4, least=0, most=1)
    explore_exponent: float = setting(7.0, least=0)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.players == LISTENER:
            registry.get(self.speaker, SPEAKER)
            if self.sad:
                raise InvalidSettingError("sad needs a speaker that learns; take players='both' or sad=False.")
        if not self.burn_in < self.length - 1:
            raise InvalidSettingError(
                f"A burn-in of {self.burn_in} leaves no step to learn from in a sequence of {self.length} steps; take "
                "a shorter burn_in, or a longer length."
            )

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "R2D2Settings":
        """Return the settings of a preset, with changes.

        Args:
            name: "metarg22" or "metarg24": as printed in both papers; "near32": as in the authors' later program.
            **changes: settings by name.

        Raises:
            UnknownNameError: no preset has this name.

        Example:
            >>> from icy.s2b.agents.r2d2.r2d2_settings import R2D2Settings
            >>> later = R2D2Settings.preset("near32", observations=500_000)
            >>> later.length, later.burn_in, later.steps, later.network.core
            (40, 20, 7, 'LSTM-512')
        """
        require_known("preset of R2D2", name, PRESETS)
        return replace(PRESETS[name], **changes)

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that learn."""
        return (SPEAKER, LISTENER) if self.players == "both" else (LISTENER,)

    @property
    def first_update(self) -> int:
        """Number of observations before the first update."""
        return max(self.learning_starts, self.length * self.actors)

    @property
    def updates(self) -> int:
        """Number of updates."""
        return max(0, (self.observations - self.first_update) // self.observations_per_update + 1)


PRESETS: Mapping[str, R2D2Settings] = {
    "metarg22": R2D2Settings(),
    "metarg24": R2D2Settings(),
    "near32": R2D2Settings(
        network=NetworkSettings.preset("near32"),
        length=40,
        overlap=20,
        burn_in=20,
        steps=7,
        capacity=10_000,
        batch=64,
        greedy="raw",
        target="soft",
        explore_exponent=2.0,
    ),
}
