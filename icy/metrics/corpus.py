"""Measures of whole messages as opaque labels: entropy, number, and their information about meanings, also adjusted."""

import math

from icy.core.checks import whole_number
from icy.core.conventions import either_spelling
from icy.core.errors import InvalidSettingError, require_known
from icy.core.machine import require_memory
from icy.core.register import register_metric
from icy.languages.table import Codes, Table, number, together
from icy.languages.tokens import PAD

from .construction import Facts, message_labels
from .information import entropy
from .information import mutual_information as information
from .score import Score, of_repeated_rows, undefined, why_unvaried

# -- adjusted mutual information (AMI) of messages and meanings, as opaque labels --------------------------------------


AVERAGES = ("max", "arithmetic", "geometric", "min")
BYTES_PER_ROW = 64  # bytes per row for counting labels and messages
MOST_CELLS = 2 * 10**8  # labels times messages: the expected mutual information is a sum over all of these


@register_metric("ami", source="Vinh et al. 2009; Mu and Goodman 2021", weighted=True, unstructured=0.0)
def ami(
    meanings: object,
    messages: object = None,
    *,
    attribute: int | None = None,
    average: str = "max",
    eos: object = None,
) -> Score:
    """Adjusted mutual information between whole messages and whole meanings.

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
    table = Table.of(meanings, messages, eos=eos).require_discrete("Adjusted mutual information")
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


# -- measures of a corpus of messages ----------------------------------------------------------------------------------


@register_metric("message_entropy", source="Shannon 1948", unbounded=True)
@of_repeated_rows
def message_entropy(meanings: object, messages: object = None, *, eos: object = None) -> Score:
    """Entropy of whole messages, in bits; needs no meanings.

    It is -sum over distinct messages m of p(m) log2 p(m). p(m) is the share of rows with message m (Shannon 1948;
    Kharitonov et al. 2020). Meanings are not used, so a table without meanings has a value too.

    Args:
        meanings: [N, A] attribute values, or a Language or Table, which may lack meanings.
        messages: [N, S] tokens, or sequences of any lengths.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score of at least 0 and at most log2 N, 0 if all messages are alike. The details have the number of distinct
        messages, and the entropy of single tokens over all messages, in bits.

    Raises:
        InvalidSettingError: an invalid table (see Table.of).

    Example:
        >>> from icy.metrics import message_entropy
        >>> score = message_entropy([[0], [1], [2], [3]], ["ab", "ab", "ba", "bb"])
        >>> score.value, score.details["messages"], round(score.details["token_entropy"], 3)
        (1.5, 3, 0.954)
    """
    table = Table.of(meanings, messages, eos=eos)
    labels, tokens = message_labels(table), table.messages[table.messages != PAD]
    details = {
        "messages": int(labels.max()) + 1,
        "token_entropy": entropy(number(tokens)) if len(tokens) else 0.0,
    }
    return Score("message_entropy", entropy(labels), len(table), {"eos": eos}, details)


@register_metric("unique_messages", source="Guo et al. 2022; CBM24", unbounded=True)
@of_repeated_rows
def unique_messages(meanings: object, messages: object = None, *, share: bool = False, eos: object = None) -> Score:
    """Number of distinct messages; needs no meanings.

    Fewer messages than meanings is a collapse of messages (Guo et al. 2022; the column #m of CBM24). Meanings are not
    used, so a table without meanings has a value too.

    Args:
        meanings: [N, A] attribute values, or a Language or Table, which may lack meanings.
        messages: [N, S] tokens, or sequences of any lengths; the empty message counts as a message.
        share: divide by the number of rows.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score of at least 0: a whole number from 1 to N, or from 1 / N to 1 if `share`. The details have both, as
        `number` and `share`.

    Raises:
        InvalidSettingError: an invalid table (see Table.of).

    Example:
        >>> from icy.metrics import unique_messages
        >>> table = [[0], [1], [2], [3]], ["ab", "ab", "ba", "bb"]
        >>> unique_messages(*table).value, unique_messages(*table, share=True).value
        (3.0, 0.75)
    """
    table = Table.of(meanings, messages, eos=eos)
    distinct = int(message_labels(table).max()) + 1
    details = {"number": distinct, "share": distinct / len(table)}
    value = details["share" if share else "number"]
    return Score("unique_messages", value, len(table), {"share": share, "eos": eos}, details)


def _all_different(facts: Facts, score: Score) -> str:
    if not facts.differ(facts.messages):
        return ""
    value = "1" if score.conventions["normalised"] else "the entropy of the meanings"
    return f"no message occurs twice: {value} for any unique messages"


@register_metric("mutual_information", source="Shannon 1948", unstructured=0.0, unbounded=True,
                 by_construction=_all_different)  # fmt: skip
@either_spelling
@of_repeated_rows
def mutual_information(
    meanings: object, messages: object = None, *, normalised: bool = False, eos: object = None
) -> Score:
    """Mutual information between whole messages and whole meanings, in bits.

    It is H(meaning) + H(message) - H(both). Entropies are estimated from shares of rows, so the value is biased upwards
    on few rows, up to the value of messages that occur once each, log2 N; `ami` corrects for chance.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        normalised: divide by the entropy of meanings, which gives the share of it that messages determine.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score of at least 0, and at most 1 if normalised. The details have the entropies of meanings and of messages,
        and the entropy of each given the other, in bits. NaN if every attribute is constant.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), or continuous meanings.

    Example:
        >>> from icy.metrics import mutual_information
        >>> table = [[0, 0], [0, 1], [1, 0], [1, 1]], ["a", "a", "b", "b"]
        >>> mutual_information(*table).value, mutual_information(*table, normalised=True).value
        (1.0, 0.5)
    """
    table = Table.of(meanings, messages, eos=eos).require_discrete("Mutual information")
    conventions = {"normalised": normalised, "eos": eos}
    if why := why_unvaried(table.factors):
        return undefined("mutual_information", why, len(table), conventions)
    meaning, message = together(*table.factors), message_labels(table)
    of_meanings, of_messages, shared = entropy(meaning), entropy(message), information(meaning, message)
    details = {
        "meaning_entropy": of_meanings,
        "message_entropy": of_messages,
        "meaning_given_message": of_meanings - shared,
        "message_given_meaning": of_messages - shared,
    }
    value = shared / of_meanings if normalised else shared
    return Score("mutual_information", value, len(table), conventions, details)
