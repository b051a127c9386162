"""Adjusted mutual information (AMI) of messages and meanings, as opaque labels."""

import math

import numpy as np

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, require_known
from icy.core.machine import require_memory
from icy.languages.codes import Codes, together
from icy.languages.table import Table

from .score import Score, undefined, why_unvaried

AVERAGES = ("max", "arithmetic", "geometric", "min")
BYTES_PER_ROW = 64  # bytes per row for counting labels and messages
MOST_CELLS = 2 * 10**8  # labels times messages: the expected mutual information is a sum over all of these


def ami(
    meanings: object,
    messages: object = None,
    *,
    attribute: int | None = None,
    average: str = "max",
    eos: object = None,
) -> Score:
    """Adjusted mutual information (AMI) of whole messages and whole meanings, corrected for chance.

    AMI = (I - E[I]) / (F(H(messages), H(meanings)) - E[I]), with E[I] expected under fixed marginals and F an average
    (Vinh et al. 2009). It is meant for many rows per meaning. If every meaning occurs once, as in a Language, it is
    uninformative: it is 1 by scikit-learn's convention if every message occurs once too, and otherwise 0, as I = E[I].
    The details then have a note. If messages are constant it is 0.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        attribute: label rows by this attribute alone instead of the whole meaning.
        average: F, the average of the two entropies: "max" (Mu and Goodman 2021; CBM24), "arithmetic" (scikit-learn's
            default), "geometric" or "min".
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score of at most 1, about 0 by chance and possibly below, with the numbers of distinct labels and messages in
        the details. NaN if all labels are alike, where scikit-learn's convention is 1 or 0, and for the average "min"
        if chance explains all of the smaller entropy.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), continuous meanings, weights with fractions, an unknown
            attribute, or too many distinct labels and messages.
        UnknownNameError: an unknown average.

    Example:
        >>> from icy.metrics import ami
        >>> round(ami([[0], [0], [1], [1], [2], [2]], ["a", "a", "b", "c", "d", "d"]).value, 4)
        0.6154
    """
    from sklearn.metrics import adjusted_mutual_info_score

    require_known("average", average, AVERAGES)
    table = Table.of(meanings, messages, eos=eos)
    table.require_discrete("Adjusted mutual information")
    labels, codes = _labels(table, attribute), message_labels(table)
    if table.weights is not None:  # the expectation is over orders of repeated rows
        table.require_whole_weights("Adjusted mutual information")
        require_memory(BYTES_PER_ROW * int(table.total_weight), f"A list of {int(table.total_weight)} repeated rows")
        labels, codes = labels.repeat(table.weights), codes.repeat(table.weights)
    numbers = int(labels.max()) + 1, int(codes.max()) + 1
    conventions = {"attribute": attribute, "average": average, "eos": eos}
    if why := why_unvaried([labels]):
        return undefined("ami", why, len(table), conventions)
    if len(labels) in numbers:
        return _of_single_rows(numbers, len(table), conventions)
    if math.prod(numbers) > MOST_CELLS:
        raise InvalidSettingError(
            f"{numbers[0]} labels by {numbers[1]} messages are too many for adjusted mutual information; "
            "take fewer rows, or one attribute."
        )
    value = adjusted_mutual_info_score(labels, codes, average_method=average)
    return Score("ami", value, len(table), conventions, {"labels": numbers[0], "messages": numbers[1]})


def _of_single_rows(numbers: tuple[int, int], rows: int, conventions: dict[str, object]) -> Score:
    """Return the score if every label, or every message, occurs once; it is known without E[I].

    If all labels differ, each determines its message however messages are permuted, and vice versa:
    I = E[I]. Computed in floating point, 0 / 0 would give noise.
    """
    fewer, which = min(numbers), "message" if numbers[1] == rows else "label"
    if 1 < fewer < rows and conventions["average"] == "min":
        why = f"every {which} occurs once, so that the expected information by chance equals the smaller entropy"
        return undefined("ami", why, rows, conventions)
    if fewer == rows:
        value, note = 1.0, "every label and every message occurs once: 1 by convention, which is uninformative"
    else:
        value, note = 0.0, f"every {which} occurs once, so that information is as expected by chance: 0 for any table"
    return Score("ami", value, rows, conventions, {"labels": numbers[0], "messages": numbers[1], "note": note})


def _labels(table: Table, attribute: int | None) -> Codes:
    """Return the number of each row's meaning, or of its value of one attribute, [N]."""
    if attribute is None:
        return together(*table.factors)
    if whole_number("attribute", attribute, least=0) >= table.attributes:
        raise InvalidSettingError(f"Attribute {attribute} does not exist: numbers are 0 to {table.attributes - 1}.")
    return table.factors[attribute]


def message_labels(table: Table) -> Codes:
    """Return the number of each row's message, [N]; equal messages have equal numbers."""
    return together(*table.positions) if table.length else np.zeros(len(table), dtype=np.int64)
