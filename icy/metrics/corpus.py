"""Measures of a corpus of messages: entropy, distinct messages, and the mutual information with meanings."""

from icy.core.conventions import either_spelling
from icy.languages.codes import number, together
from icy.languages.table import Table
from icy.languages.tokens import PAD

from .information import entropy
from .information import mutual_information as information
from .labels import message_labels
from .repeated import of_repeated_rows
from .score import Score, undefined, why_unvaried


@of_repeated_rows
def message_entropy(meanings: object, messages: object = None, *, eos: object = None) -> Score:
    """Entropy of whole messages, in bits: -sum over distinct messages m of p(m) log2 p(m).

    p(m) is the share of rows with message m (Shannon 1948; Kharitonov et al. 2020). Meanings are not used, so a table
    without meanings has a value too.

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


@of_repeated_rows
def unique_messages(meanings: object, messages: object = None, *, share: bool = False, eos: object = None) -> Score:
    """Number of distinct messages, or their share of the rows.

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


@either_spelling
@of_repeated_rows
def mutual_information(
    meanings: object, messages: object = None, *, normalised: bool = False, eos: object = None
) -> Score:
    """Mutual information of whole messages and whole meanings, in bits: H(meaning) + H(message) - H(both).

    Entropies are estimated from shares of rows, so the value is biased upwards on few rows, up to the value of messages
    that occur once each, log2 N; `ami` corrects for chance.

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
    table = Table.of(meanings, messages, eos=eos)
    table.require_discrete("Mutual information")
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
