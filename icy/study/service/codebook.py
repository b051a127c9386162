"""The codebook, which describes every column of an export."""

from __future__ import annotations

from collections.abc import Mapping

from icy.core.text import markdown_table
from icy.study.measures import MEASURES
from icy.study.rows import COLUMNS

Descriptions = Mapping[str, str]

PERSON = "opaque name of the person (random, the same in all tables)"

GAMES: Descriptions = {
    "person": PERSON,
    "pilot": "1 if the person came while the study was a pilot",
    "platform": "recruiting platform of the person",
    "device": "kind of device: computer, tablet or phone, from the browser's user agent, which is not stored",
    "stage": "current page of the person; final pages are done, screened (failed the questions twice) and withdrawn",
    "attempts": "number of attempts at the questions about the instructions",
    "first_seen": "time when the information page was first shown, UTC",
    "consented": "time when the person agreed to take part, UTC",
    "consent_version": "hash of the text that the person agreed to; the text is in study.json",
    "withdrawn": "time when the person withdrew, UTC; empty if they did not",
    "dataset": "synth: three colours and shapes, random words; eng: five colours and shapes, English words",
    "grammar": "grammar of the codes",
    "slot": "position in the order of conditions, from 0",
    "instance": "number of the instance (language and held-out items) in the list of the condition, from 0",
    "language_seed": "seed of the language",
    "person_seed": "seed of the order of cards and items, and of the look of pictures",
    "degenerate": "1 if held-out values happen to be two words side by side, as in concat, in another grammar",
    "distinct_codes": "number of different codes of the language",
    "state": "assigned: not started; open: started, not finished; closed: finished; dropped: given up",
    "cards": "number of cards at the end",
    "score": "sum of points",
    "items": "number of answered items",
    "views": "number of cards that Train showed",
    "added": "number of cards that the person added",
    "removed": "number of cards that the person removed",
    "blurs": "how often the person left the window, as reported by the page",
    "pastes": "how often the person pasted into the answer field, as reported by the page",
    "refused": "number of invalid answers (empty, too long, other letters), which do not affect the game",
    "started": "time when the game started, UTC",
    "finished": "time when the game was finished, UTC",
    "minutes": "minutes from first_seen to finished, idle time included, as in Icy22",
    "palette": "colours at the end: primary or safe",
    "patterns": "1 if colours also had patterns of lines at the end",
    "sound": "1 if tones were on at the end",
    "viewport": "width and height of the page in pixels; empty without scripts",
    "bonus_cents": "bonus of a finished game, in hundredths of the currency, at most that of the plan",
    "decision": "the researcher's decision, approve or reject; empty for no decision yet",
}
IDS: Descriptions = {
    "external_id": "the person's id on the platform; only with --with-ids, for payment",
    "completion_code": "the code that the person was shown at the end; only with --with-ids, for payment",
}
TRIALS: Descriptions = {
    "person": PERSON,
    "dataset": "as in games",
    "grammar": "as in games",
    "example": "number of the item, from 0",
    "meaning": "number of the meaning: colour times the number of shapes, plus shape",
    "colour": "name of the colour",
    "shape": "name of the shape",
    "code": "the right answer",
    "cards": "number of cards when the item was made; a right answer gives this number minus one points",
    "held_out": "index of the held-out item, from 0; empty for other items",
    "among_colour": "number of other cards with the same colour when the item was made",
    "among_shape": "number of other cards with the same shape when the item was made",
    "shown_colour": "number of other meanings with the same colour that had been shown with their codes, in Train or "
    "as feedback",
    "shown_shape": "number of other meanings with the same shape that had been shown with their codes",
    "exposures_colour": "how often the codes of other meanings with the same colour had been shown",
    "exposures_shape": "how often the codes of other meanings with the same shape had been shown",
    "own_exposures": "how often the item's own code had been shown",
    "answerable_1": "1 if its colour and its shape had each been shown in at least one other meaning",
    "answerable_2": "1 if its colour and its shape had each been shown in at least two other meanings",
    "image": "seed of the picture",
    "created": "time when the item was made, UTC",
    "state": "open or graded",
    "answered": "time of the answer, UTC, by the server's clock",
    "reaction_ms": "milliseconds from the picture to the answer, as reported by the page; empty without scripts",
    "raw": "the typed answer",
    "answer": "the normalized answer: compatible letters (NFKC), trimmed, lower case",
    "correct": "1 if the answer equals the code",
    "points": "points for the answer",
}
EVENTS: Descriptions = {
    "person": PERSON,
    "number": "position in the log, from 0",
    "kind": "start, answer, next, train_view, tab, add, remove, blur, paste, finish; refused: an invalid answer; "
    "display: a change of colours or sound",
    "payload": "details as JSON: text; at, the number on the page (see Event in icy.study.game)",
    "time": "time of the event, UTC, by the server's clock",
}
SURVEY: Descriptions = {
    "person": PERSON,
    "key": "the question: age, languages, colour_vision, colour NAME (the colour that the person sees in NAME), "
    "question N, attempt M (a question about the instructions; its value is the index of the answer, from 0)",
    "value": "the answer; skipped questions are left out",
    "time": "time of the answer, UTC",
}
REMARKS: Descriptions = {
    "person": PERSON,
    "text": "remarks at the end, as typed; they may identify the person, so read them before you share them",
    "time": "time of the remarks, UTC",
}
ROWS: Descriptions = {
    "agent_kind": "human",
    "agent": "people, people (pilot), or a name with the changed settings, as in people examples=12",
    "protocol": "played",
    "preset": "clean or published",
    "dataset": "as in games",
    "grammar": "as in games",
    "instance": "as in games",
    "person": PERSON,
    "metric": "name of the metric; see the table of metrics below",
    "split": "the items that the value is averaged over, or game for a value of the whole game; see the table below",
    "value": "value of the metric",
    "items": "number of items that the value is averaged over",
    "persons": "1",
    "low": "empty; only published rows have it",
    "high": "empty; only published rows have it",
    "printed": "empty; only published rows have it",
    "version": "version of icy",
    "pilot": "1 if the person came while the study was a pilot",
    "settings": "settings of the game that differ from the preset, as in examples=12; empty if none do",
}
METRICS: Descriptions = {
    "accuracy": "share of held-out items with an exactly right answer: the main result of the study",
    "letters": "share of letters that are correct at their position",
    "distance": "edit distance to the code, divided by the length of the longer text",
    "first": "share of exactly right answers to the first held-out item",
    "answerable": "share of exactly right answers to held-out items with a colour and a shape that had each been shown "
    "with a code in another item",
    "answerable_twice": "share of exactly right answers to held-out items with a colour and a shape that had each been "
    "shown with codes in at least two other items",
    "trained": "share of exactly right answers to items with cards",
    "agreement": "share of held-out items that a machine and the person it follows (yoked) both got right or both got "
    "wrong",
    "score": "sum of points",
    "cards": "number of cards at the end",
    "views": "number of cards that Train showed",
    "added": "number of cards that the person added",
    "identical": "share of the most frequent answer among all answers",
    "minutes": "minutes from first_seen to finished",
    "chance": "probability that random letters are a code",
    "distinct": "number of different codes of the language",
    "degenerate": "1 if the language is degenerate, as in games",
    "reaction_ms": "median of reaction_ms over the items of the game",
    "strange": "share of answers with a letter that no code of the game has",
}
TABLES: Mapping[str, Descriptions] = {
    "games": GAMES,
    "trials": TRIALS,
    "events": EVENTS,
    "survey": SURVEY,
    "remarks": REMARKS,
    "rows": {name: ROWS[name] for name in COLUMNS},
}
ABOUT = {
    "games": "A row per person who agreed to take part.",
    "trials": "A row per test item. The last one of a game that is not finished may be open.",
    "events": "A row per action that changed the game, per invalid answer and per change of the display. The events "
    "reproduce the game.",
    "survey": "A row per answer on the pages other than the game.",
    "remarks": "A row per person who left remarks.",
    "rows": "A row per metric of a finished game, in the long form that `icy study report --rows` reads.",
}


def codebook() -> str:
    """Return the codebook as Markdown."""
    parts = ["# Codebook", "Truth values are 0 and 1. Times are UTC with milliseconds. Missing values are empty."]
    for name, columns in TABLES.items():
        described = {**columns, **(IDS if name == "games" else {})}
        parts += [f"## {name}", ABOUT[name], markdown_table(["column", "meaning"], [*described.items()])]
    metrics = [(measure.metric, measure.split, METRICS[name]) for name, measure in MEASURES.items()]
    parts += [
        "## metrics",
        "The metrics in `rows` and in the report of `icy study report`.",
        markdown_table(["metric", "split", "meaning"], metrics),
        "## games.jsonl",
        "A finished game per line: person, the rules (settings, instance, seed) and the events. With "
        "`icy study simulate --protocol yoked --yoked-to games.jsonl`, simulated players follow these games.",
        "## study.json",
        "The settings of the study, the versions of icy that ran it, and the text that people agreed to.",
    ]
    return "\n\n".join(parts) + "\n"
