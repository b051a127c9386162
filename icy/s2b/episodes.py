"""Dealing: everything that an episode will show is drawn before its first step, for many episodes at once.

The games of all episodes stand one after another in flat arrays, so that a step of the game is a look-up, and episodes
of few games take no more room than they need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.memory import require_memory

from . import targets
from .channel import Array, inverses, permutations
from .distractors import Pool, widened
from .settings import GameSettings
from .stimuli import Sections, Spaces, one_hot
from .streams import Draws, Reals, Wholes
from .targets import NOTHING, Targets


@dataclass(frozen=True, eq=False)
class Deal:
    """Episodes, and every game of theirs.

    Attributes of episodes:
        seeds: [E].
        numbers: which episode of its seed, from 0, [E].
        sizes: numbers of values of its space, [E, N].
        first: its first game in the arrays of games, [E].
        games: how many games, [E].
        heard: what the listener hears for each of the speaker's tokens, [E, V + 1].
        heard_back: what the speaker hears for each of the listener's, [E, V + 1].

    Attributes of games:
        query: whether it is of the query phase, [T].
        answer: the right decision, [T]: the place of the target's meaning, or K + 1 where it is not there.
        speaker: the stimuli that the speaker sees, the target's first, [T, speaker slots, W].
        listener: those that the listener sees, [T, K + 1, W].
        speaker_numbers: numbers of the stimuli that stand before the speaker, [T, K + 1], the distractors' too in a
            partial view: meaning times O, plus the sample.
        listener_numbers: those before the listener, [T, K + 1].
    """

    seeds: Array
    numbers: Array
    sizes: Array
    first: Array
    games: Array
    heard: Array
    heard_back: Array

    query: Array
    answer: Array
    speaker: Array
    listener: Array
    speaker_numbers: Array
    listener_numbers: Array

    def __len__(self) -> int:
        return len(self.seeds)

    @cached_property
    def episode_of(self) -> Wholes:
        """The episode of every game, [T]."""
        return np.repeat(np.arange(len(self)), self.games)

    def take(self, which: Wholes) -> Deal:
        """Some of the episodes, in that order, with their games."""
        games = ragged(self.first[which], self.games[which])
        own = {name: getattr(self, name)[which] for name in OF_EPISODES if name != "first"}
        return replace(self, **own, first=_firsts(own["games"]), **{n: getattr(self, n)[games] for n in OF_GAMES})

    @staticmethod
    def join(deals: Sequence[Deal]) -> Deal:
        """The episodes of several deals, one after another."""
        parts = {f.name: np.concatenate([getattr(d, f.name) for d in deals]) for f in fields(Deal)}
        return Deal(**{**parts, "first": _firsts(parts["games"])})

    def on(self, device: Any) -> Deal:
        """The same as tensors on a device of torch."""
        import torch

        return Deal(**{f.name: torch.as_tensor(getattr(self, f.name)).to(device) for f in fields(self)})


BYTES, BYTES_PER_SAMPLE = 160, 40  # of memory while an episode is dealt, for every meaning; as measured
OF_EPISODES = tuple(f.name for f in fields(Deal))[:7]
OF_GAMES = tuple(f.name for f in fields(Deal))[7:]


def ragged(first: Wholes, counts: Wholes) -> Wholes:
    """The numbers first, first + 1, ... of stretches of so many, one after another."""
    return np.repeat(first - _firsts(counts), counts) + np.arange(int(counts.sum()))


def _firsts(counts: Wholes) -> Wholes:
    found: Wholes = counts.cumsum() - counts
    return found


def deal(settings: GameSettings, seeds: Wholes, numbers: Wholes | None = None) -> Deal:
    """Draw episodes.

    Args:
        settings: of the game.
        seeds: of each episode, [E].
        numbers: which episode of its seed is meant, [E]; by default the first, 0. What it shows depends on its seed
            and number alone, not on the episodes beside it.

    Raises:
        InvalidSettingError: shots that cannot be met.
    """
    numbers = np.zeros_like(seeds) if numbers is None else numbers
    count = settings.most**settings.dimensions
    needed = len(seeds) * count * (BYTES + BYTES_PER_SAMPLE * settings.samples)
    require_memory(needed, f"Dealing {len(seeds)} episodes of up to {count:,} meanings")
    draws = Draws.of_seeds(seeds).nth(numbers)
    own = of_space(settings, draws)
    spaces = Spaces.draw(own, settings.dimensions, settings.least, settings.most)
    targets, query = _targets(settings, spaces, draws)
    games = _Games(settings, spaces, draws, targets, query)
    sides, episode = games.sides(), games.episode
    heard = permutations(draws, settings.vocab_size, settings.permutation and settings.kind == "meta")
    show = shown(settings, own, spaces)
    return Deal(
        seeds=seeds,
        numbers=numbers,
        sizes=spaces.sizes,
        first=_firsts(targets.counts),
        games=targets.counts,
        heard=heard,
        heard_back=inverses(heard),
        query=games.query,
        answer=sides.answer,
        speaker=show(episode, sides.speaker[:, : settings.speaker_slots]),
        listener=show(episode, sides.listener),
        speaker_numbers=sides.speaker,
        listener_numbers=sides.listener,
    )


def of_space(settings: GameSettings, draws: Draws) -> Draws:
    """What the spaces and stimuli of episodes are drawn from: their own streams, or in a common game shared ones."""
    return draws if settings.kind == "meta" else Draws.of_seeds(np.full(len(draws.keys), settings.space_seed))


# -- targets -----------------------------------------------------------------------------------------------------------


def _targets(settings: GameSettings, spaces: Spaces, draws: Draws) -> tuple[Targets, NDArray[np.bool_]]:
    """The targets of every episode, and which are of the query, [E, G]."""
    support, query = eligible(settings, spaces)
    if settings.kind == "common":
        return _of_one_split(settings, support, query, draws)
    samples = settings.samples
    first = targets.shots(draws.within("support"), spaces, support, settings.shots, samples)
    order = draws.within("query") if settings.query_order == "random" else None
    every = targets.every_meaning(query, samples, order)
    second = every if settings.query == "all" else _some(settings, spaces, query, every, draws.within("query"))
    of_query = np.zeros((len(spaces), first.meanings.shape[1] + second.meanings.shape[1]), dtype=bool)
    of_query[:, first.meanings.shape[1] :] = True
    return first.followed_by(second), of_query


def eligible(settings: GameSettings, spaces: Spaces) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The meanings of the support and of the query, [E, M] each."""
    if settings.threshold > settings.dimensions:  # of a common game of all meanings, in which there is no query
        return spaces.valid, np.zeros_like(spaces.valid)
    test = targets.query_meanings(spaces, settings.threshold)
    return spaces.valid & ~test, spaces.valid & test


def _some(settings: GameSettings, spaces: Spaces, query: NDArray[np.bool_], every: Targets, draws: Draws) -> Targets:
    """As the authors' program: all where they are fewer than the shots of all values, else such as show every value."""
    few = settings.shots * spaces.sizes.sum(1) > query.sum(1) * settings.samples
    which = np.flatnonzero(~few)
    if not len(which):
        return every
    some = Spaces(spaces.sizes[which], spaces.most)
    chosen = targets.shots(draws.rows(which), some, query[which], settings.shots, settings.samples)
    return every.replaced(which, chosen)


def _of_one_split(
    settings: GameSettings, support: NDArray[np.bool_], query: NDArray[np.bool_], draws: Draws
) -> tuple[Targets, NDArray[np.bool_]]:
    """Targets drawn from a split with replacement, for a common game."""
    whole = {"support": support, "query": query, "all": support | query}[settings.split]
    shape = (settings.games,)
    place = draws.integers("targets", whole.sum(1)[:, None], shape)
    order = np.argsort(~whole, axis=1, kind="stable")  # eligible ones first
    meanings = np.take_along_axis(order, place, 1)
    of_query = np.take_along_axis(query, meanings, 1)
    return Targets(meanings, draws.integers("samples", settings.samples, shape)), of_query


# -- what is seen ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Sides:
    """What the players see, as stimuli of their episodes, [T, K + 1], and the right answer, [T]."""

    speaker: Wholes
    listener: Wholes
    answer: Wholes


class _Games:
    """Drawing what stands beside the targets, in the games of all episodes one after another."""

    def __init__(
        self, settings: GameSettings, spaces: Spaces, draws: Draws, targets: Targets, query: NDArray[np.bool_]
    ) -> None:
        self.settings, self.spaces, self.draws = settings, spaces, draws
        self.episode, column = np.nonzero(targets.meanings != NOTHING)
        # Which game of its episode it is; its column may be another in a batch, where supports are padded.
        self.place = np.arange(len(column)) - _firsts(targets.counts)[self.episode]
        self.query = query[self.episode, column]
        self.meaning, self.sample = (part[self.episode, column] for part in (targets.meanings, targets.samples))
        self.target = self.meaning * settings.samples + self.sample

    def sides(self) -> _Sides:
        """What both players see, and in which games the listener sees the target's meaning."""
        settings, slots = self.settings, self.settings.slots
        keep = self._uniform("ratio", 1)[:, 0] < settings.kept
        drawn = self._beside()
        other, beside = drawn[:, 0], drawn[:, 1:]
        speaker = np.concatenate([self.target[:, None], beside], axis=1)
        first = np.where(keep, self._same_meaning(), other)
        order = np.argsort(self._uniform("slots", slots), axis=1, kind="stable")
        listener = np.take_along_axis(np.concatenate([first[:, None], beside], axis=1), order, axis=1)
        answer = np.where(keep, (order == 0).argmax(1), settings.slots)
        return _Sides(speaker, listener, answer)

    def _uniform(self, name: str, count: int) -> Reals:
        """Uniform numbers for every game, [T, count]."""
        return self.draws.uniform_of_games(name, self.episode, self.place, count)

    def _same_meaning(self) -> Wholes:
        """A stimulus of the target's meaning: another sample than the speaker's, where there is one."""
        count = self.settings.samples
        if count == 1:
            return self.target
        uniform = self._uniform("own", 1)[:, 0]
        if not self.settings.distinct:
            return self.meaning * count + (uniform * count).astype(np.int64)
        step = 1 + (uniform * (count - 1)).astype(np.int64)
        return self.meaning * count + (self.sample + step) % count

    def _beside(self) -> Wholes:
        """A stimulus that may stand in for the target's, and the distractors: [T, K + 1].

        Where there are too few others, a distractor comes twice, whether the target's meaning is there or not.
        """
        settings = self.settings
        found = np.empty((len(self.target), settings.slots), dtype=np.int64)
        uniform = self._uniform("beside", settings.slots)
        for query in (False, True):
            games = np.flatnonzero(self.query == query)
            if len(games):
                found[games] = self._from(self._pool(query), games, uniform[games])
        return found

    def _from(self, pool: Pool, games: Wholes, uniform: Reals) -> Wholes:
        episode, target, settings = self.episode[games], self.target[games], self.settings
        # In the authors' program at O = 1 distractors are others than the target by their place in the list, and may
        # share its meaning; what stands in for the target is of another meaning.
        loose = not settings.distinct and settings.samples == 1
        others, stands_in = settings.distractors, int(settings.kept < 1)
        rest, beside = pool.beside(episode, target), pool.beside(episode, target, one=loose)
        short = np.unique(episode[(beside.count < others + stands_in * (not loose)) | (rest.count < stands_in)])
        if len(short):
            pool = widened(pool, short, self._eligible[bool(self.query[games[0]])])
            rest, beside = pool.beside(episode, target), pool.beside(episode, target, one=loose)
        if stands_in and not loose:
            return rest.draw(uniform)
        first = rest.draw(uniform[:, :1]) if stands_in else target[:, None]  # which is not made use of
        return np.concatenate([first, beside.draw(uniform[:, 1:])], axis=1)

    @cached_property
    def _eligible(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The meanings that a short pool is widened by, in the support and in the query."""
        if self.settings.kind == "common":
            return self._split, self._split
        return eligible(self.settings, self.spaces)[0], self.spaces.valid

    @cached_property
    def _split(self) -> NDArray[np.bool_]:
        support, query = eligible(self.settings, self.spaces)
        return {"support": support, "query": query, "all": self.spaces.valid}[self.settings.split]

    def _pool(self, query: bool) -> Pool:
        """What is shown in the support is of its targets; in the query, of all targets of the episode."""
        settings = self.settings
        size = len(self.spaces.meanings) * settings.samples
        if settings.kind == "common":
            nothing = Pool(np.zeros(0, dtype=np.int64), size, settings.samples)
            return widened(nothing, np.arange(len(self.spaces)), self._split)
        there = np.ones(len(self.target), dtype=bool) if query else ~self.query
        return Pool.of(self.episode[there], self.target[there], size, settings.samples, settings.distinct)


def shown(settings: GameSettings, draws: Draws, spaces: Spaces) -> Any:
    """A function from episodes [T] and stimuli [T, slots] to what is seen of them, [T, slots, W]."""
    if settings.representation == "ohe":
        table = one_hot(spaces)
        return lambda episode, stimuli: table[stimuli]
    sections = Sections.draw(draws, spaces, settings.samples, settings.truncate)
    samples = sections.samples.astype(np.float32)
    dimensions = np.arange(settings.dimensions)

    def show(episode: Wholes, stimuli: Wholes) -> NDArray[np.float32]:
        values = spaces.meanings[stimuli // settings.samples]
        sample = (stimuli % settings.samples)[..., None]
        found: NDArray[np.float32] = samples[episode[:, None, None], dimensions, values, sample]
        return found

    return show
