"""The reconstruction loss: predict the stimulus and the message from the core's state (MetaRG22)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.fields import CheckedFields, setting
from icy.s2b.settings import GameSettings, Sizes

from .network import perceptron
from .observations import Observation


@dataclass(frozen=True, kw_only=True)
class ReconstructionSettings(CheckedFields):
    """Settings of the reconstruction loss.

    Attributes:
        weight: weight of the reconstruction loss relative to the loss of values.
        period: number of updates from one use of the loss to the next.
        hidden: size of the predictor's hidden layer.
        message: whether the tokens of the message are predicted as well.
        near: largest absolute error of a prediction that counts as right.
    """

    weight: float = setting(1.0, "setting weight of the reconstruction", above=0)
    period: int = setting(2, "setting period of the reconstruction", least=1)
    hidden: int = setting(512, "setting hidden of the reconstruction", least=1)
    message: bool = False
    near: float = setting(0.05, "setting near of the reconstruction", above=0)


class ReconstructionHead(nn.Module):
    """Predicts the stimulus of a step, and optionally the message, from the core's state after the step.

    Args:
        latent: width of the core's latent state.
        game: settings of the game.
        settings: settings of the loss.
    """

    def __init__(self, latent: int, game: GameSettings | Sizes, settings: ReconstructionSettings) -> None:
        super().__init__()
        self.settings, self.tokens = settings, game.vocab_size + 1
        self.stimulus = game.slots * game.width
        words = game.length * self.tokens if settings.message else 0
        self.hidden = perceptron(latent, (settings.hidden,))
        self.out = nn.Linear(settings.hidden, self.stimulus + words)

    def forward(self, latents: Float[Tensor, "*lead latent"]) -> Float[Tensor, "*lead predicted"]:
        """Return the predicted stimuli, followed by the logits of the tokens, position by position."""
        predicted: Tensor = self.out(self.hidden(latents))
        return predicted

    def loss(
        self, latents: Float[Tensor, "*lead latent"], seen: Observation, counted: Bool[Tensor, "*lead"]
    ) -> Float[Tensor, ""]:
        """Return the weighted loss over steps in `counted`: squared error of stimuli plus cross-entropy of tokens."""
        predicted, some = self(latents[counted]), seen[counted]
        loss = F.mse_loss(predicted[:, : self.stimulus], some.stimulus)
        if self.settings.message:
            logits = predicted[:, self.stimulus :].unflatten(-1, (-1, self.tokens))
            loss = loss + F.cross_entropy(logits.flatten(0, 1), some.message.flatten())
        weighed: Tensor = self.settings.weight * loss
        return weighed

    @torch.no_grad()
    def right(self, latents: Float[Tensor, "*lead latent"], seen: Observation) -> Float[Tensor, "*lead"]:
        """Return, for each step, the fraction of stimulus components with an error below `near`."""
        predicted = self(latents)[..., : self.stimulus]
        close: Tensor = (predicted - seen.stimulus).abs() < self.settings.near
        return close.float().mean(-1)
