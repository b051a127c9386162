"""Messages and meanings as opaque labels: adjusted mutual information."""

from __future__ import annotations

from typing import Any

from icy.errors import InvalidSettingError, unknown
from icy.meanings import whole_number

from .counting import Codes, together
from .score import Score
from .table import Table

AVERAGES = ("max", "arithmetic", "geometric", "min")
MOST_CELLS = 2 * 10**8  # of messages by meanings: what chance would give sums over all of them


def ami(
    meanings: Any,
    messages: Any = None,
    *,
    attribute: int | None = None,
    average: str = "max",
    eos: int | None = None,
) -> Score:
    """Adjusted mutual information between whole messages and whole meanings, beyond chance (Vinh et al. 2009).

    It is about many rows per meaning. Where every meaning and every message occurs once it is 1 by scikit-learn's
    convention and says nothing; so it is where all messages are one and all meanings too. Where only one of them is
    constant it is 0.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        attribute: take this attribute alone for the label of a row.
        average: of the two entropies, which mutual information is measured against: "max" (Mu and Goodman 2021;
            CBM24), "arithmetic" (scikit-learn's default), "geometric" or "min".
        eos: the token that ends a message; see Table.of.

    Returns:
        A score of at most 1, about 0 for what chance gives, perhaps below; with the numbers of labels and messages in
        the details.

    Raises:
        InvalidSettingError: tables that do not fit together, continuous meanings, no such attribute, or more labels by
            messages than can be worked through.
        UnknownNameError: an average that there is not.

    Example:
        >>> from icy.metrics import ami
        >>> round(ami([[0], [0], [1], [1], [2], [2]], ["a", "a", "b", "c", "d", "d"]).value, 4)
        0.6154
    """
    from sklearn.metrics import adjusted_mutual_info_score

    if average not in AVERAGES:
        raise unknown("average", average, AVERAGES)
    table = Table.of(meanings, messages, eos=eos)
    table.require_discrete("Adjusted mutual information")
    labels, said = _labels(table, attribute), _together(table.positions, len(table))
    numbers = int(labels.max()) + 1, int(said.max()) + 1
    conventions = {"attribute": attribute, "average": average, "eos": eos}
    details = {"labels": numbers[0], "messages": numbers[1]}
    if numbers == (len(table), len(table)):
        return Score("ami", 1.0, len(table), conventions, details)
    if numbers[0] * numbers[1] > MOST_CELLS:
        raise InvalidSettingError(
            f"{numbers[0]} labels by {numbers[1]} messages are too many for adjusted mutual information; "
            "take fewer rows, or one attribute."
        )
    value = adjusted_mutual_info_score(labels, said, average_method=average)
    return Score("ami", float(value), len(table), conventions, details)


def _labels(table: Table, attribute: int | None) -> Codes:
    """A number for every meaning, or for every value of one attribute."""
    if attribute is None:
        return together(*table.factors)
    if whole_number("attribute", attribute, least=0) >= table.attributes:
        raise InvalidSettingError(f"There is no attribute {attribute}; they are numbered 0 to {table.attributes - 1}.")
    return table.factors[attribute]


def _together(positions: list[Codes], rows: int) -> Codes:
    import numpy as np

    return together(*positions) if positions else np.zeros(rows, dtype=np.int64)
