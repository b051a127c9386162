"""The methods of results as paragraphs, ready to paste into a paper."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from icy.analysis.literature.catalogue import published_sources
from icy.analysis.order import heading, in_order, text_of
from icy.analysis.table_cells import conventions_of
from icy.config.protocols import PROTOCOLS, SCRATCH
from icy.core.errors import UnknownNameError
from icy.core.machine import circumstances
from icy.core.registry import SIDES, registry
from icy.core.text import counted, listed, natural
from icy.records.kinds import kind_of_rows
from icy.records.load import Results, long_of, read_any, records_in
from icy.records.long_table import ROW, option_columns, usual_settings
from icy.records.record import Record
from icy.version import __version__

PAPERS = {  # keys of papers: kinds of jobs that use them
    ("perkins21", "icy22"): ("probe", "e2e", "chain", "study"),
    ("metarg22", "metarg24"): ("s2b", "recall"),
    ("cbm24",): ("games",),
}
ICY = f"The icy developers: icy {__version__}, Python package icy-toolkit"
MEASURED = {  # sentence by measure
    "ratio": "The value of a run is the number of updates to an accuracy of {target}, divided by that of concat with "
    "the same model and seed{limit}.",
    "accuracy": "The value of a run is its accuracy at the end of training, from 0 to 1{limit}.",
    "held_out": "The value of a run is its accuracy on held-out meanings ({held_out} of them, chosen by {split}) when "
    "the other meanings are learned to an accuracy of {target}{limit}.",
}
SPACE = ("meanings", "vocab_size", "word_length", "hidden_size", "representation")
SIZES = {"vocab_size": "vocabulary size V", "word_length": "tokens per word w", "hidden_size": "hidden size E"}
USUAL = "optimizer {optimizer}, learning rate {learning_rate:g}, batches of {batch_size} meanings"
TESTS = (
    "Tables have means over seeds with the standard deviation, unless they name another spread; for ratios also the "
    "geometric mean, for which a cut run counts as larger than its value (maximum likelihood of a log-normal "
    "distribution; Tobin 1958). Models are compared by paired t-tests over seeds, of logarithms for ratios, corrected "
    "by Holm's method (1979)."
)
NOT_LOADED = " (not loaded: --plugin FILE adds its source)"
MOST_COMMITS = 5
NAMED_ELSEWHERE = {"model", "protocol", "target", "cap", "max_updates", "held_out", "split", "preset", "settings"}


def methods(results: Results) -> str:
    """Return the methods of results in sentences, with a paragraph per kind of job and protocol, to paste into a paper.

    It has the models, grammars and meaning space; the preset and the settings that differ from it; seeds, measure,
    conventions of metrics, runs that failed or were cut; and a paragraph of versions, machines and references.

    Args:
        results: a ProbeResult, a long table (which does not know its versions), or the path of results.

    Returns:
        The paragraphs as one text, with an empty line between two.

    Raises:
        StoreError: the path has no results.
        InvalidSettingError: no results.

    Example:
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"model": "sender/FC2L", "grammar": ["perm", "rot"], "seed": 1, "value": [0.9, 0.4]})
        >>> print(methods(rows.assign(measure="accuracy")).partition(" The value")[0])
        We trained the sender FC2L on the grammars perm and rot, with 1 seed (1).
    """
    found = read_any(results) if isinstance(results, str | Path) else results
    long = long_of(found)
    parts = [" ".join(_sentences(part)) for _, part in long.groupby(["job_kind", "protocol"], dropna=False, sort=False)]
    records = records_in(found) or ()
    kinds = set(long["job_kind"])
    known = published_sources()
    cited = [known[key]["citation"] for keys, used in PAPERS.items() if kinds & set(used) for key in keys]
    tests = [TESTS] * bool(set(long["measure"]) & {*MEASURED})
    return "\n\n".join([*parts, " ".join([*_made(records), *tests, "References:", *cited, f"{ICY}."])])


def _sentences(long: pd.DataFrame) -> Iterator[str]:
    """Yield the sentences on one kind of job and protocol."""
    first, kind = long.iloc[0], kind_of_rows(long)
    protocol = "" if pd.isna(first["protocol"]) else f" under the protocol {first['protocol']}"
    groups = []
    for side, part in long.groupby("role", sort=False):
        names = sorted({str(name).removeprefix(f"{side}/") for name in part["model"]}, key=natural)
        groups.append(_named(str(side) if side in (*SIDES, "pair") else "model", names))
    grammars = in_order(long["grammar"])
    learned, scratch = [name for name in grammars if name != SCRATCH], SCRATCH in grammars
    trained = f"We trained {listed(groups)} on {_named('grammar', grammars)}"
    if kind.name == "e2e":
        ways = [f"after both sides had learned {_named('grammar', found)}" for found in [learned] if found]
        trained = f"We trained {listed(groups)} end to end, {listed([*['from scratch'] * scratch, *ways])}"
        protocol = ""
    yield f"{trained}{protocol}, with {_seeds(long)}."
    yield from _plug_ins(long)
    space = [_setting(name, long[name]) for name in SPACE]
    rest = [_setting(name, long[name]) for name in ROW if name not in {*SPACE, *NAMED_ELSEWHERE, "options"}]
    if any(space):
        yield f"Settings: {', '.join(filter(None, [*space, *rest]))}."
    yield from _changes(long)
    if first["measure"] in MEASURED:
        facts = {name: text_of(first[name]) for name in ("target", "held_out", "split")}
        yield MEASURED[first["measure"]].format(limit=_limit(long), **facts)
    else:
        yield f"The value of a run is its {heading(str(first['measure']))}."
    used = conventions_of(long, kind.name) if kind.conventions is not None else {}
    if notes := [note for one in used.values() if (note := one.note())]:
        yield f"Conventions of metrics: {'; '.join(notes)}."
    if sources := [f"{name}: {e.source}" for name in used if (e := registry.find("metric", name)) and e.source]:
        yield f"Sources of metrics: {'; '.join(sources)}."
    yield from _dropped(long)


def _named(noun: str, names: Sequence[str]) -> str:
    return f"the {noun} {names[0]}" if len(names) == 1 else f"the {noun}s {listed(names)}"


def _seeds(long: pd.DataFrame) -> str:
    """Return the number of seeds per model, setting and grammar, and the seeds."""
    known = sorted({int(seed) for seed in long["seed"]})
    counts = long.groupby([*ROW, "grammar"], dropna=False)["seed"].nunique()
    low, high = int(counts.min()), int(counts.max())
    whole = len(known) > 2 and known[-1] - known[0] + 1 == len(known)
    shown = f"{known[0]} to {known[-1]}" if whole else listed([*map(str, known)], most=10)
    return f"{counted(high, 'seed') if low == high else f'{low} to {high} seeds'} ({shown})"


def _plug_ins(long: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on the sources of models and grammars of plug-ins, and of models that are not loaded."""
    ours = long[long["role"].isin([*SIDES, "pair"])]
    models = dict.fromkeys(name for text in ours["model"] for name in str(text).split("+"))
    known = {name: registry.find_all(name) for name in (*models, *dict.fromkeys("+".join(long["grammar"]).split("+")))}
    found = {
        name.rpartition("/")[2]: f" ({entries[0].source})" * bool(entries[0].source) if entries else NOT_LOADED
        for name, entries in known.items()
        if (entries and not entries[0].origin.startswith("icy.")) or (not entries and name in models)
    }
    if found:
        yield f"Plug-ins: {'; '.join(name + source for name, source in found.items())}."


def _setting(name: str, values: pd.Series[Any]) -> str:
    """Return the values of a setting as text; "" if no run has one."""
    texts = sorted({text_of(value) for value in values.dropna()} - {"-"}, key=natural)
    if name == "representation":
        texts = [f"{text}{_meaning_of(text)}" for text in texts]
    return f"{SIZES.get(name, heading(name))} {listed(texts)}" if texts else ""


def _meaning_of(representation: str) -> str:
    """Return the description of a representation in brackets; "" for a representation of a plug-in."""
    from icy.core.representations import get_representation  # imports torch

    with contextlib.suppress(UnknownNameError):
        text = get_representation(representation).description.rstrip(".").replace("; ", ", ")
        return f" ({text[:1].lower()}{text[1:]})"
    return ""


def _changes(long: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on the preset and the settings that differ from it, and one on options."""
    presets = sorted({str(one) for one in long["preset"].dropna()})
    changed = _choices(long, "settings")
    if presets:
        kept = f"Training settings are those of icy's {_named('preset', presets).removeprefix('the ')}"
        kind = str(long["job_kind"].iloc[0])
        usual = [usual_settings(preset, kind) for preset in presets if kind in PAPERS["perkins21", "icy22"]]
        texts = {USUAL.format(**one) for one in usual if one}
        kept += f" ({listed(sorted(texts), 'or')})" if texts else ""
        yield f"{kept}, except {changed}." if changed else f"{kept}."
    if options := _choices(long, "options"):
        yield f"Options: {options}."


def _choices(long: pd.DataFrame, column: str) -> str:
    """Return the assignments in a column of the long table, with all values of each name."""
    return ", ".join(
        f"{name} {listed(sorted(set(own.dropna()), key=natural), 'or')}{' in some runs' * bool(own.isna().any())}"
        for name, own in option_columns(long, column).sort_index(axis=1).items()
    )


def _limit(long: pd.DataFrame) -> str:
    """Return the limit of the training of a run, as the end of a sentence; "" if there is none or it varies."""
    first = long.iloc[0]
    protocol = PROTOCOLS.get(str(first["protocol"]))
    if protocol is None or long[["target", "cap", "max_updates"]].drop_duplicates().shape[0] > 1:
        return ""
    if not pd.isna(first["max_updates"]):
        return f"; every run had {first['max_updates']} updates"
    if protocol.stops_at_target:
        return f"; training was cut at {text_of(float(first['cap']))} times the updates of concat"
    return f", after as many updates as concat took to an accuracy of {text_of(first['target'])}"


def _dropped(long: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on failed runs, and one on cut runs."""
    failed, of = long["failed"].astype(bool), f"of {counted(len(long), 'run')}"
    cut = int((long["censored"].astype(bool) & long["measure"].eq("ratio") & ~failed).sum())
    if failed.any():
        reasons = sorted({str(one) for one in long["error"][failed].dropna()})
        why = f" ({'; '.join(reasons)})" if reasons else ""
        yield f"{failed.sum()} {of} failed and {'is' if failed.sum() == 1 else 'are'} left out{why}."
    if cut:
        yield f"{cut} {of} {'was' if cut == 1 else 'were'} cut before the target: the true ratio is larger."


def _made(records: Sequence[Record]) -> Iterator[str]:
    """Yield a sentence on the versions, machines and days of records."""
    if records:
        about = circumstances(records)
        commits = sorted({str(record["git"])[:10] for record in records if record.get("git")})
        first, last = about["made"]
        days = first if first == last else f"{first} to {last}"
        sources = f" (commit {listed(commits, 'or', most=MOST_COMMITS)})" if commits else ""
        yield f"The runs were made with {'; '.join(about['versions'])}{sources} on {listed(about['devices'])}, {days}."
