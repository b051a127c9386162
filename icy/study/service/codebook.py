"""The codebook: what every column of an export means."""

from __future__ import annotations

from collections.abc import Mapping

from icy.core.text import markdown_table
from icy.study.measures import MEASURES
from icy.study.rows import COLUMNS

Descriptions = Mapping[str, str]

PERSON = "opaque name of the person, random, the same in all tables"

GAMES: Descriptions = {
    "person": PERSON,
    "pilot": "1 if the person came while the study was a pilot",
    "platform": "where the person came from",
    "device": "kind of device: computer, tablet or phone, from the browser's own words, which are not kept",
    "stage": "the page that the person is at; done, screened (failed the questions twice) and withdrawn are ends",
    "attempts": "attempts at the questions on the instructions",
    "first_seen": "when the page of information was first shown, UTC",
    "consented": "when the person agreed to take part, UTC",
    "consent_version": "hash of what the person agreed to; the text is in study.json",
    "withdrawn": "when the person withdrew, UTC; empty for never",
    "dataset": "synth: three colours and shapes, random words; eng: five, English words",
    "grammar": "grammar of the codes",
    "slot": "place in the order of conditions, from 0",
    "instance": "number of the instance (language and held-out items) in the list of the condition, from 0",
    "language_seed": "seed of the language",
    "person_seed": "seed of the order of cards and items, of held-out pictures and of what pictures look like",
    "degenerate": "1 if held-out values happen to be written as two words side by side, though the grammar is another",
    "distinct_codes": "number of different codes of the language",
    "state": "assigned: not started; open: being played, or left; closed: finished; dropped: given up",
    "cards": "number of cards at the end",
    "score": "sum of points",
    "items": "number of items that were answered",
    "views": "number of cards that Train showed",
    "added": "how often the person added a card",
    "removed": "how often the person removed one",
    "blurs": "how often the person left the window, as the page reports it",
    "pastes": "how often the person pasted into the field of the answer, likewise",
    "refused": "answers that were none (empty, too long, other letters), which cost nothing",
    "started": "when the game started, UTC",
    "finished": "when it was finished, UTC",
    "minutes": "minutes from first_seen to finished, idle time included, as in Icy22",
    "palette": "colours at the end: primary or safe",
    "patterns": "1 if colours also had patterns of lines at the end",
    "sound": "1 if tones were on at the end",
    "viewport": "width and height of the page in pixels; empty without scripts",
    "bonus_cents": "bonus of a finished game, in hundredths of the currency, at most that of the plan",
    "decision": "approve or reject, as the researcher decided; empty for none yet",
}
IDS: Descriptions = {
    "external_id": "the person's id on the platform; only with --with-ids, for payment",
    "completion_code": "the code that the person was shown at the end; likewise",
}
TRIALS: Descriptions = {
    "person": PERSON,
    "dataset": "as in games",
    "grammar": "as in games",
    "example": "number of the item, from 0",
    "meaning": "number of the meaning: colour times the number of shapes, plus shape",
    "colour": "the colour in words",
    "shape": "the shape in words",
    "code": "the right answer",
    "cards": "number of cards when the item was made; a right answer gives one point less",
    "held_out": "which of the held-out items it is, from 0; empty for the others",
    "among_colour": "other cards of its colour when it was made",
    "among_shape": "other cards of its shape",
    "shown_colour": "other meanings of its colour that had been shown with their codes, in Train or as feedback",
    "shown_shape": "the same of its shape",
    "exposures_colour": "how often they had been shown",
    "exposures_shape": "the same of its shape",
    "own_exposures": "how often its own code had been shown",
    "answerable_1": "1 if its colour and its shape had each been shown in one other meaning or more",
    "answerable_2": "1 if in two or more",
    "image": "seed of what its picture looks like",
    "created": "when it was made, UTC",
    "state": "open or graded",
    "answered": "when it was answered, UTC, by the server's clock",
    "reaction_ms": "milliseconds from the picture to the answer, as the page reports; empty without scripts",
    "raw": "what was typed",
    "answer": "that, as it was compared: compatible letters (NFKC), trimmed, lower case",
    "correct": "1 if it is the code, letter by letter",
    "points": "what it gave",
}
EVENTS: Descriptions = {
    "person": PERSON,
    "number": "place in the log, from 0",
    "kind": "start, answer, next, train_view, tab, add, remove, blur, paste, finish; refused: an answer that was none; "
    "display: colours or sound were changed",
    "payload": "the rest of it, as JSON: text, and what the page showed (at)",
    "time": "when it happened, UTC, by the server's clock",
}
SURVEY: Descriptions = {
    "person": PERSON,
    "key": "what was asked: age, languages, colour_vision, colour NAME (which colour the person sees in NAME), "
    "question N, attempt M (place of the answer to a question on the instructions, from 0)",
    "value": "the answer; what was skipped is left out",
    "time": "when it was given, UTC",
}
REMARKS: Descriptions = {
    "person": PERSON,
    "text": "remarks at the end, as typed: they may tell who the person is, so read them before you share them",
    "time": "when they were left, UTC",
}
ROWS: Descriptions = {
    "agent_kind": "human",
    "agent": "people",
    "protocol": "played",
    "preset": "clean or published",
    "dataset": "as in games",
    "grammar": "as in games",
    "instance": "as in games",
    "person": PERSON,
    "metric": "what is measured; the table of metrics below has all",
    "split": "items that the value is a mean over, or game for a number of the game itself; likewise",
    "value": "the number",
    "items": "number of items that it is a mean over",
    "persons": "1",
    "low": "empty; of published rows alone",
    "high": "likewise",
    "printed": "likewise",
    "version": "of icy",
}
METRICS: Descriptions = {
    "accuracy": "share of the held-out items whose code is right, letter by letter: the result of the study",
    "letters": "share of letters that are right at their places",
    "distance": "edit distance to the code, as a share of the longer of both",
    "first": "as for held-out, of the first of them alone",
    "answerable": "likewise, of those whose colour and shape had each been shown with a code in another item",
    "answerable_twice": "likewise, in two others or more",
    "trained": "share of the items with cards that are right",
    "agreement": "of machines that follow a person's game (yoked): share of held-out items that both got right, or "
    "both wrong",
    "score": "sum of points",
    "cards": "number of cards at the end",
    "views": "number of cards that Train showed",
    "added": "how often a card was added",
    "identical": "share of answers that are the commonest one",
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
    "events": "A row per thing that a player did and that changed something; a game can be played again from these.",
    "survey": "A row per answer on the pages beside the game.",
    "remarks": "A row per person who left remarks.",
    "rows": "A row per number of a finished game, in the long form that `icy study report --rows` reads.",
}


def codebook() -> str:
    """Return the codebook as Markdown."""
    parts = ["# Codebook", "Truth values are 0 and 1. Times are UTC with milliseconds. An empty cell is: not given."]
    for name, columns in TABLES.items():
        described = {**columns, **(IDS if name == "games" else {})}
        parts += [f"## {name}", ABOUT[name], markdown_table(["column", "meaning"], [*described.items()])]
    metrics = [(measure.metric, measure.split, METRICS[name]) for name, measure in MEASURES.items()]
    parts += [
        "## metrics",
        "What `rows` and the report of `icy study report` hold.",
        markdown_table(["metric", "split", "meaning"], metrics),
        "## games.jsonl",
        "A finished game per line: person, the rules (settings, instance, seed) and the events, which "
        "`icy study simulate --protocol yoked --yoked-to games.jsonl` lets other players follow.",
        "## study.json",
        "The settings of the study, the versions of icy that ran it, and what people agreed to, word for word.",
    ]
    return "\n\n".join(parts) + "\n"
