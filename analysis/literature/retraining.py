"""Published agents, games and numbers of updates: jobs that retrain them, and comparison with the printed numbers."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, field
from types import MappingProxyType

import pandas as pd

from icy.analysis.order import Facts, Row, Series
from icy.core.errors import unknown
from icy.records.long_table import SYNONYMS, option_columns

from .agreement import EVALUATIONS
from .catalogue import DATA, find_table, published
from .verdicts import DRAWN, USUAL_SIZE, judge_runs, verdict_of

# -- published agents of S2B -------------------------------------------------------------------------------------------


COLUMN = {"zsct": "value", "accuracy": "value"}  # columns of results by measure; other columns have the measure's name
SEEDS = 3  # for tables that do not say how many seeds they had
STIMULI = "stimuli"  # column of tables of the recall task
LOSS, WITHOUT = "reconstruction", "without"  # a setting and column, and the column's value for agents without the loss


@dataclass(frozen=True)
class AgentTable:
    """How the agents of a published table are trained, as arguments of the kind of job "s2b".

    Attributes:
        preset: settings of learner and network.
        learner: learning algorithm of the agents.
        settings: changes to the learner's settings. All have the reconstruction loss, as the papers' agents did not
            learn without it; in a table with the column `reconstruction`, this column decides.
    """

    preset: str
    learner: str = "r2d2"
    settings: Facts = field(default_factory=lambda: {LOSS: {}})


AGENTS = {
    "metarg22/listener": AgentTable("metarg22"),
    "metarg22/cores": AgentTable("metarg22"),
    "metarg24/listener": AgentTable("metarg24"),
    "metarg24/cores": AgentTable("metarg24"),
    "metarg24/marl": AgentTable("metarg24", "vdn", {"sad": True, LOSS: {}}),
    "metarg24/figure8": AgentTable("metarg24"),
    "metarg24/figure9": AgentTable("metarg24"),
}
ACQUIRED = "ease_of_acquisition"
EPISODES_ACQUIRED = 20  # number of episodes from which new listeners learn the language; the papers do not say theirs
GAME = MappingProxyType({"compat": "near32"})  # gives the numbers of the authors' program


def agent_parts(
    table: str, reference: pd.DataFrame, seeds: object = None, observations: int | None = None
) -> list[Facts]:
    """Return the arguments of the jobs that retrain published agents, one dict per job.

    Args:
        table: id of the table, one of AGENTS.
        reference: rows of `icy.analysis.published(table)`.
        seeds: seeds; by default as many as the table has.
        observations: number of observations; by default the table's.

    Example:
        >>> from icy.analysis import published
        >>> cells = published("metarg22/listener").query("samples == 4")
        >>> agent_parts("metarg22/listener", cells, observations=1_000_000)[0]["observations"]
        1000000
    """
    about = AGENTS[table]
    trained = reference[reference["observations"].notna()]
    if STIMULI in reference:
        return [
            {
                "core": str(agent),
                "stimuli": list(dict.fromkeys(rows[STIMULI])),
                "preset": about.preset,
                "seeds": SEEDS if seeds is None else seeds,
                "observations": int(rows["observations"].max()) if observations is None else observations,
                "settings": dict(about.settings),
            }
            for agent, rows in trained.groupby("agent", sort=False)
        ]
    own = [name for name in (LOSS, "distractors") if name in trained]
    parts = []
    for key, rows in trained.groupby(["agent", "values", "observations", *own], sort=False):
        agent, values, count = map(str, key[:3])
        least, _, most = values.partition("-")
        runs, more = rows["n"].max(), dict(zip(own, key[3:], strict=True))
        settings = {name: value for name, value in about.settings.items() if name != LOSS or more.get(LOSS) != WITHOUT}
        common = {
            "core": agent,
            "learner": about.learner,
            "preset": about.preset,
            "least": int(least),
            "most": int(most),
            "game": dict(GAME),
            "seeds": (SEEDS if pd.isna(runs) else int(runs)) if seeds is None else seeds,
            "observations": int(count) if observations is None else observations,
            **({"eoa": EPISODES_ACQUIRED} if rows["measure"].eq(ACQUIRED).any() else {}),
            **({"distractors": int(str(more["distractors"]))} if "distractors" in more else {}),
        }
        parts += [{**common, "settings": settings, **games} for games in _games(rows)]
    return parts


def _games(rows: pd.DataFrame) -> list[dict[str, list[int]]]:
    """Return grids of shots and samples that cover the rows: rows with the same shots share a grid."""
    shots = {
        samples: tuple(sorted({int(n) for n in rows.loc[rows["samples"] == samples, "shots"]}))
        for samples in sorted({int(n) for n in rows["samples"]})
    }
    return [
        {"shots": list(grid), "samples": [samples for samples, own in shots.items() if own == grid]}
        for grid in dict.fromkeys(shots.values())
    ]


def judge_agents(table: str, long: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Compare results with the published numbers of agents; see `icy.analysis.literature.verdicts.judge_cells`.

    Args:
        table: id of the table, one of AGENTS.
        long: results of the kind of job "s2b" in long form.
        reference: rows of `icy.analysis.published`.

    Returns:
        The table of `judge_cells`, in percent: the column `representation` holds the number of values, and `grammar`
        holds shots and samples.
    """
    runs = [_runs_of_agent(long, cell) for cell in reference.to_dict("records")]
    cells = reference.rename(columns={"agent": "model"})
    if STIMULI in cells:
        cells = cells.assign(representation="recall", grammar=cells[STIMULI])
    else:
        games = zip(cells["shots"], cells["samples"], strict=True)
        named = ["" if pd.isna(shots) else f"S={shots}, O={samples}" for shots, samples in games]
        cells = cells.assign(representation="V " + cells["values"], grammar=named)
    if LOSS in cells:
        cells["model"] += ", " + cells[LOSS] + " reconstruction"
        cells["grammar"] += [f", K={k}" for k in cells["distractors"]]
    # A number that the paper only plots has no verdict.
    return judge_runs(
        cells, runs, lambda cell: DRAWN if cell["seeds"] and math.isnan(cell["published"]) else verdict_of(cell)
    )


def _runs_of_agent(long: pd.DataFrame, cell: Row) -> pd.DataFrame:
    """Return the results of a cell, in percent."""
    name = COLUMN.get(cell["measure"], cell["measure"])
    if (STIMULI not in cell and pd.isna(cell["shots"])) or name not in long or not len(long):
        return long[:0]
    of = long["model"].str.partition("+")[0].eq(cell["agent"])
    options = option_columns(long).reindex(columns=["values", LOSS])
    if STIMULI in cell:
        of &= long["grammar"].eq(cell[STIMULI])
    else:
        of &= long["shots"].eq(cell["shots"]) & long["samples"].eq(cell["samples"])
        of &= options["values"].eq(cell["values"])
    if LOSS in cell:
        of &= long["distractors"].eq(cell["distractors"])
        of &= options[LOSS].notna().eq(cell[LOSS] != WITHOUT)
    return pd.DataFrame({"value": 100 * long[name].astype(float), "failed": long["failed"]})[of]


# -- published games ---------------------------------------------------------------------------------------------------


GameKey = tuple[str, str, int, int, int]  # world, representation, rule length, word size, message length
GAME_SEEDS = 3  # the table's rows were trained once
WHICH = ("world", "representation", "rule_length", "word_size", "message_length")


@dataclass(frozen=True)
class GameTable:
    """How the agents of a published table of games are trained.

    Attributes:
        arguments: arguments of the kind of job "games" that all rows share.
        by_size: whether the names of rows contain the size of words.
    """

    arguments: Facts = field(default_factory=dict)
    by_size: bool = False


GAMES = MappingProxyType(
    {
        "cbm24/table1": GameTable({"targets": 20}),
        "cbm24/table3": GameTable({"targets": 8, "steps": 200_000}, by_size=True),  # its best epochs are 100 at most
    }
)


def with_names(cells: pd.DataFrame, table: str) -> pd.DataFrame:
    """Add the column `row`, the name of the game as in "thing-qt-l4", to a published table of games.

    Example:
        >>> from icy.analysis import published
        >>> with_names(published("cbm24/table3"), "cbm24/table3")["row"].iloc[0]
        'shape-gs-l1-d8'
    """
    if "message_length" not in cells:
        cells = cells.assign(message_length=cells["rule_length"])
    names = cells["world"] + "-" + cells["representation"] + "-l" + cells["rule_length"].astype(str)
    if GAMES[table].by_size:
        names += "-d" + cells["word_size"].astype(str)
    return cells.assign(row=names)


def game_parts(table: str, reference: pd.DataFrame, seeds: object = None) -> list[Facts]:
    """Return the arguments of the jobs ("games") that retrain published agents, a dict per row of the table.

    Args:
        table: id of the table, one of GAMES.
        reference: cells of the table from `with_names`.
        seeds: seeds; by default SEEDS.
    """
    parts = []
    for _, rows in reference.groupby("row", sort=False):
        first = rows.iloc[0]
        own = {name: first[name] if name in ("world", "representation") else int(first[name]) for name in WHICH}
        if own["rule_length"] > 1:  # one word of four scores .62 to .66 in the paper, .64 to .73 with these
            own["distractor_kind"] = "nearest"
        parts.append({**GAMES[table].arguments, **own, "seeds": GAME_SEEDS if seeds is None else seeds})
    return parts


# -- values side by side -----------------------------------------------------------------------------------------------


def references(table: str) -> dict[GameKey, dict[str, float]]:
    """Return the values of each row of a published table of games by measure; the keys are the columns of WHICH.

    Raises:
        UnknownNameError: an unknown table of games.
    """
    found = find_table(table)
    if found.id not in GAMES:
        raise unknown("published table of games", table, list(GAMES))
    values: dict[GameKey, dict[str, float]] = {}
    for cell in with_names(published(found.id), found.id).to_dict("records"):
        values.setdefault(game_key(cell), {})[cell["measure"]] = cell["mean"]
    return values


def game_key(cell: Row) -> GameKey:
    """Return the game of a published cell: its columns WHICH."""
    numbers = (int(cell[name]) for name in WHICH[2:])
    return (str(cell["world"]), str(cell["representation"]), *numbers)  # type: ignore[return-value]


def judge_games(table: str, long: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Compare results with the published numbers of games; see `icy.analysis.literature.verdicts.judge_cells`.

    Args:
        table: id of the table, one of GAMES.
        long: results of the kind of job "games" in long form, with the column `world`.
        reference: cells of the table from `with_names`.

    Returns:
        The table of `judge_cells`: the column `representation` holds the world, and `model` the name of the row.
    """
    runs = []
    for cell in reference.to_dict("records"):
        rows, name = rows_of(long, cell), cell["measure"]
        runs.append(rows[[name, "failed"]].set_axis(["value", "failed"], axis=1) if name in rows else rows[:0])
    cells = reference.rename(columns={"row": "model"}).assign(representation=reference["world"].str.title(), grammar="")
    return judge_runs(cells, runs)


def rows_of(long: pd.DataFrame, cell: Row) -> pd.DataFrame:
    """Return the results of the game that a published cell belongs to."""
    if not len(long):
        return long
    same = pd.Series(True, index=long.index)
    for name in WHICH:
        same &= long[SYNONYMS.get(name, name)].eq(cell[name])
    return long[same]


# -- claims of CBM24 that its numbers support --------------------------------------------------------------------------

MEASURES = ("accuracy", "cbm", "ami", "ambiguity_rate", "paraphrase_rate", "unmatched_rate", "unique_words")
FEWEST = 3  # least number of games of a world for a correlation
HOLDS, FAILS, IN_PART, UNKNOWN = "holds", "does not hold", "holds in part", "not measured"
PRINTED = "rule_length == message_length and representation in ('gs', 'qt')"  # a word per concept, as in table 1


def claims(games: pd.DataFrame) -> pd.DataFrame:
    """Test the claims of CBM24 in `claims.toml` on measured games.

    Args:
        games: a row per game with the columns WHICH and MEASURES; see `games_of_results`.

    Returns:
        A row per claim, with the columns `claim` (a letter), `said` (its text), `found` (comparisons) and `verdict`.
    """
    rows = []
    for letter, claim in tomllib.loads((DATA / "cbm24" / "claims.toml").read_text(encoding="utf-8")).items():
        table = games
        if "pairs" in claim:  # of games that are equal in these columns; columns of the second end with `_other`
            own = games[games["rule_length"].eq(games["message_length"])].dropna(subset="accuracy")
            table = own.merge(own, on=claim["pairs"], suffixes=("", "_other"))
        table = table.query(claim.get("which", PRINTED))
        if "correlation" in claim:  # of AMI and accuracy, over the games of each world with enough games
            groups = table.dropna(subset=["ami", "accuracy"]).groupby("world", sort=False)
            worlds = [(world, len(own), own["ami"].corr(own["accuracy"])) for world, own in groups]
            table = pd.DataFrame(worlds, columns=["world", "games", "correlation"])
            table = table[table["games"].ge(FEWEST) & table["correlation"].notna()]
        table = table.dropna(subset=[name for name in MEASURES if f"{{{name}" in claim["shown"]])
        found = [claim["shown"].format_map(row) for row in table.to_dict("records")]
        right = len(table.query(claim["holds"]))
        verdict = UNKNOWN if not found else HOLDS if right == len(found) else IN_PART if right else FAILS
        rows.append({"claim": letter, "said": claim["text"], "found": "; ".join(found), "verdict": verdict})
    return pd.DataFrame(rows)


def games_of_results(long: pd.DataFrame) -> pd.DataFrame:
    """Return the means over seeds of each game in a long table with the column `world`; failed runs are left out."""
    good = long[~long["failed"].astype(bool)].rename(columns={"vocab_size": "word_size"})
    good = good.reindex(columns=[*WHICH, *MEASURES]).astype(dict.fromkeys(MEASURES, float))
    return good.astype(dict.fromkeys(WHICH[2:], int)).groupby(list(WHICH), sort=False).mean().reset_index()


# -- published numbers of updates to a target accuracy -----------------------------------------------------------------


STEP_SEEDS = 5  # the paper does not say how many runs it had
HIDDEN = 50  # hidden size for models without hidden units, as the job needs a number
READINGS = {**EVALUATIONS, "clock": True, "training_readings": True}
ONE_HOT = "Composed[{}embedding=onehot]"  # the early senders read the meaning by a linear layer
EARLY = {
    "RNNZero:GRU": ONE_HOT.format(""),
    "RNNZero:LSTM": ONE_HOT.format("cell=LSTM,"),
    "RNNAutoReg:GRU": ONE_HOT.format("feedback=true,"),
}
LEAST_CAP = {"sender": 5, "receiver": 15}
SLACK, CAP_STEP = 1.4, 5
LARGEST = 100  # ratios above this one are not reached: they cost more than the rest of the table
FAR_ERRORS = 3  # icy's mean differs from a printed bound if it is this many standard errors below


def step_parts(reference: pd.DataFrame, seeds: object = None) -> list[Facts]:
    """Return the arguments of `icy.probe` that retrain published models, a dict per space and model.

    Grammars other than concat are trained for at most `cap` times concat's updates. The cap is SLACK times the largest
    printed ratio of the model up to LARGEST, and at least LEAST_CAP. Senders are the early ones, without the start
    symbol.

    Args:
        reference: cells of the published table, with the column `meanings`.
        seeds: seeds; by default SEEDS.

    Example:
        >>> from icy.analysis import published
        >>> part = step_parts(published("perkins21/table7").query("model == 'FC2L' and meanings == '3x10'"))[0]
        >>> part["model"], part["grammar"], part["target"], part["cap"]
        ('sender/FC2L', ['perm', 'rot', 'shuf', 'hol'], 0.9, 45)
    """
    parts = []
    for (meanings, side, model, target), rows in reference.groupby(["meanings", "role", "model", "target"], sort=False):
        grammars = [str(g) for g in dict.fromkeys(rows["grammar"]) if g != "concat"]
        hidden, least = rows["hidden_size"].iloc[0], LEAST_CAP[str(side)]
        steps = rows[rows["measure"] == "steps"]
        ratios = steps["mean"] / steps.loc[steps["grammar"] == "concat", "mean"].max()
        ratio = ratios[ratios <= LARGEST].max()
        cap = least if math.isnan(ratio) else max(least, CAP_STEP * math.ceil(SLACK * ratio / CAP_STEP))
        parts.append(
            {
                "model": f"{side}/{EARLY.get(str(model), model)}",
                "grammar": grammars or ["concat"],
                "meanings": str(meanings),
                "protocol": "acquire",
                "target": float(str(target)),
                "cap": cap,
                "hidden": HIDDEN if pd.isna(hidden) else int(hidden),
                "seeds": STEP_SEEDS if seeds is None else seeds,
                "settings": READINGS | ({"symbols": "V"} if side == "sender" else {}),
            }
        )
    return parts


def judge_steps(long: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Compare results with published numbers of updates; see `icy.analysis.literature.verdicts.judge_cells`.

    The paper does not say how many runs it had, so each number counts as a single run. If it prints a lower bound, or
    icy's runs were cut, the verdict is "differs" only if the two are incompatible.

    Args:
        long: results of `icy.probe` in long form.
        reference: rows of `icy.analysis.published`.

    Returns:
        The table of `judge_cells` with the column `bound`; the column `representation` holds the space.
    """
    runs = [_runs_of_steps(long, cell) for cell in reference.to_dict("records")]
    known = reference.fillna({"n": 1, "hidden_size": USUAL_SIZE}).astype({"n": int, "hidden_size": int})
    cells = judge_runs(known.assign(representation=reference["meanings"]), runs, _verdict_on_steps)
    return cells.assign(bound=reference["bound"].to_list())


def _runs_of_steps(long: pd.DataFrame, cell: Row) -> pd.DataFrame:
    """Return the steps of the results of a cell, or the accuracies of runs that were cut."""
    if not len(long):
        return long
    model, of_steps = EARLY.get(cell["model"], cell["model"]), cell["measure"] == "steps"
    of = long["model"].eq(cell["role"] + "/" + model) & long["meanings"].eq(cell["meanings"])
    of &= long["grammar"].eq(cell["grammar"]) & long["target"].astype(float).eq(cell["target"])
    runs = long.loc[of, [cell["measure"], "failed", "censored"]].set_axis(["value", "failed", "censored"], axis=1)
    return runs if of_steps else runs[runs["censored"]].assign(censored=False)


def _verdict_on_steps(cell: Series) -> str:
    """Return the verdict on a cell. The published or the measured number may be a lower bound."""
    bound = cell["bound"]
    if not cell["seeds"]:
        return verdict_of(cell)
    if pd.notna(bound):
        apart = cell["icy"] + FAR_ERRORS * cell["icy_error"] < bound
        return "cut in both" if cell["censored"] else "differs" if apart else "cut in one"
    if cell["censored"]:
        apart = cell["censored"] == cell["seeds"] and cell["icy"] > cell["published"]
        return "differs" if apart else "cut in one"
    return verdict_of(cell)
