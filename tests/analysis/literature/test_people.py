"""The published people as rows."""

from __future__ import annotations

from icy.analysis.people import STUDY_COLUMNS, published_people

RIGHT = {  # spycodes-facts 7: right answers of all, or their range
    ("synth", "concat"): (9, 13), ("synth", "perm"): (2, 2), ("synth", "proj"): (1, 1), ("synth", "rot"): (2, 2),
    ("synth", "shufdet"): (3, 3), ("eng", "concat"): (25, 29), ("eng", "perm"): (9, 13), ("eng", "proj"): (2, 2),
    ("eng", "rot"): (1, 1), ("eng", "shufdet"): (34, 38),
}  # fmt: skip


def test_rows_are_computed_from_counts() -> None:
    people = published_people()
    assert list(people.columns) == list(STUDY_COLUMNS)
    exact = people[people["metric"] == "exact"]
    for row in exact.to_dict("records"):
        least, most = RIGHT[row["dataset"], row["grammar"]]
        assert (round(row["low"] * row["items"]), round(row["high"] * row["items"])) == (least, most)
        assert row["items"] == 3 * row["persons"]
    assert exact.groupby("dataset")["persons"].sum().to_dict() == {"synth": 85, "eng": 88}


def test_scores_and_minutes_are_as_printed() -> None:
    people = published_people().set_index(["dataset", "grammar", "metric"])
    assert people.loc[("eng", "concat", "score"), "printed"] == "200±100"
    assert people.loc[("synth", "rot", "minutes"), "value"] == 21
