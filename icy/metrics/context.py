"""How tokens and concepts go together: context independence, and normalised pointwise mutual information (NPMI)."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError, require_known
from icy.core.register import register_metric
from icy.languages.table import Codes, Table, Weights, together
from icy.languages.tokens import PAD

from .construction import SAME, Facts, message_labels
from .information import shares_of
from .score import Score, of_repeated_rows, undefined, why_unvaried

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_array


# -- context independence: does every concept have its own token in every context? -------------------------------------


CHOICES = ("token_given_concept", "concept_given_token")
USUAL_CHOICE = {"cooccurrence": CHOICES[0], "em": CHOICES[1]}
TIES = ("best", "lowest")
MOST_ROUNDS, SETTLED = 1000, 1e-7  # EM ends after this many rounds, or when all changes of probabilities are smaller
# Shares tie if their relative difference is smaller. In EM, two tokens may approach the same share at different speeds.
TIED = {"cooccurrence": 1e-9, "em": 100 * SETTLED}
PAIRS_AT_ONCE = 65_536
MOST_CELLS = 5 * 10**7  # concepts times tokens: 400 MB for each of a few tables
Matrix = NDArray[np.float64]


def _ceiling(facts: Facts, score: Score) -> str:
    if score.conventions["alignment"] != "cooccurrence" or score.conventions["smoothing"]:
        return ""
    attributes = facts.table.attributes
    return (
        f"by co-occurrence, a language with a token of its own for each value has 1 / A^2 = {1 / attributes**2:.3g}, "
        f"and no language has more than 1 / A = {1 / attributes:.3g}"
    )


@register_metric("context_independence", source="Bogin, Geva and Berant 2018", aliases=("CI",), weighted=True,
                 unstructured=0.0, by_construction=_ceiling)  # fmt: skip
def context_independence(
    meanings: object,
    messages: object = None,
    *,
    alignment: str = "cooccurrence",
    chosen_by: str | None = None,
    ties: str = "best",
    smoothing: float = 0.0,
    eos: object = None,
) -> Score:
    """Context independence: how well each attribute value and one token predict each other.

    The score is the mean over concepts c of p(v | c) p(c | v), with v the token chosen for c. A concept is a value of
    an attribute (Bogin, Geva and Berant 2018). A concept with only empty messages has no token and counts as 0.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths; empty messages do not count.
        alignment: how to estimate the probabilities. "cooccurrence", the form in common use, counts every token of a
            message for every concept of its meaning; ideal languages of A attributes reach 1 / A^2. "em", as in the
            paper, divides the counts among concepts by IBM translation model 1, trained by expectation maximization;
            ideal languages reach 1 up to convergence, and less if words have several tokens, or if a token is in every
            message.
        chosen_by: the probability that the chosen token v maximizes: "token_given_concept", p(v | c), the default for
            "cooccurrence", or "concept_given_token", p(c | v), the default for "em".
        ties: of tokens that tie, to a relative 1e-9 (1e-5 for "em"), choose the one with the highest product
            p(v | c) p(c | v) ("best") or the lowest token ("lowest").
        smoothing: number added to every count.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score in [0, 1]. The details have a DataFrame of concepts with the token, p(v | c) and p(c | v) of each; for
        "em" also the number of rounds and its maximum, the last change of p(v | c), the tolerance, and whether EM
        converged.
        NaN if all messages are empty, or if every attribute is constant.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), continuous meanings, smoothing that is negative or not
            finite, or too many concepts and tokens to hold in memory.
        UnknownNameError: an unknown convention.

    Example:
        >>> from icy.metrics import context_independence
        >>> table = [[0, 0], [0, 1], [1, 0], [1, 1]], ["ac", "ad", "bc", "bd"]
        >>> context_independence(*table).value, round(context_independence(*table, alignment="em").value, 2)
        (0.25, 1.0)
    """
    chosen_by = _checked(alignment, chosen_by, ties, smoothing)
    table = Table.of(meanings, messages, eos=eos).require_discrete("Context independence")
    conventions: dict[str, object] = {"alignment": alignment, "chosen_by": chosen_by, "ties": ties}
    conventions |= {"smoothing": smoothing or None, "eos": eos}
    why = why_unvaried(table.factors) or ("" if table.lengths.any() else "all messages are empty")
    if why:
        return undefined("context_independence", why, len(table), conventions)
    concepts, names = _concepts(table)
    used = np.unique(table.messages[table.messages != PAD])
    tokens = np.where(table.messages == PAD, PAD, np.searchsorted(used, table.messages))  # without gaps
    if len(names) * len(used) > MOST_CELLS:
        raise InvalidSettingError(
            f"{len(names)} concepts by {len(used)} tokens are too many for context independence; take fewer rows."
        )
    counts = np.zeros((len(names), len(used)))  # how often each token occurs in messages about each concept
    for concept in concepts.T:
        for token in tokens.T:
            present = token != PAD
            times = None if table.weights is None else table.weights[present]
            cells = np.bincount(concept[present] * len(used) + token[present], times, minlength=counts.size)
            counts += cells.reshape(counts.shape)
    details: dict[str, object] = {}
    if alignment == "em":
        counts, details = _aligned(concepts, tokens, counts, table.weights)
    counts = counts + smoothing
    shares = dict(zip(CHOICES, (shares_of(counts, 1), shares_of(counts, 0)), strict=True))
    product = shares[CHOICES[0]] * shares[CHOICES[1]]
    choice = shares[chosen_by]
    best = choice >= choice.max(1, keepdims=True) * (1 - TIED[alignment])
    chosen = np.arange(len(names)), (best if ties == "lowest" else np.where(best, product, -1)).argmax(1)
    frame = _frame(names, [table.token_name(v) for v in used[chosen[1]]], {n: s[chosen] for n, s in shares.items()})
    return Score(
        "context_independence", product[chosen].mean(), len(table), conventions, {"concepts": frame, **details}
    )


def _checked(alignment: str, chosen_by: str | None, ties: str, smoothing: float) -> str:
    """Check the conventions, and return `chosen_by` with its default filled in."""
    require_known("alignment", alignment, USUAL_CHOICE)
    if chosen_by is not None:
        require_known("value of chosen_by", chosen_by, CHOICES)
    require_known("rule for ties", ties, TIES)
    if not 0 <= smoothing < np.inf:
        raise InvalidSettingError(f"smoothing must be at least 0, not {smoothing}.")
    return chosen_by or USUAL_CHOICE[alignment]


def _concepts(table: Table, varying: bool = False) -> tuple[NDArray[np.int64], list[tuple[int, Hashable]]]:
    """Return the number of each concept of each row, [N, A], and the attribute and value of each number."""
    names: list[tuple[int, Hashable]] = []
    columns = []
    for a, factor in enumerate(table.factors):
        if factor.max() > 0 or not varying:
            columns.append(factor + len(names))
            names += [(a, table.value_name(a, value)) for value in np.unique(table.meanings[:, a])]
    return np.stack(columns, 1), names


def _aligned(
    concepts: NDArray[np.int64], tokens: NDArray[np.int64], counts: Matrix, weights: Weights | None
) -> tuple[Matrix, dict[str, object]]:
    """Return the counts divided among the concepts of each meaning by EM, and details on its convergence.

    The model translates each token by itself, so it does not matter which message with a meaning a token is in.
    """
    meaning, width, present = together(*concepts.T), int(tokens.max()) + 1, tokens != PAD
    row = np.unique(meaning, return_index=True)[1]
    pairs, which = np.unique((meaning[:, None] * width + tokens)[present], return_inverse=True)
    times = np.bincount(which.ravel(), None if weights is None else weights.repeat(present.sum(1)))
    concepts, tokens = concepts[row[pairs // width]], pairs % width  # of the distinct pairs of a meaning and a token
    translation = shares_of((counts > 0).astype(float), 1)
    rounds, change = 0, np.inf
    while rounds < MOST_ROUNDS and change >= SETTLED:
        rounds += 1
        shared = np.zeros_like(counts)
        for first in range(0, len(times), PAIRS_AT_ONCE):
            some = slice(first, first + PAIRS_AT_ONCE)
            cells = concepts[some], tokens[some][:, None]
            parts = translation[cells]  # each pair is divided among the concepts, in proportion to their translations
            parts *= (times[some] / parts.sum(1))[:, None]
            np.add.at(shared, cells, parts)
        before, translation = translation, shares_of(shared, 1)
        change = float(np.abs(translation - before).max())
    found = {"rounds": rounds, "most_rounds": MOST_ROUNDS, "change": change, "tolerance": SETTLED}
    return shared, {**found, "converged": change < SETTLED}


def _frame(names: list[tuple[int, Hashable]], tokens: Sequence[object], shares: dict[str, Matrix]) -> "pd.DataFrame":
    """Return the DataFrame of concepts; concepts with only empty messages have no token."""
    import pandas as pd

    attributes, values = zip(*names, strict=True)
    frame = pd.DataFrame({"attribute": attributes, "value": values, "token": tokens, **shares})
    silent = shares[CHOICES[0]] == 0
    if silent.any():  # objects, so that tokens stay integers in a column with None
        frame["token"] = frame["token"].astype(object).where(~silent, None)
    return frame


# -- normalised pointwise mutual information (NPMI) of tokens and concepts ---------------------------------------------


UNITS = ("tokens", "messages")
Names = list[Hashable]


def _paired(facts: Facts, score: Score) -> str:
    if score.conventions["units"] != "messages" or not facts.differ(facts.messages):
        return ""
    return f"no message occurs twice: {SAME}" if facts.differ(together(*facts.table.factors)) else ""


@register_metric("npmi", source="Bouma 2009; Lipinski et al. 2024", unstructured=0.0, by_construction=_paired)
@of_repeated_rows
def npmi(meanings: object, messages: object = None, *, units: str = "tokens", eos: object = None) -> Score:
    """Normalised pointwise mutual information: how strongly each attribute value goes with its best token.

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
    import pandas as pd

    require_known("unit of messages", units, UNITS)
    table = Table.of(meanings, messages, eos=eos).require_discrete("NPMI")
    conventions = {"units": units, "eos": eos}
    if why := why_unvaried(table.factors) or ("" if table.lengths.any() else "all messages are empty"):
        return undefined("npmi", why, len(table), conventions)
    (tokens, token_names), (concepts, concept_names) = _incidences(table) if units == "tokens" else _wholes(table)
    pairs = (tokens.T @ concepts).tocoo()
    of_token, of_concept = (side.sum(0) / len(table) for side in (tokens, concepts))
    both = pairs.data / len(table)
    found = np.log(both / (of_token[pairs.row] * of_concept[pairs.col])) / -np.log(both)
    best = np.full(len(concept_names), -1.0)  # for concepts that only have empty messages
    np.maximum.at(best, pairs.col, found)
    order = np.lexsort((pairs.row, pairs.col, -found))
    columns = {
        "token": [token_names[v] for v in pairs.row[order].tolist()],
        "concept": [concept_names[c] for c in pairs.col[order].tolist()],
        "rows": pairs.data[order].astype(int),
        "npmi": found[order],
    }
    return Score("npmi", float(np.clip(best.mean(), -1, 1)), len(table), conventions, {"pairs": pd.DataFrame(columns)})


def _incidences(table: Table) -> tuple[tuple["csr_array", Names], tuple["csr_array", Names]]:
    """Return the incidence tables (`_incidence`) and names of tokens and of concepts."""
    rows, places = np.nonzero(table.messages != PAD)
    used, tokens = np.unique(table.messages[rows, places], return_inverse=True)
    concepts, names = _concepts(table, varying=True)
    of_concepts = _incidence(np.arange(len(table)).repeat(concepts.shape[1]), concepts.ravel(), len(table), len(names))
    of_tokens = _incidence(rows, tokens, len(table), len(used))
    return (of_tokens, [table.token_name(token) for token in used]), (of_concepts, [*names])


def _wholes(table: Table) -> tuple[tuple["csr_array", Names], tuple["csr_array", Names]]:
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


def _incidence(rows: Codes, columns: Codes, count: int, width: int) -> "csr_array":
    """Return a table of zeros and ones, [count, width], with ones at the cells (rows, columns)."""
    from scipy.sparse import csr_array

    cells = np.unique(rows * max(width, 1) + columns)
    return csr_array((np.ones(len(cells)), (cells // max(width, 1), cells % max(width, 1))), shape=(count, width))
