"""Mutual information of positions and symbols with attributes: posdis, bosdis, and the table behind them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

from icy.core.errors import require_known
from icy.core.register import register_metric
from icy.languages.table import Codes, Table, Weights, names_of_attributes, number
from icy.languages.tokens import PAD

from .construction import positional
from .score import Score, undefined, why_unvaried

if TYPE_CHECKING:
    import pandas as pd


# -- entropy and mutual information of discrete variables --------------------------------------------------------------

# With weights of the rows, [N], the counts are sums of weights.


NOTHING = 1e-12  # bits; smaller values are floating-point noise
DENSE = 16  # limit of the cells of a joint count table, per row of data, for storing the table as an array


def entropy(codes: Codes, weights: Weights | None = None) -> float:
    """Return the entropy of a variable, in bits."""
    return _entropy_of_counts(np.bincount(codes, weights))


def joint_entropy(x: Codes, y: Codes, weights: Weights | None = None) -> float:
    """Return the joint entropy of two variables, in bits."""
    width = int(y.max()) + 1
    cells = x * width + y
    if (int(x.max()) + 1) * width <= DENSE * len(x):
        return _entropy_of_counts(np.bincount(cells, weights))
    if weights is not None:
        return _entropy_of_counts(np.bincount(number(cells), weights))
    return _entropy_of_counts(np.unique(cells, return_counts=True)[1])


def mutual_information(x: Codes, y: Codes, weights: Weights | None = None) -> float:
    """Return the mutual information of two variables, in bits, clipped to [0, min(H(x), H(y))] against rounding."""
    return information_of(entropy(x, weights), entropy(y, weights), joint_entropy(x, y, weights))


def information_of(x: float, y: float, joint: float) -> float:
    """Return the mutual information of two variables from their entropies and their joint entropy, in bits."""
    found = min(x + y - joint, x, y)
    return found if found > NOTHING else 0.0


def conditional_entropy(x: Codes, given: Codes, weights: Weights | None = None) -> float:
    """Return the conditional entropy H(x | given), in bits."""
    left = joint_entropy(x, given, weights) - entropy(given, weights)
    return left if left > NOTHING else 0.0


def _entropy_of_counts(counts: NDArray[np.int64] | NDArray[np.float64]) -> float:
    some = counts[counts > 0].astype(float)
    if len(some) < 2:
        return 0.0
    total = some.sum()
    return float(max(0.0, np.log2(total) - (some @ np.log2(some)) / total))


def shares_of(values: Float64[NDArray[np.float64], "*axes"], axis: int) -> Float64[NDArray[np.float64], "*axes"]:
    """Return values as shares of their sum along an axis, or 0 where the sum is 0."""
    total = values.sum(axis, keepdims=True)
    return np.asarray(np.divide(values, total, out=np.zeros_like(values), where=total > 0))


CONSTANT = ("skip", "zero")
Matrix = NDArray[np.float64]


@register_metric("posdis", source="Chaabouni et al. 2020", weighted=True, unstructured=0.0, by_construction=positional)
def posdis(meanings: object, messages: object = None, *, constant: str = "skip", eos: object = None) -> Score:
    """Positional disentanglement: how far each position encodes a single attribute.

    A position's gap is the difference between its highest and second-highest mutual information with an attribute,
    divided by the position's entropy; posdis is the mean gap over positions (Chaabouni et al. 2020). It is biased, up
    or down, on few rows, where the estimated mutual information with an unrelated attribute is above 0.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths; the end of a shorter message counts as one more symbol.
        constant: how to treat positions that always hold the same symbol: "skip" leaves them out, as in EGG; "zero"
            counts them as 0, as Icy22's program does.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score in [0, 1], with the gap and the best attribute of each position in the details. NaN if fewer than two
        attributes change, or if every position is left out.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), or continuous meanings.
        UnknownNameError: an unknown convention.

    Example:
        >>> from icy.metrics import posdis
        >>> posdis([[0, 0], [0, 1], [1, 0], [1, 1]], [[1, 1], [1, 2], [2, 2], [2, 1]]).value
        0.5
    """
    table = Table.of(meanings, messages, eos=eos).require_discrete("posdis")
    conventions = {"constant": constant, "eos": eos}
    return _gaps("posdis", table, table.positions, list(range(table.length)), constant, conventions, "position")


@register_metric("bosdis", source="Chaabouni et al. 2020", weighted=True, unstructured=0.0)
def bosdis(
    meanings: object,
    messages: object = None,
    *,
    constant: str = "skip",
    ignore: int | Sequence[int] = (),
    eos: object = None,
    vocab_size: int | None = None,
) -> Score:
    """Bag-of-symbols disentanglement: how far the count of each symbol encodes a single attribute.

    Like posdis, with the number of times that a symbol occurs in a message in place of the token at a position
    (Chaabouni et al. 2020).

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        constant: how to treat symbols with the same count in every message, including unused ones: "skip" leaves them
            out, as EGG does; "zero" counts them as 0, as Icy22's program does, so that the mean is over the whole
            vocabulary.
        ignore: a symbol to leave out, or several; EGG leaves out 0, its end of a message.
        eos: the token that ends a message, a number or a name; see Table.of.
        vocab_size: V, for `constant="zero"`; by default that of the Language, or the largest token plus one.

    Returns:
        A score in [0, 1], with the gap and the best attribute of each used symbol in the details. NaN as for
        posdis.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), or continuous meanings.
        UnknownNameError: an unknown convention.

    Example:
        >>> from icy.metrics import bosdis
        >>> bosdis([[0, 0], [0, 1], [1, 0], [1, 1]], [[1, 3], [4, 1], [3, 2], [2, 4]]).value
        1.0
    """
    table = Table.of(meanings, messages, eos=eos, vocab_size=vocab_size).require_discrete("bosdis")
    ignored = tuple(ignore) if isinstance(ignore, Iterable) else (ignore,)
    used = [token for token in np.unique(table.messages).tolist() if token != PAD]  # the vocabulary may be huge
    symbols = [token for token in used if table.token_name(token) not in ignored]
    counts = [number((table.messages == token).sum(1)) for token in symbols]
    conventions = {"constant": constant, "ignore": ignored, "eos": eos, "vocab_size": table.vocab_size}
    names = [table.token_name(token) for token in symbols]
    unused = table.vocab_size - len({*map(table.token_name, used), *filter(table.has_token, ignored)})
    return _gaps("bosdis", table, counts, names, constant, conventions, "symbol", unused)


def _gaps(
    metric: str,
    table: Table,
    parts: Sequence[Codes],
    names: Sequence[object],
    constant: str,
    conventions: dict[str, object],
    what: str,
    unused: int = 0,
) -> Score:
    """Return the mean gap over variables of the messages (`parts`), which `names` identify in the details.

    Under "zero" the mean also includes the `unused` parts, with gaps of 0.
    """
    require_known(f"rule for a {what} that never changes", constant, CONSTANT)
    if why := why_unvaried(table.factors, needed=2):
        return undefined(metric, why, len(table), conventions)
    shares, informed = part_gaps(table.factors, parts, table.weights)
    varied = ~np.isnan(shares)
    total = int(varied.sum()) if constant == "skip" else len(shares) + unused
    if not total:
        return undefined(metric, f"no {what} of the messages ever changes", len(table), conventions)
    details = {
        "gaps": dict(zip(names, shares.tolist(), strict=True)),
        "attributes": dict(zip(names, informed.tolist(), strict=True)),
    }
    return Score(metric, float(shares[varied].sum()) / total, len(table), conventions, details)


def part_gaps(
    factors: Sequence[Codes], parts: Sequence[Codes], weights: Weights | None = None
) -> tuple[Float64[Matrix, " part"], Int64[NDArray[np.int64], " part"]]:
    """Return the gap in mutual information between each part's two best attributes, divided by the part's entropy.

    Args:
        factors: the attributes, at least two, [N] each.
        parts: variables of the messages, such as the token at a position, [N] each.
        weights: number of times each row counts, [N]; by default once.

    Returns:
        The gap of each part, NaN if the part is constant, and its best attribute: [parts] each.
    """
    if not parts:
        return np.empty(0), np.empty(0, dtype=np.int64)
    information = information_matrix(factors, parts, weights)
    ordered = np.sort(information, 0)
    entropies = np.array([entropy(part, weights) for part in parts])
    gaps = np.full(len(parts), np.nan)
    np.divide(ordered[-1] - ordered[-2], entropies, out=gaps, where=entropies > NOTHING)
    return gaps, best_rows(information)


def information_matrix(
    factors: Sequence[Codes], parts: Sequence[Codes], weights: Weights | None = None
) -> Float64[Matrix, "attr part"]:
    """Return the mutual information of every attribute with every part of the messages, in bits: [A, parts]."""
    of_parts = [(part, entropy(part, weights)) for part in parts]
    return np.array([
        [information_of(alone, of_part, joint_entropy(factor, part, weights)) for part, of_part in of_parts]
        for factor, alone in ((factor, entropy(factor, weights)) for factor in factors)
    ])  # fmt: skip


def best_rows(information: Float64[Matrix, "attr part"], tolerance: float = 1e-9) -> Int64[NDArray[np.int64], " part"]:
    """Return the row of the largest entry in each column; of rows that tie up to rounding, the first."""
    return np.asarray((information >= information.max(0) - tolerance).argmax(0))


def information_table(
    meanings: object, messages: object = None, *, attributes: Sequence[str] | None = None, eos: object = None
) -> "pd.DataFrame":
    """Tabulate the mutual information of every position with every attribute, in bits.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        attributes: names of the attributes; by default their numbers.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A row per attribute and position: the entropy of each, their mutual information, the entropy of each given the
        other, and the mutual information as a share of the attribute's entropy (NaN for a constant attribute).

    Raises:
        InvalidSettingError: an invalid table (see Table.of), continuous meanings, or not one name per attribute.

    Example:
        >>> from icy.metrics import information_table
        >>> table = information_table([[0, 0], [0, 1], [1, 0], [1, 1]], ["ac", "ad", "bc", "bd"])
        >>> table[["attribute", "position", "information"]].to_string(index=False).splitlines()
        ['attribute  position  information', '        0         0          1.0', '        0         1          0.0', \
'        1         0          0.0', '        1         1          1.0']
    """
    import pandas as pd

    table = Table.of(meanings, messages, eos=eos).require_discrete("The table of information")
    weights = table.weights
    of_factors, of_parts = ([entropy(codes, weights) for codes in some] for some in (table.factors, table.positions))
    information = information_matrix(table.factors, table.positions, weights)
    rows = [
        {
            "attribute": name,
            "position": j,
            "attribute_entropy": alone,
            "position_entropy": of_part,
            "information": information[a, j],
            "attribute_given_position": alone - information[a, j],
            "position_given_attribute": of_part - information[a, j],
            "share": information[a, j] / alone if alone > 0 else np.nan,
        }
        for a, (name, alone) in enumerate(zip(names_of_attributes(table, attributes), of_factors, strict=True))
        for j, of_part in enumerate(of_parts)
    ]
    return pd.DataFrame(rows)
