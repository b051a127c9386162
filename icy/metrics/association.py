"""Normalised pointwise mutual information (NPMI) of tokens and concepts."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from icy.core.errors import require_known
from icy.languages.codes import Codes, together
from icy.languages.table import Table
from icy.languages.tokens import PAD

from .labels import message_labels
from .repeated import of_repeated_rows
from .score import Score, undefined, why_unvaried

if TYPE_CHECKING:
    import pandas as pd

UNITS = ("tokens", "messages")
Names = list[Hashable]


@of_repeated_rows
def npmi(meanings: object, messages: object = None, *, units: str = "tokens", eos: object = None) -> Score:
    """Normalised pointwise mutual information (NPMI): the mean over concepts of the NPMI with their best token.

    NPMI(v, c) = log(p(v, c) / (p(v) p(c))) / -log p(v, c), where p are shares of rows: with token v in the message,
    with concept c, a value of an attribute, in the meaning, and with both (Bouma 2009). It is 1 if v and c only occur
    together, 0 if they are independent, and -1 if they never occur together. Lipinski et al. 2024 list the pairs with a
    high NPMI as the dictionary of an emergent language; the mean over concepts of the highest NPMI is a score.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths; a token counts once per message.
        units: "tokens" pairs each token with each attribute value; "messages" pairs whole messages with whole meanings,
            the "non-compositional" NPMI of Lipinski et al. 2024.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score in [-1, 1]. The details have `pairs`, a DataFrame of all pairs that occur together with their number of
        rows and NPMI, best first. Constant attributes are left out. NaN if every attribute is constant,
        or if all messages are empty.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), or continuous meanings.
        UnknownNameError: unknown units.

    Example:
        >>> from icy.metrics import npmi
        >>> meanings = [[0, 0], [0, 1], [1, 0], [1, 1]]
        >>> npmi(meanings, ["ac", "ad", "bc", "bd"]).value, npmi(meanings, ["ac", "ad", "bd", "bc"]).value
        (1.0, 0.5)
    """
    require_known("unit of messages", units, UNITS)
    table = Table.of(meanings, messages, eos=eos)
    table.require_discrete("NPMI")
    conventions = {"units": units, "eos": eos}
    if why := why_unvaried(table.factors) or ("" if table.lengths.any() else "all messages are empty"):
        return undefined("npmi", why, len(table), conventions)
    (tokens, token_names), (concepts, concept_names) = _tokens(table) if units == "tokens" else _wholes(table)
    pairs = (tokens.T @ concepts).tocoo()
    of_token, of_concept = (side.sum(0) / len(table) for side in (tokens, concepts))
    both = pairs.data / len(table)
    found = np.log(both / (of_token[pairs.row] * of_concept[pairs.col])) / -np.log(both)
    best = np.full(len(concept_names), -1.0)  # for concepts that only have empty messages
    np.maximum.at(best, pairs.col, found)
    details = {"pairs": _frame(pairs, found, token_names, concept_names)}
    return Score("npmi", float(np.clip(best.mean(), -1, 1)), len(table), conventions, details)


def _tokens(table: Table) -> tuple[tuple[csr_array, Names], tuple[csr_array, Names]]:
    """Return the incidence tables (`_incidence`) and names of tokens and of concepts."""
    rows, places = np.nonzero(table.messages != PAD)
    used, tokens = np.unique(table.messages[rows, places], return_inverse=True)
    names: Names = []
    columns = []
    for a, factor in enumerate(table.factors):
        if factor.max() > 0:
            columns.append(factor + len(names))
            names += [(a, table.value_name(a, value)) for value in np.unique(table.meanings[:, a])]
    concepts = np.concatenate(columns)
    of_concepts = _incidence(np.tile(np.arange(len(table)), len(columns)), concepts, len(table), len(names))
    of_tokens = _incidence(rows, tokens, len(table), len(used))
    return (of_tokens, [table.token_name(token) for token in used]), (of_concepts, names)


def _wholes(table: Table) -> tuple[tuple[csr_array, Names], tuple[csr_array, Names]]:
    """Return the incidence tables (`_incidence`) and names of whole messages and of whole meanings."""
    rows = np.arange(len(table))
    found = []
    for codes in (message_labels(table), together(*table.factors)):
        first = np.unique(codes, return_index=True)[1]
        found.append((_incidence(rows, codes, len(table), len(first)), first))
    (message_table, message), (meaning_table, meaning) = found
    words: Names = [tuple(table.token_name(t) for t in table.messages[i] if t != PAD) for i in message]
    things: Names = [tuple(table.value_name(a, v) for a, v in enumerate(table.meanings[i])) for i in meaning]
    return (message_table, words), (meaning_table, things)


def _incidence(rows: Codes, columns: Codes, count: int, width: int) -> csr_array:
    """Return a table of zeros and ones, [count, width], with ones at the cells (rows, columns)."""
    cells = np.unique(rows * max(width, 1) + columns)
    return csr_array((np.ones(len(cells)), (cells // max(width, 1), cells % max(width, 1))), shape=(count, width))


def _frame(pairs: Any, found: NDArray[np.float64], tokens: Names, concepts: Names) -> "pd.DataFrame":
    """Return the DataFrame of pairs, sorted by NPMI, then by concept and token."""
    import pandas as pd

    order = np.lexsort((pairs.row, pairs.col, -found))
    row, column = pairs.row[order].tolist(), pairs.col[order].tolist()
    columns = {"token": [tokens[v] for v in row], "concept": [concepts[c] for c in column]}
    return pd.DataFrame({**columns, "rows": pairs.data[order].astype(int), "npmi": found[order]})
