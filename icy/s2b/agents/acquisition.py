"""Ease of acquisition (EoA; MetaRG24): how well a new listener learns the language of a frozen speaker.

The listener is ordinary: it has no memory of an episode, and learns one language by gradient descent in one symbolic
space. The speaker plays an episode and is then frozen. A new listener is trained on the speaker's messages for the
stimuli of the support, and evaluated on its messages for the stimuli of the query. The listeners of many episodes train
as one stack.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from icy.config.settings import TrainingSettings
from icy.core.errors import IncompatibleError, InvalidSettingError, PluginError
from icy.core.fields import check_fields, setting
from icy.core.noise import Noise
from icy.core.progress import progress_to
from icy.core.representations import one_hot
from icy.core.streams import stream_key
from icy.core.surroundings import standard_state
from icy.models.cells import LSTMCell
from icy.models.layers import Linear, SymbolEmbedding
from icy.s2b.channel import regular
from icy.s2b.episode_streams import EpisodeStreams, Reals, Wholes
from icy.s2b.evaluation import ProgressCallback, episode_seeds
from icy.s2b.language_probe import FrozenLanguage, frozen_languages
from icy.s2b.options import GameOptions
from icy.s2b.players.interface import Player
from icy.s2b.settings import GameSettings
from icy.training.gradient import GradientLearner
from icy.training.runners.base import one_thread

if TYPE_CHECKING:
    import pandas as pd

LOSSES = ("hinge", "likelihood")
YES, NO, NOTHING = 0, 1, -1  # decisions, and the padding of a batch
AT_ONCE = 128  # listeners in a stack
OfLanguages = Float64[Reals, " language"]
OfGames = Int64[Wholes, "some game"]
Rows = Int64[Wholes, " some"]  # indices of languages


@dataclass(frozen=True)
class AcquisitionSettings:
    """Settings of the training of one listener. Defaults follow the authors' script as far as it is known.

    Attributes:
        epochs: number of passes over the support.
        batch: number of games in a batch.
        learning_rate: learning rate of Adam.
        width: width of the embeddings of stimuli, messages and tokens.
        hidden: width of the hidden layer of the stimulus encoder.
        loss: "hinge": hinge loss with a margin of 1 between the right and the wrong decision; "likelihood": negative
            log-likelihood of the right decision.
        impatient: if True, the listener decides after every token, and all decisions are trained; otherwise it
            decides only after the last token.
        ratio: fraction of training games in which the listener sees the target's meaning. In evaluations it is half
            of all games.
    """

    epochs: int = setting(512, least=1)
    batch: int = setting(32, least=1)
    learning_rate: float = setting(3e-4, above=0)
    width: int = setting(32, least=1)
    hidden: int = setting(64, least=1)
    loss: str = setting("hinge", among=LOSSES)
    impatient: bool = True
    ratio: float = 0.5

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 < self.ratio < 1:
            raise InvalidSettingError(f"The ratio must be above 0 and below 1, not {self.ratio}.")


Scores = Float[Tensor, "listener game token decision=2"]
Answers = Int[Tensor, "listener game"]


class OrdinaryListener(nn.Module):
    """Listener that scores after each token whether the message describes the stimulus.

    The score is the dot product of an LSTM's output and the stimulus's embedding. Parameters may have leading axes, for
    a stack of listeners (`icy.models.layers`).

    Args:
        width: length of a stimulus.
        length: number of tokens in a message.
        symbols: number of tokens, including the end token.
        settings: settings with the widths of the layers.
    """

    def __init__(self, width: int, length: int, symbols: int, settings: AcquisitionSettings) -> None:
        super().__init__()
        self.parts, self.symbols = [width, length], symbols
        self.see = Linear(width, settings.hidden)
        self.code = Linear(settings.hidden, settings.width)
        self.embed = SymbolEmbedding(symbols, settings.width)
        self.cell = LSTMCell(settings.width, settings.width)
        self.no = nn.Parameter(torch.ones(1))  # the score of "no"

    def forward(self, games: Float[Tensor, "*stack batch number"]) -> Float[Tensor, "*stack batch token decision=2"]:
        """Return the scores of yes and no. Each row of `games` is a stimulus followed by the tokens of a message."""
        stimuli, tokens = games.split(self.parts, -1)
        code = self.code(self.see(stimuli).relu())
        state = self.cell.start(torch.zeros_like(code))
        scores = []
        for token in tokens.long().unbind(-1):
            embedded = self.embed(one_hot(token, self.symbols, code.dtype))
            state = self.cell.step(self.cell.project(embedded), state)
            scores.append((state[0] * code).sum(-1))
        yes = torch.stack(scores, -1)
        return torch.stack([yes, self.no.unsqueeze(-1).expand_as(yes)], -1)


# -- games -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CommonGames:
    """The stimuli of one split and the messages about them in E languages, padded to the longest split.

    Attributes:
        stimuli: stimuli; the samples of a meaning are consecutive, [E, n, W].
        messages: the message for each stimulus, [E, n, tokens].
        counts: number of stimuli of each language, [E].
        samples: number of stimuli per meaning, O.
    """

    stimuli: Float[NDArray[np.float32], "language stimulus width"]
    messages: Int64[Wholes, "language stimulus token"]
    counts: Int64[Wholes, " language"]
    samples: int

    @classmethod
    def of(cls, languages: Sequence[FrozenLanguage], query: bool, samples: int) -> "CommonGames":
        """Collect the stimuli and messages of one split, query or support, from some languages.

        Raises:
            IncompatibleError: the split of a language has fewer than two meanings.
        """
        which = [language.query == query for language in languages]
        counts = np.array([rows.sum() for rows in which])
        if counts.min() < 2 * samples:
            few = languages[int(counts.argmin())]
            raise IncompatibleError(
                f"The space {few.space} of episode {few.seed} has fewer than two meanings in its "
                f"{'query' if query else 'support'}, too few to train and evaluate a listener; take larger spaces."
            )
        tokens = max(language.messages.shape[1] for language in languages)
        stimuli = np.zeros((len(languages), counts.max(), languages[0].stimuli.shape[1]), dtype=np.float32)
        messages = np.zeros((len(languages), counts.max(), tokens), dtype=np.int64)
        for i, (language, rows) in enumerate(zip(languages, which, strict=True)):
            stimuli[i, : counts[i]] = language.stimuli[rows]
            messages[i, : counts[i], : language.messages.shape[1]] = regular(language.messages[rows])
        return cls(stimuli, messages, counts, samples)

    def targets(
        self,
        shown: OfGames,
        same: Bool[NDArray[np.bool_], "some game"],
        uniform: Float[Reals, "some game 2"],
        rows: Rows,
    ) -> OfGames:
        """Return the index of the speaker's stimulus in each game: of the listener's meaning, or of another meaning.

        Args:
            shown: indices of the listener's stimuli.
            same: games in which the speaker sees the listener's meaning, in another sample if there is one.
            uniform: uniform random numbers in [0, 1).
            rows: indices of the languages.
        """
        samples, meanings = self.samples, (self.counts[rows] // self.samples)[:, None]
        meaning, sample = shown // samples, shown % samples
        another = (sample + 1 + (uniform[..., 1] * (samples - 1)).astype(np.int64)) % samples
        other = (meaning + 1 + (uniform[..., 0] * (meanings - 1)).astype(np.int64)) % meanings
        any_sample = (uniform[..., 1] * samples).astype(np.int64)
        return np.where(same, meaning * samples + another, other * samples + any_sample)

    def games(self, shown: OfGames, targets: OfGames, rows: Rows) -> Float[Tensor, "some game number"]:
        """Return the listener's inputs: its stimulus, then the tokens of the message about the speaker's stimulus."""
        at = rows[:, None]
        whole = np.concatenate([self.stimuli[at, shown], self.messages[at, targets].astype(np.float32)], -1)
        return torch.as_tensor(whole)


# -- training ----------------------------------------------------------------------------------------------------------


class Acquisition:
    """Training of ordinary listeners, one per frozen language.

    All listeners make the same number of passes over their own support, so those with fewer stimuli end earlier. A
    listener's random numbers depend only on its episode's seed, so its results do not depend on the other listeners of
    the stack.

    Args:
        languages: the languages of the frozen speakers.
        samples: number of stimuli per meaning, O.
        symbols: number of tokens, including the end token.
        settings: settings of the training.

    Raises:
        PluginError: a speaker's message has a token outside the vocabulary.
        IncompatibleError: a language has too few meanings.
    """

    def __init__(
        self, languages: Sequence[FrozenLanguage], samples: int, symbols: int, settings: AcquisitionSettings
    ) -> None:
        self.settings = settings
        self.support, self.query = (CommonGames.of(languages, query, samples) for query in (False, True))
        for part in (self.support, self.query):
            if part.messages.min() < 0 or part.messages.max() >= symbols:
                raise PluginError(
                    f"A speaker's tokens must be from 0 to {symbols - 1}; this speaker's are from "
                    f"{part.messages.min()} to {part.messages.max()}."
                )
        seeds = [language.seed for language in languages]
        self.streams = EpisodeStreams.of_seeds(seeds).within("acquisition")
        self.batches = -(-self.support.counts // settings.batch)  # in an epoch
        self.rows = np.arange(len(languages))  # listeners still in training
        self.updates = 0
        parts = self.support.stimuli.shape[2], self.support.messages.shape[2]
        models = []
        for seed in seeds:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(stream_key(seed, "acquisition"))
                models.append(OrdinaryListener(*parts, symbols, settings))
        training = TrainingSettings(settings.batch, settings.learning_rate, clip_norm=None)
        self._learner = GradientLearner(
            models, seeds, loss_of(settings), training, torch.device("cpu"), stacking="broadcast"
        )
        longest = self.support.stimuli.shape[1]
        self._shown = np.zeros((len(languages), longest), dtype=np.int64)
        self._said = np.zeros_like(self._shown)
        self._same = np.zeros(self._shown.shape, dtype=bool)

    @one_thread()
    def train(self, progress: Callable[[int], None] | None = None) -> dict[str, OfLanguages]:
        """Train all listeners, evaluate each when its training ends, and return `zsct`, `support` and `yes`, [E].

        Args:
            progress: callback, called with the number of newly evaluated listeners.
        """
        results: dict[str, OfLanguages] = {name: np.zeros(len(self.batches)) for name in ("zsct", "support", "yes")}
        keys = torch.zeros(len(self.rows), dtype=torch.int64, device="cpu")
        while len(self.rows):
            games, answers = self._batch()
            self._learner.update(games, answers, keys[: len(self.rows)])
            self.updates += 1
            ended = self.updates >= self.batches[self.rows] * self.settings.epochs
            if ended.any():
                self._read(np.flatnonzero(ended), results)
                self.rows = self.rows[~ended]
                if len(self.rows):
                    self._learner.keep(np.flatnonzero(~ended).tolist())
                if progress is not None:
                    progress(int(ended.sum()))
        return results

    def _batch(self) -> tuple[Tensor, Tensor]:
        """Return the next games of every listener in training, and the right decisions, [listeners, batch]."""
        epoch, place = np.divmod(self.updates, self.batches[self.rows])
        if (place == 0).any():
            self._draw(self.rows[place == 0], epoch[place == 0])
        first = place[:, None] * self.settings.batch
        columns = first + np.arange(self.settings.batch)
        there = columns < self.support.counts[self.rows, None]
        at = self.rows[:, None], np.where(there, columns, first)
        games = self.support.games(self._shown[at], self._said[at], self.rows)
        answers = np.where(there, np.where(self._same[at], YES, NO), NOTHING)
        return games, torch.as_tensor(answers)

    def _draw(self, rows: Wholes, epochs: Wholes) -> None:
        """Draw the games of an epoch: the listener sees every stimulus of the support once, in random order."""
        count, streams = self._shown.shape[1], self.streams.rows(rows).nth(epochs)
        order = streams.uniform("order", (count,))
        order[np.arange(count) >= self.support.counts[rows, None]] = 2.0
        shown = order.argsort(axis=1, kind="stable")
        uniform = streams.uniform("games", (count, 3))
        self._shown[rows], self._same[rows] = shown, uniform[..., 0] < self.settings.ratio
        self._said[rows] = self.support.targets(shown, self._same[rows], uniform[..., 1:], rows)

    def _read(self, places: Wholes, results: dict[str, OfLanguages]) -> None:
        """Evaluate the listeners at `places` of the stack, and write their scores into `results`.

        Each stimulus is shown twice: once with its own message and once with the message of another meaning. So a
        listener that ignores messages is right in exactly half of all games.
        """
        rows = self.rows[places]
        for name, part in (("zsct", self.query), ("support", self.support)):
            count = part.stimuli.shape[1]
            shown = np.broadcast_to(np.arange(count).repeat(2), (len(rows), 2 * count))
            shown = np.minimum(shown, part.counts[rows, None] - 1)
            same = np.broadcast_to(np.arange(2 * count) % 2 == 0, shown.shape)
            uniform = self.streams.rows(rows).within("read", name).uniform("games", (2 * count, 2))
            games = part.games(shown, part.targets(shown, same, uniform, rows), rows)
            scores = self._learner.scores(games, places.tolist())[:, :, -1]
            decided = (scores[..., NO] >= scores[..., YES]).numpy().astype(np.int64)
            there = np.arange(2 * count) // 2 < part.counts[rows, None]
            right = decided == np.where(same, YES, NO)
            results[name][rows] = (right & there).sum(1) / there.sum(1)
            if name == "zsct":
                results["yes"][rows] = ((decided == YES) & there).sum(1) / there.sum(1)


def loss_of(settings: AcquisitionSettings) -> Callable[[Scores, Answers, Noise], Float[Tensor, " listener"]]:
    """Return a function that maps scores and right decisions to a loss per listener. It ignores padding."""

    def loss(scores: Scores, answers: Answers, noise: Noise) -> Float[Tensor, " listener"]:
        decided = scores if settings.impatient else scores[..., -1:, :]
        margin = decided[..., YES] - decided[..., NO]
        margin = torch.where((answers == YES).unsqueeze(-1), margin, -margin)
        each = (1 - margin).clamp(min=0) if settings.loss == "hinge" else F.softplus(-margin)
        there = answers != NOTHING
        return (each.mean(-1) * there).sum(-1) / there.sum(-1)

    return loss


@standard_state()
def ease_of_acquisition(
    speaker: str | Player = "posdis",
    game: GameSettings | None = None,
    *,
    episodes: int = 20,
    seed: int = 123,
    settings: AcquisitionSettings | None = None,
    progress: ProgressCallback | None = None,
    **given: Unpack[GameOptions],
) -> "pd.DataFrame":
    """Measure how easily new listeners learn the languages of a speaker (EoA; MetaRG24).

    In each episode the speaker plays to the end and is then frozen. A new listener without memory is trained on the
    speaker's messages about the stimuli of the support, without renaming of tokens, and evaluated on those of the
    query. In these games the listener sees one stimulus, and decides whether it has the meaning of the speaker's
    stimulus, in another sample if there is one. Chance is 0.5; a listener that ignores messages also scores 0.5.

    Args:
        speaker: name of a registered speaker, or a `Player` with the method `utter`.
        game: settings of the game that the speaker plays; or give them by name.
        episodes: number of episodes; each has its own listener.
        seed: seed of the episodes, see `evaluate`.
        settings: settings of the listeners' training.
        progress: callback, called with the number of evaluated listeners and their total.
        **given: settings by name, see GameSettings.

    Returns:
        A row per episode: `episode`, its seed; `space`, the numbers of values of its dimensions; `messages`, the number
        of different messages; `zsct` and `support`, the listener's accuracy in the query and in the support; and `yes`,
        the fraction of query games in which it decided that it saw the target's meaning.

    Raises:
        IcyError: an unknown name, a setting that is not accepted, or a speaker without `utter`.

    Example:
        >>> from icy.s2b.agents.acquisition import AcquisitionSettings, ease_of_acquisition
        >>> settings = AcquisitionSettings(epochs=2)
        >>> ease_of_acquisition("posdis", episodes=3, settings=settings).columns.tolist()
        ['episode', 'space', 'messages', 'zsct', 'support', 'yes']
    """
    import pandas as pd

    chosen, settings = GameSettings.of(game, **given), settings or AcquisitionSettings()
    done, tables = 0, []

    def ended(listeners: int) -> None:
        nonlocal done
        done += listeners
        report(done, episodes)

    seeds = episode_seeds(seed, episodes)
    with progress_to(progress, "listeners") as report:
        for first in range(0, len(seeds), AT_ONCE):
            languages = frozen_languages(speaker, chosen, seeds[first : first + AT_ONCE])
            scores = Acquisition(languages, chosen.samples, chosen.vocab_size + 1, settings).train(ended)
            facts = {
                "episode": [language.seed for language in languages],
                "space": [language.space for language in languages],
                "messages": [len(np.unique(regular(language.messages), axis=0)) for language in languages],
            }
            tables.append(pd.DataFrame(facts).assign(**scores))
    return pd.concat(tables, ignore_index=True)
