"""Deal many episodes at once: draw everything that is random in them before the first step.

The games of all episodes are concatenated in flat arrays. A step of the game is then a look-up, and episodes with few
games take no more memory than they need.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Int64, Integer
from numpy.typing import NDArray

from icy.core.machine import require_memory

from . import targets
from .channel import Array, inverses, permutations
from .episode_streams import EpisodeStreams, OfGames, Reals, Seeds, Wholes
from .settings import GameSettings
from .targets import NOTHING, Sections, Spaces, Targets, one_hot

if TYPE_CHECKING:
    import torch

Mask = NDArray[np.bool_]
OfMeanings = Bool[Mask, "episode meaning"]


# -- distractors -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Candidates:
    """The possible distractors of each episode, stored in one sorted array.

    A stimulus is numbered within its episode: meaning times O, plus the sample.

    Attributes:
        keys: episode times `size` plus the stimulus number, sorted, [P].
        size: largest number of stimuli in an episode.
        samples: samples per meaning, O.
    """

    keys: Int64[Wholes, " candidate"]
    size: int
    samples: int

    def without(self, episodes: OfGames, targets: OfGames, one: bool = False) -> "Rest":
        """Return the candidates of each game, without the stimuli of the target's meaning.

        Args:
            episodes: episode of each game, [T].
            targets: target of each game, as a stimulus number, [T].
            one: leave out only one copy of the target itself, and keep other stimuli of its meaning.
        """
        base = episodes * self.size
        meaning = base + targets - targets % self.samples
        ends = np.stack([base, base + self.size], 1)
        first, last = np.searchsorted(self.keys, ends).T
        low = np.searchsorted(self.keys, base + targets if one else meaning)
        # Widened candidates may lack the target's meaning; then there is nothing to leave out.
        high = low + 1 if one else np.searchsorted(self.keys, meaning + self.samples)
        return Rest(self, base, first, low, high, (last - first) - (high - low))


@dataclass(frozen=True, eq=False)
class Rest:
    """Candidates of each of T games: the episode's candidates, except a slice of the sorted array.

    Attributes:
        candidates: the candidates of all episodes.
        base: key of stimulus number 0 of the game's episode, [T].
        first: index of the episode's first candidate, [T].
        low: start of the omitted slice, [T].
        high: end of the omitted slice, exclusive, [T].
        count: number of remaining candidates, [T].
    """

    candidates: Candidates
    base: OfGames
    first: OfGames
    low: OfGames
    high: OfGames
    count: OfGames

    def draw(self, uniform: Float64[Reals, "game draw"]) -> Int64[Wholes, "game draw"]:
        """Draw stimuli without replacement.

        If a game runs out of candidates, it repeats one of its draws after the first. A game without candidates repeats
        its target.

        Args:
            uniform: uniform random numbers in [0, 1), one per draw, [T, draws].

        Returns:
            The number of each stimulus within its episode, [T, draws].
        """
        chosen: list[Wholes] = []
        for k in range(uniform.shape[1]):
            left = self.count - k
            place = (uniform[:, k] * np.maximum(left, 1)).astype(np.int64)
            for other in np.sort(np.stack(chosen, 1), 1).T if chosen else ():
                place += place >= other  # skip the candidates that were drawn
            if chosen:
                later = min(1, k - 1) + (uniform[:, k] * max(k - 1, 1)).astype(np.int64)
                again = np.stack(chosen, 1)[np.arange(len(place)), later]
                place = np.where(left > 0, place, again)
            chosen.append(place)
        if not chosen:
            return np.zeros((len(self.count), 0), dtype=np.int64)
        entries = self.first[:, None] + np.stack(chosen, 1)
        entries += np.where(entries >= self.low[:, None], (self.high - self.low)[:, None], 0)
        entries = np.where(self.count[:, None] > 0, entries, self.low[:, None])
        return np.asarray(self.candidates.keys[entries] - self.base[:, None])


def widened(candidates: Candidates, short: Int64[Wholes, " short"], eligible: OfMeanings) -> Candidates:
    """Add stimuli to the candidates of the episodes `short`: all of the eligible meanings [B, M] that they lack.

    Existing candidates keep their counts. Other episodes do not change.
    """
    if not len(short):
        return candidates
    which, meanings = np.nonzero(eligible[short])
    stimuli = (meanings[:, None] * candidates.samples + np.arange(candidates.samples)).ravel()
    every = np.repeat(short[which], candidates.samples) * candidates.size + stimuli
    keys = np.concatenate([candidates.keys, np.setdiff1d(every, candidates.keys)])
    return Candidates(np.sort(keys), candidates.size, candidates.samples)


@dataclass(frozen=True, eq=False)
class Episodes:
    """E dealt episodes and their T games, in flat arrays.

    Attributes per episode:
        seeds: seed of the episode, [E].
        numbers: number of the episode among the episodes of its seed, from 0, [E].
        sizes: number of values of each dimension of the space, [E, N].
        first: index of the episode's first game in the arrays per game, [E].
        games: number of games, [E].
        heard: the token that the listener hears for each token of the speaker, [E, V + 1].
        heard_back: the token that the speaker hears for each token of the listener, [E, V + 1].

    Attributes per game:
        query: whether the game belongs to the query phase, [T].
        answer: the right decision, [T]: the slot of the target's meaning, or K + 1 if the listener does not see it.
        speaker: the stimuli that the speaker sees, the target first, [T, speaker slots, W].
        listener: the stimuli that the listener sees, [T, K + 1, W].
        speaker_numbers: the speaker's stimuli as numbers, meaning times O plus sample, [T, K + 1]; in a partial view
            this includes the distractors, which the speaker does not see.
        listener_numbers: the listener's stimuli as numbers, [T, K + 1].
    """

    seeds: Integer[Array, " episode"]
    numbers: Int[Array, " episode"]
    sizes: Int[Array, "episode dimension"]
    first: Int[Array, " episode"]
    games: Int[Array, " episode"]
    heard: Int[Array, "episode vocab"]
    heard_back: Int[Array, "episode vocab"]

    query: Bool[Array, " game"]
    answer: Int[Array, " game"]
    speaker: Float[Array, "game speaker_slot width"]
    listener: Float[Array, "game slot width"]
    speaker_numbers: Int[Array, "game slot"]
    listener_numbers: Int[Array, "game slot"]

    def __len__(self) -> int:
        return len(self.seeds)

    def take(self, which: Int64[Wholes, " some"]) -> "Episodes":
        """Select episodes by index, in this order, with their games."""
        games = ragged(self.first[which], self.games[which])
        own = {name: getattr(self, name)[which] for name in EPISODE_FIELDS if name != "first"}
        return replace(self, **own, first=_firsts(own["games"]), **{n: getattr(self, n)[games] for n in GAME_FIELDS})

    @staticmethod
    def join(parts: Sequence["Episodes"]) -> "Episodes":
        """Concatenate episodes."""
        joined = {f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Episodes)}
        return Episodes(**{**joined, "first": _firsts(joined["games"])})

    def on(self, device: "torch.device | str") -> "Episodes":
        """Convert the arrays to tensors on a torch device."""
        import torch

        return Episodes(**{f.name: torch.as_tensor(getattr(self, f.name)).to(device) for f in fields(self)})


BYTES, BYTES_PER_SAMPLE = 160, 40  # measured memory that dealing an episode takes per meaning
EPISODE_FIELDS = tuple(f.name for f in fields(Episodes))[:7]
GAME_FIELDS = tuple(f.name for f in fields(Episodes))[7:]


def ragged(first: Int64[Wholes, " part"], counts: Int64[Wholes, " part"]) -> Int64[Wholes, " whole"]:
    """Concatenate the ranges first[i], ..., first[i] + counts[i] - 1."""
    return np.repeat(first - _firsts(counts), counts) + np.arange(int(counts.sum()))


def _firsts(counts: Wholes) -> Wholes:
    return np.asarray(counts.cumsum() - counts)


def deal(
    settings: GameSettings, seeds: Integer[Seeds, " episode"], numbers: Int64[Wholes, " episode"] | None = None
) -> Episodes:
    """Draw episodes. An episode depends only on its seed and number, not on the batch.

    Args:
        settings: settings of the game.
        seeds: seed of each episode, [E].
        numbers: number of each episode within its seed, [E]; by default 0, the first.

    Raises:
        InvalidSettingError: no draw of targets shows every value often enough.
    """
    numbers = np.zeros(len(seeds), dtype=np.int64) if numbers is None else numbers
    count = settings.space.size
    needed = len(seeds) * count * (BYTES + BYTES_PER_SAMPLE * settings.samples)
    require_memory(needed, f"Dealing {len(seeds)} episodes of up to {count:,} meanings")
    streams = EpisodeStreams.of_seeds(seeds).nth(numbers)
    own = space_streams(settings, streams)
    spaces = Spaces.draw(own, settings.dimensions, settings.least, settings.most)
    targets, query = _targets(settings, spaces, streams)
    games = _Games(settings, spaces, streams, targets, query)
    (speaker, listener, answer), episode = games.views(), games.episode
    heard = permutations(streams, settings.vocab_size, settings.permutation and settings.kind == "meta")
    show = shown(settings, own, spaces)
    return Episodes(
        seeds=seeds,
        numbers=numbers,
        sizes=spaces.sizes,
        first=_firsts(targets.counts),
        games=targets.counts,
        heard=heard,
        heard_back=inverses(heard),
        query=games.query,
        answer=answer,
        speaker=show(episode, speaker[:, : settings.speaker_slots]),
        listener=show(episode, listener),
        speaker_numbers=speaker,
        listener_numbers=listener,
    )


def space_streams(settings: GameSettings, streams: EpisodeStreams) -> EpisodeStreams:
    """Return the streams for spaces and stimuli: one per episode, or the same for all episodes of a common game."""
    return (
        streams if settings.kind == "meta" else EpisodeStreams.of_seeds(np.full(len(streams.keys), settings.space_seed))
    )


# -- targets -----------------------------------------------------------------------------------------------------------


def _targets(settings: GameSettings, spaces: Spaces, streams: EpisodeStreams) -> tuple[Targets, Mask]:
    """Draw the targets of every episode. Return the targets, and whether each belongs to the query, [E, G]."""
    support, query = eligible(settings, spaces)
    if settings.kind == "common":
        return _of_one_split(settings, support, query, streams)
    samples = settings.samples
    first = targets.shots(streams.within("support"), spaces, support, settings.shots, samples)
    order = streams.within("query") if settings.query_order == "random" else None
    every = targets.every_meaning(query, samples, order)
    second = every if settings.query == "all" else _some(settings, spaces, query, every, streams.within("query"))
    of_query = np.zeros((len(spaces), first.meanings.shape[1] + second.meanings.shape[1]), dtype=bool)
    of_query[:, first.meanings.shape[1] :] = True
    meanings, drawn = (np.concatenate([getattr(part, n) for part in (first, second)], 1) for n in vars(first))
    return Targets(meanings, drawn), of_query  # padding (NOTHING) may lie between the two


def eligible(settings: GameSettings, spaces: Spaces) -> tuple[OfMeanings, OfMeanings]:
    """Split the meanings of every episode into support and query, [E, M] each."""
    if settings.threshold > settings.dimensions:  # a common game of all meanings, which has no query
        return spaces.valid, np.zeros_like(spaces.valid)
    test = targets.query_meanings(spaces, settings.threshold)
    return spaces.valid & ~test, spaces.valid & test


def _some(settings: GameSettings, spaces: Spaces, query: Mask, every: Targets, streams: EpisodeStreams) -> Targets:
    """Draw the query's targets as the authors' program does.

    If a query has fewer stimuli than the shots of all values require, it shows all of them (their program shows every
    meaning O times, in samples drawn at random). Otherwise it shows as many stimuli as needed to show every value S
    times.
    """
    few = settings.shots * spaces.sizes.sum(1) > query.sum(1) * settings.samples
    if not settings.distinct:
        every = Targets(every.meanings, streams.integers("fetched", settings.samples, every.meanings.shape[1:]))
    which = np.flatnonzero(~few)
    if not len(which):
        return every
    some = Spaces(spaces.sizes[which], spaces.most)
    chosen = targets.shots(streams.rows(which), some, query[which], settings.shots, settings.samples)
    return every.replaced(which, chosen)


def _of_one_split(settings: GameSettings, support: Mask, query: Mask, streams: EpisodeStreams) -> tuple[Targets, Mask]:
    """Draw the targets of a common game from one split, with replacement."""
    whole = {"support": support, "query": query, "all": support | query}[settings.split]
    shape = (settings.games,)
    place = streams.integers("targets", whole.sum(1)[:, None], shape)
    order = np.argsort(~whole, axis=1, kind="stable")  # eligible meanings first
    meanings = np.take_along_axis(order, place, 1)
    of_query = np.take_along_axis(query, meanings, 1)
    return Targets(meanings, streams.integers("samples", settings.samples, shape)), of_query


# -- distractors and stimuli -------------------------------------------------------------------------------------------


class _Games:
    """The games of all episodes, concatenated, which draw their distractors and slots."""

    def __init__(
        self, settings: GameSettings, spaces: Spaces, streams: EpisodeStreams, targets: Targets, query: Mask
    ) -> None:
        self.settings, self.spaces, self.streams = settings, spaces, streams
        self.episode, column = np.nonzero(targets.meanings != NOTHING)
        # A game's number in its episode. Its column may differ, because supports are padded to the longest of the
        # batch.
        self.place = np.arange(len(column)) - _firsts(targets.counts)[self.episode]
        self.query = query[self.episode, column]
        meaning, sample = (part[self.episode, column] for part in (targets.meanings, targets.samples))
        self.target = meaning * settings.samples + sample

    def views(self) -> tuple[Wholes, Wholes, Wholes]:
        """Draw the stimuli of both players, as numbers within their episodes, [T, K + 1], and the decisions, [T]."""
        settings, slots = self.settings, self.settings.slots
        keep = self._uniform("ratio", 1)[:, 0] < settings.kept
        drawn = self._others()
        stand_in, distractors = drawn[:, 0], drawn[:, 1:]
        speaker = np.concatenate([self.target[:, None], distractors], axis=1)
        first = np.where(keep, self._same_meaning(self.target), stand_in)
        seen, meant = np.concatenate([first[:, None], distractors], axis=1), np.zeros(len(keep), dtype=np.int64)
        if settings.kind == "meta" and settings.query_of == "listener":
            turned, *views = self._schedule_for_listener(keep, stand_in, distractors)
            of_game = turned[:, None]
            speaker, seen = np.where(of_game, views[0], speaker), np.where(of_game, views[1], seen)
            meant = np.where(turned, views[2], meant)
        order = np.argsort(self._uniform("slots", slots), axis=1, kind="stable")
        listener = np.take_along_axis(seen, order, axis=1)
        answer = np.where(keep, (order == meant[:, None]).argmax(1), slots)
        return speaker, listener, answer

    def _schedule_for_listener(
        self, keep: Mask, stand_in: Wholes, distractors: Wholes
    ) -> tuple[Mask, Wholes, Wholes, Wholes]:
        """Use the scheduled query targets as stimuli of the listener, and draw the target of the speaker.

        Returns:
            A mask of the games that this applies to: all games of the query, except a few in small spaces where the
            target's stand-in shares a distractor's meaning, [T]; in these games, the speaker's stimuli and the
            listener's before its slots are shuffled, [T, K + 1]; and the index of the stimulus that the speaker
            describes, [T].
        """
        samples, seen = self.settings.samples, np.concatenate([self.target[:, None], distractors], axis=1)
        meanings = seen // samples
        alone = (meanings[:, :, None] == meanings[:, None]).sum(-1) == 1
        meant = np.where(alone, self._uniform("meant", seen.shape[1]), -1.0).argmax(1)
        chosen = np.take_along_axis(seen, meant[:, None], 1)[:, 0]
        # The scheduled stimulus takes the place of the distractor that is meant.
        beside = np.where(np.arange(1, seen.shape[1]) == meant[:, None], self.target[:, None], distractors)
        target = np.where(keep, self._same_meaning(chosen), stand_in)
        speaker = np.concatenate([target[:, None], np.where(keep[:, None], beside, distractors)], axis=1)
        apart = (stand_in[:, None] // samples != meanings).all(1)
        turned = self.query & (keep & alone.any(1) | ~keep & apart)
        return turned, speaker, seen, meant

    def _uniform(self, name: str, count: int) -> Reals:
        """Draw uniform numbers for every game, [T, count]."""
        return self.streams.uniform_of_games(name, self.episode, self.place, count)

    def _same_meaning(self, stimuli: Wholes) -> Wholes:
        """Draw stimuli of the same meanings; with `distinct`, of another sample if there is one."""
        count = self.settings.samples
        if count == 1:
            return stimuli
        uniform, sample = self._uniform("own", 1)[:, 0], stimuli % count
        if not self.settings.distinct:
            return stimuli - sample + (uniform * count).astype(np.int64)
        step = 1 + (uniform * (count - 1)).astype(np.int64)
        return stimuli - sample + (sample + step) % count

    def _others(self) -> Wholes:
        """Draw a stand-in for the target (first column) and the distractors, as stimulus numbers, [T, K + 1].

        If there are too few candidates, one distractor occurs twice, whether or not the listener sees the target.
        """
        settings = self.settings
        found = np.empty((len(self.target), settings.slots), dtype=np.int64)
        uniform = self._uniform("beside", settings.slots)
        for query in (False, True):
            games = np.flatnonzero(self.query == query)
            if len(games):
                found[games] = self._draw(self._candidates(query), games, uniform[games])
        if settings.distinct:
            return found
        # The authors' program draws the sample each time it shows a meaning.
        drawn = self._uniform("fetched", settings.slots) * settings.samples
        return found - found % settings.samples + drawn.astype(np.int64)

    def _draw(self, candidates: Candidates, games: Wholes, uniform: Reals) -> Wholes:
        episode, target, settings = self.episode[games], self.target[games], self.settings
        # The authors' program draws the stand-in for the target separately from the distractors, so it may share their
        # meanings. At O = 1 distractors differ from the target only by their index in the list, so they may share its.
        apart = not settings.distinct
        loose = apart and settings.samples == 1
        count, stands_in = settings.distractors, int(settings.kept < 1)
        others, rest = candidates.without(episode, target), candidates.without(episode, target, one=loose)
        short = np.unique(episode[(rest.count < count + stands_in * (not apart)) | (others.count < stands_in)])
        if len(short):
            candidates = widened(candidates, short, self._eligible[bool(self.query[games[0]])])
            others, rest = candidates.without(episode, target), candidates.without(episode, target, one=loose)
        if stands_in and not apart:
            return others.draw(uniform)
        first = others.draw(uniform[:, :1]) if stands_in else target[:, None]  # the target here is a placeholder
        return np.concatenate([first, rest.draw(uniform[:, 1:])], axis=1)

    @cached_property
    def _eligible(self) -> tuple[Mask, Mask]:
        """The meanings to add if there are too few candidates, in the support and in the query."""
        support, query = eligible(self.settings, self.spaces)
        if self.settings.kind == "common":
            split = {"support": support, "query": query, "all": self.spaces.valid}[self.settings.split]
            return split, split
        return support, self.spaces.valid

    def _candidates(self, query: bool) -> Candidates:
        """Return the candidates of a phase: in the support its targets, in the query all targets of the episode."""
        settings = self.settings
        size = len(self.spaces.meanings) * settings.samples
        if settings.kind == "common":
            nothing = Candidates(np.zeros(0, dtype=np.int64), size, settings.samples)
            return widened(nothing, np.arange(len(self.spaces)), self._eligible[0])
        there = np.ones(len(self.target), dtype=bool) if query else ~self.query
        keys = self.episode[there] * size + self.target[there]
        # Without `distinct`, a stimulus counts as often as it occurs.
        return Candidates(np.unique(keys) if settings.distinct else np.sort(keys), size, settings.samples)


def shown(
    settings: GameSettings, streams: EpisodeStreams, spaces: Spaces
) -> Callable[[Wholes, Wholes], NDArray[np.float32]]:
    """Return a function that maps episodes [T] and stimulus numbers [T, slots] to stimuli, [T, slots, W]."""
    if settings.representation == "ohe":
        table = one_hot(spaces)
        return lambda episode, stimuli: table[stimuli]
    sections = Sections.draw(streams, spaces, settings.samples, settings.truncate)
    samples = sections.samples.astype(np.float32)
    dimensions = np.arange(settings.dimensions)

    def show(episode: Wholes, stimuli: Wholes) -> NDArray[np.float32]:
        values = spaces.meanings[stimuli // settings.samples]
        sample = (stimuli % settings.samples)[..., None]
        return np.asarray(samples[episode[:, None, None], dimensions, values, sample])

    return show
