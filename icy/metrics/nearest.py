"""Which grammar a language is a version of: how well each grammar, with its words estimated, predicts the messages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, combinations, product
from typing import Self

import numpy as np
from jaxtyping import Bool, Int64
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import bdtrc

from icy.core.errors import InvalidSettingError
from icy.core.progress import silence, track
from icy.core.streams import stream
from icy.core.text import counted
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.languages.splits import Split

# -- grammars with parameters that are estimated from a language, and random languages of each grammar -----------------


IntArray = NDArray[np.int64]
SMOOTHING = 0.5  # added to counts of tokens before logarithms
ROUNDS = 3  # of parameters that are estimated from each other


@dataclass(frozen=True)
class Rows:
    """Meanings and messages from which a grammar is estimated.

    Attributes:
        values: attribute values, shape [n, A].
        tokens: messages, shape [n, L].
        sizes: number of values K, and of tokens V.
    """

    values: Int64[IntArray, "row attr"]
    tokens: Int64[IntArray, "row length"]
    sizes: tuple[int, int]

    @property
    def word_length(self) -> int:
        """Tokens per word, w."""
        return int(self.tokens.shape[1] // self.values.shape[1])

    @property
    def owners(self) -> Int64[IntArray, " length"]:
        """The attribute of each position in concat."""
        return np.arange(self.tokens.shape[1]) // self.word_length

    def counts(self) -> Int64[IntArray, "attr length value token"]:
        """Count each token at each position, for each value of each attribute."""
        return np.stack([self.counts_of([a] * self.tokens.shape[1]) for a in range(self.values.shape[1])])

    def counts_of(self, owners: Sequence[int] | Int64[IntArray, " length"]) -> Int64[IntArray, "length value token"]:
        """Count each token at each position, for each value of the attribute that owns the position."""
        (values, tokens), length = self.sizes, self.tokens.shape[1]
        cells = (np.arange(length) * values + self.values[:, owners]) * tokens + self.tokens
        return np.bincount(cells.ravel(), minlength=length * values * tokens).reshape(length, values, tokens)

    def with_tokens(self, tokens: Int64[IntArray, "row length"]) -> Self:
        """Return the same meanings with other messages."""
        return type(self)(self.values, tokens, self.sizes)


@dataclass(frozen=True)
class EstimatedGrammar:
    """A grammar with parameters that are estimated from a language.

    Attributes:
        predict: estimates the parameters from rows, and returns the messages [m, L] of meanings [m, A].
        draw: returns random messages of this grammar for the meanings of rows, [n, L]. It replaces the messages of the
            rows, which are messages of concat with random words.
    """

    predict: Callable[[Rows, IntArray], IntArray]
    draw: Callable[[Rows, np.random.Generator], IntArray]


def draw_concat(
    values: Int64[IntArray, "row attr"], length: int, sizes: tuple[int, int], generator: np.random.Generator
) -> Rows:
    """Return messages of concat with random words, which may be equal."""
    attributes = values.shape[1]
    words = generator.integers(sizes[1], size=(attributes, sizes[0], length // attributes))
    return Rows(values, words[np.arange(attributes), values].reshape(len(values), length), sizes)


# -- hol, concat, perm -------------------------------------------------------------------------------------------------


def _hol(rows: Rows, values: IntArray) -> IntArray:
    frequent = rows.counts_of([0] * rows.tokens.shape[1]).sum(1).argmax(-1)
    return np.broadcast_to(frequent, (len(values), len(frequent)))


def _concat(rows: Rows, values: IntArray) -> IntArray:
    return _by_owner(rows, values, rows.owners)


def _by_owner(rows: Rows, values: IntArray, owners: IntArray) -> IntArray:
    """Predict the most frequent token at each position for the value of the attribute that owns the position."""
    return np.asarray(rows.counts_of(owners).argmax(-1)[np.arange(len(owners)), values[:, owners]])


def _perm(rows: Rows, values: IntArray) -> IntArray:
    fits = rows.counts().max(-1).sum(-1).repeat(rows.word_length, axis=0)  # [place in concat, position]
    places, positions = linear_sum_assignment(fits, maximize=True)
    owners = np.empty(len(positions), dtype=np.int64)
    owners[positions] = places // rows.word_length
    return _by_owner(rows, values, owners)


# -- rot, pairsum: each token is a sum of tokens of concat, modulo V ---------------------------------------------------


def _pairsum_sums(rows: Rows) -> IntArray:
    attributes = rows.values.shape[1]
    words = np.eye(attributes, dtype=np.int64)
    for a in range(attributes):
        words[a] += words[(a + 1) % attributes]  # the updated first word is added to the last word
    return np.kron(words, np.eye(rows.word_length, dtype=np.int64))


def _summed(sums: Callable[[Rows], IntArray]) -> EstimatedGrammar:
    def predict(rows: Rows, values: IntArray) -> IntArray:
        """Estimate base words from differences of tokens, then improve them so that more tokens are right."""
        size, matrix, owners = rows.sizes[1], sums(rows), rows.owners
        inverse = np.rint(np.linalg.inv(matrix)).astype(np.int64)  # a product of steps with determinant 1
        base = rows.with_tokens(rows.tokens @ inverse.T % size)
        words = base.counts_of(owners).argmax(-1)  # [position in concat, value]

        def spoken(meanings: IntArray) -> IntArray:
            return np.asarray(words[np.arange(len(owners)), meanings[:, owners]] @ matrix.T % size)

        wrong = (rows.tokens - spoken(rows.values)) % size
        for _ in range(ROUNDS):
            before = words.copy()
            for place, owner in enumerate(owners):
                own = rows.values[:, owner]
                cells = own[:, None] * size + wrong[:, matrix[:, place] == 1]
                votes = np.bincount(cells.ravel(), minlength=rows.sizes[0] * size).reshape(-1, size)
                change = votes.argmax(1)
                if change.any():
                    words[place] = (words[place] + change) % size
                    wrong = (wrong - change[own][:, None] * matrix[:, place]) % size
            if (words == before).all():
                break
        return spoken(values)

    def draw(rows: Rows, generator: np.random.Generator) -> IntArray:
        return rows.tokens @ sums(rows).T % rows.sizes[1]

    return EstimatedGrammar(predict, draw)


# -- shufdet -----------------------------------------------------------------------------------------------------------


def _shufdet(rows: Rows, values: IntArray) -> IntArray:
    attributes, words = rows.values.shape[1], rows.tokens.reshape(len(rows.tokens), rows.values.shape[1], -1)
    parts = [rows.values[:, -1] == last for last in range(rows.sizes[0])]
    counts = [Rows(rows.values[part], rows.tokens[part], rows.sizes).counts() for part in parts]
    fits = [one.max(-1).sum(-1).reshape(attributes, attributes, -1).sum(2) for one in counts]  # [attribute, slot]
    for _ in range(ROUNDS):
        slots = np.stack([linear_sum_assignment(fit, maximize=True)[1] for fit in fits])  # [last value, attribute]
        base = np.take_along_axis(words, slots[rows.values[:, -1]][..., None], 1)
        known = rows.with_tokens(base.reshape(rows.tokens.shape))
        expected = _concat(known, rows.values).reshape(words.shape)
        same = expected[:, :, None] == words[:, None]  # [row, attribute, slot, token of the word]
        fits = [same[part].sum((0, 3)) for part in parts]
    made = _concat(known, values).reshape(len(values), attributes, -1)
    return np.take_along_axis(made, slots.argsort(1)[values[:, -1]][..., None], 1).reshape(len(values), -1)


def _draw_shufdet(rows: Rows, generator: np.random.Generator) -> IntArray:
    attributes = rows.values.shape[1]
    orders = generator.permuted(np.tile(np.arange(attributes), (rows.sizes[0], 1)), axis=1)
    words = rows.tokens.reshape(len(rows.tokens), attributes, -1)
    return np.take_along_axis(words, orders[rows.values[:, -1]][..., None], 1).reshape(rows.tokens.shape)


# -- proj --------------------------------------------------------------------------------------------------------------


def _proj(rows: Rows, values: IntArray) -> IntArray:
    counts = rows.counts() + SMOOTHING
    share, alone = counts / counts.sum(-1, keepdims=True), counts.sum((0, 2)) / counts.sum((0, 2, 3))[:, None]
    gains = np.log(share / alone[:, None]).swapaxes(1, 2)  # [attribute, value, position, token]
    scores = np.log(alone) + sum(gains[a, values[:, a]] for a in range(values.shape[1]))
    return np.asarray(scores.argmax(-1))


def _draw_proj(rows: Rows, generator: np.random.Generator) -> IntArray:
    length, size = rows.tokens.shape[1], rows.sizes[1]
    matrix = generator.random((length, size, length, size))
    scores = sum(matrix[place, rows.tokens[:, place]] for place in range(length))
    return np.asarray(np.argmax(scores, -1))


GRAMMARS: Mapping[str, EstimatedGrammar] = {
    "hol": EstimatedGrammar(_hol, lambda rows, generator: generator.integers(rows.sizes[1], size=rows.tokens.shape)),
    "concat": EstimatedGrammar(_concat, lambda rows, generator: rows.tokens),
    "rot": _summed(lambda rows: np.tri(rows.tokens.shape[1], dtype=np.int64)),
    "pairsum": _summed(_pairsum_sums),
    "perm": EstimatedGrammar(_perm, lambda rows, generator: generator.permutation(rows.tokens, axis=1)),
    "shufdet": EstimatedGrammar(_shufdet, _draw_shufdet),
    "proj": EstimatedGrammar(_proj, _draw_proj),
}


Floats = NDArray[np.float64]
Right = Bool[NDArray[np.bool_], "meaning length"]
VERSIONS = ("concat", "rot", "pairsum", "perm", "shufdet")  # grammars that are special cases of hol, and not of proj
LIMIT = 3.0  # standard deviations of draws by which a language must differ from draws of proj, or of hol
LEAST = 0.2  # specific agreement from which a language is a version of a grammar
NESTED = 0.8  # share of the specific agreement of perm or shufdet from which concat is preferred, as a special case
NOISE = (0.0, 0.1, 0.3, 0.5, 1.0)  # shares of random tokens in draws; with 1, draws are holistic
DRAWS, OWN_DRAWS = 16, 4  # languages of proj, and of each other grammar, per share of random tokens
ROWS, ROWS_PER_VALUE = 2_000, 40  # draws have at most so many meanings; more if there are many values
RARE = 3.0  # negative decimal logarithm of the p-value from which errors are systematic


@dataclass(frozen=True)
class NearestGrammar:
    """The grammar that a language is a version of, and how well grammars predict its messages.

    Attributes:
        grammar: name of the grammar.
        agreement: share of tokens that each grammar predicts, in the order of the number of free parameters.
        errors: how the language differs from `grammar`: "none", "random" or "systematic". Errors are systematic if they
            are more frequent at a position, for a value or for a pair of values than random errors would be. A
            holistic language has no errors.
        floor: agreement that draws of each grammar reach if they have the same share of random errors as the language
            has relative to `grammar`. A language of this grammar is below it by chance alone.
        chance: agreement of each grammar with languages of proj that hol and proj predict equally well. For proj, with
            holistic languages; for hol, its own agreement.
    """

    grammar: str
    agreement: Mapping[str, float]
    errors: str
    floor: Mapping[str, float]
    chance: Mapping[str, float]


def nearest_grammar(
    language: Language, *, seed: int = 0, existing: Int64[IntArray, " meaning"] | None = None
) -> NearestGrammar:
    """Return the grammar that a language is a version of, with or without errors.

    The meanings are split into two random halves, each with every value of every attribute. From one half, the words
    of a grammar are estimated as the most frequent tokens, and its other parameters, such as the permutation of perm,
    as those that fit best. The grammar then predicts the messages of the other half. Its agreement is the share of
    tokens that are predicted correctly, over both halves. The estimated grammars are

    - `hol`: no words; it predicts the most frequent token at each position;
    - `concat`, `rot`, `pairsum`: a word for each value;
    - `perm`: also the positions of each attribute;
    - `shufdet`: also an order of words for each value of the last attribute;
    - `proj`: a score of each token for each value at each position, and the token with the largest sum (naive Bayes).

    The largest agreement does not decide, because `proj` contains `concat` and also predicts some of its systematic
    errors. Instead, draws (random languages) of `proj` with several shares of random tokens show how well each other
    grammar predicts a language of `proj` that `hol` and `proj` predict as well as this language: its *chance*. The
    *specific agreement* of a grammar is (agreement - chance) / (1 - chance). The grammar is the one with the largest
    specific agreement, if its agreement is above chance by more than three standard deviations of the draws, and its
    specific agreement is at least 0.2. `concat` is a special case of `perm` and `shufdet`, so it is preferred to them
    if it has 80 % of their specific agreement. If no grammar qualifies, it is `proj` if its agreement exceeds that of
    `hol` by three standard deviations more than in holistic languages, and otherwise `hol`. So small spaces do not
    distinguish `proj` with many errors from `hol`.

    The draws take about a second at 4x5. They are kept for further languages with the same meanings and lengths.

    Args:
        language: a language with words of equal length. If all messages end at the same place, their end is left out.
        seed: seed of the halves and of the draws.
        existing: numbers of the meanings that exist, [n]; the others are left out. By default all meanings exist. If
            not, a half may lack a value.

    Returns:
        The grammar, the kind of errors, and the agreement of each grammar with its floor and its value by chance.

    Raises:
        InvalidSettingError: the space has fewer than two attributes or too few meanings to split, the messages
            have several lengths, or their length is not a multiple of the number of attributes.

    Example:
        >>> from icy.grammars import make_language
        >>> from icy.metrics import nearest_grammar
        >>> found = nearest_grammar(make_language("rot", "3x5", word_length=3, seed=1))
        >>> found.grammar, found.errors, found.agreement["rot"], round(found.agreement["concat"], 2)
        ('rot', 'none', 1.0, 0.62)
    """
    known = np.arange(language.space.size) if existing is None else np.asarray(existing, dtype=np.int64)
    shortest, length = (int(end(language.lengths[known])) for end in (np.min, np.max))
    if shortest < length:
        raise InvalidSettingError(
            f"The nearest grammar needs words of equal length, but these messages have {shortest} to {length} tokens "
            f"before the end token {language.eos}."
        )
    if length % language.space.attributes or not length:
        raise InvalidSettingError(
            f"The nearest grammar needs words of equal length, but messages of {counted(length, 'token')} do not "
            f"divide into {counted(language.space.attributes, 'word')}."
        )
    values, tokens = language.space.meanings(known), language.messages[known, :length].astype(np.int64)
    if language.eos is not None:
        tokens -= tokens > language.eos
    halves = _halves(language.space, known, seed)
    if not all(map(len, halves)):
        raise InvalidSettingError(f"{counted(len(known), 'meaning')} cannot be split into two halves; take more.")
    rows = Rows(values, tokens, (language.space.values, language.token_count))
    agreement = _agreements(rows, halves)
    draws = _draws(language.space, None if existing is None else known.tobytes(), rows.sizes, length, seed)
    chance = draws.chance(agreement)
    grammar = _choose(agreement, chance, draws)
    share = draws.noise_of(grammar, agreement[grammar])
    return NearestGrammar(grammar, agreement, _errors(grammar, rows, share, draws), draws.floor(share), chance)


def _halves(space: MeaningSpace, known: IntArray, seed: int) -> list[IntArray]:
    """Return the rows of some meanings that are in each half of the space."""
    return [np.flatnonzero(np.isin(known, half)) for half in Split("random", 0.5).parts(space, seed)]


def _agreements(rows: Rows, halves: Sequence[IntArray], names: Sequence[str] = tuple(GRAMMARS)) -> dict[str, float]:
    """Return the share of tokens that each grammar predicts from the other half."""
    right = dict.fromkeys(names, 0)
    for (seen, unseen), name in track(list(product((halves, halves[::-1]), names)), "steps of the nearest grammar"):
        known = Rows(rows.values[seen], rows.tokens[seen], rows.sizes)
        right[name] += int((GRAMMARS[name].predict(known, rows.values[unseen]) == rows.tokens[unseen]).sum())
    return {name: count / rows.tokens.size for name, count in right.items()}


# -- draws -------------------------------------------------------------------------------------------------------------


class _Draws:
    """Random languages of each grammar with some shares of random tokens, for a set of meanings.

    Args:
        values: attribute values, [n, A].
        halves: rows of each half.
        sizes: number of values K, and of tokens V.
        length: tokens per message, L.
        seed: seed of the draws.

    Attributes:
        deviation: standard deviation of the agreement of each grammar around its value by chance.
        rare: concentration of errors that draws of proj without errors do not exceed.
    """

    def __init__(
        self, values: IntArray, halves: Sequence[IntArray], sizes: tuple[int, int], length: int, seed: int
    ) -> None:
        self.halves, self.seed = halves, seed
        self.concat = [draw_concat(values, length, sizes, stream(seed, "nearest", number)) for number in range(DRAWS)]
        projs = [[self._draw("proj", share, number) for number in range(DRAWS)] for share in NOISE]
        found = [[_agreements(rows, halves) for rows in own] for own in projs]
        errors = 1 - np.array([[list(one.values()) for one in own] for own in found])  # [share, draw, grammar]
        self._hol, self._proj = (errors[..., list(GRAMMARS).index(name)] for name in ("hol", "proj"))
        self._fits, self.deviation = {}, {"proj": float((self._hol - self._proj)[-1].std(ddof=1))}
        for name in VERSIONS:
            own, predictors = errors[..., list(GRAMMARS).index(name)], np.stack([self._hol, self._proj], axis=-1)
            self._fits[name] = np.linalg.lstsq(predictors.reshape(-1, 2), own.ravel(), rcond=None)[0]
            rest = own - predictors @ self._fits[name]
            self.deviation[name] = float(np.sqrt((rest**2).mean(1).max()))  # of the share with the largest one
        rare = np.array([_concentration("proj", rows)[0] for rows in projs[0]])
        self.rare = float(rare.mean() + LIMIT * rare.std(ddof=1))
        self._by_chance = 1 - errors[-1].mean(0)
        self._curve = cache(self._curve_of)

    def _draw(self, name: str, share: float, number: int) -> Rows:
        """Return a language of a grammar in which random tokens replace a share of the tokens."""
        generator, rows = stream(self.seed, "nearest", name, str(share), number), self.concat[number]
        tokens = GRAMMARS[name].draw(rows, generator)
        replaced = generator.random(tokens.shape) < share
        return rows.with_tokens(np.where(replaced, generator.integers(rows.sizes[1], size=tokens.shape), tokens))

    def chance(self, agreement: Mapping[str, float]) -> dict[str, float]:
        """Return the agreement by chance of each grammar, for the agreements of a language with hol and proj."""
        hol, proj = (1 - agreement[name] for name in ("hol", "proj"))
        known = {name: float(1 - fit @ [hol, proj]) for name, fit in self._fits.items()}
        above = float((self._hol - self._proj)[-1].mean())
        return {"hol": agreement["hol"], **known, "proj": agreement["hol"] + above}

    def _curve_of(self, name: str) -> Floats:
        """Return the mean agreement of a grammar with its own draws, for each share of random tokens."""
        if name == "proj":
            means = 1 - self._proj.mean(1)
        else:
            draws = [[self._draw(name, share, number) for number in range(OWN_DRAWS)] for share in NOISE[:-1]]
            own = [np.mean([_agreements(rows, self.halves, (name,))[name] for rows in some]) for some in draws]
            means = np.array([*own, self._by_chance[list(GRAMMARS).index(name)]])
        return np.minimum.accumulate(means)

    def noise_of(self, name: str, agreement: float) -> float:
        """Return the share of random tokens with which draws of a grammar reach its agreement with a language.

        It is 0 for proj if the agreement is in the range of draws without errors.
        """
        if name == "hol" or (name == "proj" and agreement >= 1 - self._proj[0].max()):
            return 0.0
        return float(np.interp(-agreement, -self._curve(name), NOISE))

    def floor(self, share: float) -> dict[str, float]:
        """Return the agreement of each grammar with its own draws that have a share of random tokens."""
        return {name: float(np.interp(share, NOISE, self._curve(name))) for name in GRAMMARS}


@lru_cache(maxsize=16)
def _draws(space: MeaningSpace, existing: bytes | None, sizes: tuple[int, int], length: int, seed: int) -> _Draws:
    """Return draws for the meanings that exist, or for a random part of many meanings."""
    known = np.arange(space.size) if existing is None else np.frombuffer(existing, dtype=np.int64)
    most = max(ROWS, ROWS_PER_VALUE * space.values)
    if len(known) > most:
        known = np.sort(stream(seed, "nearest", "meanings").choice(known, most, replace=False))
    with silence():
        return _Draws(space.meanings(known), _halves(space, known, seed), sizes, length, seed)


# -- the choice --------------------------------------------------------------------------------------------------------


def _choose(agreement: Mapping[str, float], chance: Mapping[str, float], draws: _Draws) -> str:
    """Return the grammar that a language is a version of; see `nearest_grammar`."""
    above = {name: agreement[name] - chance[name] for name in (*VERSIONS, "proj")}
    above = {name: value for name, value in above.items() if value > LIMIT * draws.deviation[name]}
    specific = {name: above[name] / (1 - chance[name]) for name in VERSIONS if name in above}
    specific = {name: value for name, value in specific.items() if value >= LEAST}
    if not specific:
        return "proj" if "proj" in above else "hol"
    best = max(specific, key=lambda name: specific[name])
    nested = best in ("perm", "shufdet") and specific.get("concat", 0) >= NESTED * specific[best]
    return "concat" if nested else best


# -- errors ------------------------------------------------------------------------------------------------------------


def _errors(grammar: str, rows: Rows, share: float, draws: _Draws) -> str:
    """Return the kind of errors of a language relative to a grammar; see `NearestGrammar`."""
    if grammar == "hol":
        return "none"
    rare, any_ = _concentration(grammar, rows)
    if rare > (max(RARE, draws.rare) if grammar == "proj" else RARE):  # the estimate of proj is not exact
        return "systematic"
    return "random" if any_ and share else "none"


def _concentration(grammar: str, rows: Rows) -> tuple[float, bool]:
    """Return the negative decimal logarithm of the p-value of the cell with too many errors, and if there are errors.

    Cells are positions, and positions for a value or for a pair of values. The p-value is binomial, for the share of
    errors in the language, times the number of cells. All meanings estimate the grammar.
    """
    wrong = GRAMMARS[grammar].predict(rows, rows.values) != rows.tokens
    row, place = np.nonzero(wrong)
    length, smallest, cells = wrong.shape[1], 1.0, 0
    columns = list(rows.values.T)
    pairs_of_values = (one * rows.sizes[0] + other for one, other in combinations(columns, 2))
    for code in chain([np.zeros(len(rows.values), dtype=np.int64)], columns, pairs_of_values):
        size = int(code.max()) + 1
        errors = np.bincount(code[row] * length + place, minlength=size * length)
        meanings = np.bincount(code, minlength=size).repeat(length)
        cells += int((meanings > 0).sum())
        found = errors > 0
        if found.any():
            smallest = min(smallest, bdtrc(errors[found] - 1.0, meanings[found], wrong.mean()).min())
    return float(-np.log10(max(smallest * cells, np.finfo(float).tiny))), bool(wrong.any())
