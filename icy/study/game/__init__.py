"""The core of Secret Spy Codes. The web service, simulated players and models use it.

A `StudyGame` has the rules of one person's game: `StudyGameSettings` (dataset, grammar, preset), an `Instance`
(language and held-out items, from the list of the condition), and the person's seed (0..2**63-1). A `GameState` is an
immutable value. The core is deterministic, and uses no clock, database or web server.

    settings = StudyGameSettings.of("clean", dataset="eng", grammar="perm")
    instance = instance_of(settings, 7, seed=1)          # from the fixed list that people and machines share
    game = StudyGame(settings, instance, seed=person_seed)
    state = game.new()                                   # phase "new"
    state = game.apply(state, Event("start"))            # phase "open", with the first item
    state = game.apply(state, Event("answer", "redcir", at=0))
    state = game.apply(state, Event("next", at=0))       # after the last item: phase "closed"

- Events: start, answer (text), next, train_view, tab (text "test" or "train"; opening Train draws a card), add, remove,
  blur, paste, finish. `at` is the number on the page when the event happened: the example for answer and next, the
  number of cards for add and remove, the view for train_view.
- An event that is not possible now, or that comes from an outdated page, has no effect: `apply` returns the same object
  (`after is before`). So a repeated answer keeps the first verdict, a repeated next or add has no effect, and a closed
  game never changes.
- `fault_of(text)` returns why a text is not an answer ("empty", "long", "letters"). The item then stays open.
- `game.shown(state)` returns the content of the page, as `Shown` (`.to_json()`): phase, example, score, cards, points,
  buttons, tab, the code that Train shows, and feedback once graded. Nothing in it is secret.
- `game.picture(state)` and `game.train_picture(state)` go to `icy.study.stimuli.svg(picture, palette)`. Pictures, the
  state, the trials, `game.codes` and `game.order` are secret: they include meanings, codes and held-out items.
- `state.trials` is the log of items: meaning, code, cards, held_out, exposures, answer, correct, points. `state.score`
  is the sum of points; `settings.bonus_cents(state.score)` is the bonus.
- JSON: `game.to_json()` and `StudyGame.of_json`, `state.to_json()` and `GameState.of_json`, `event.to_json()` and
  `Event.of_json`. `game.replay(events)` computes the state from a log; an audit compares it with the stored state.
"""

import lazy_loader

from icy.core.importing import renamed

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
OLD = {"Game": "StudyGame", "GameSettings": "StudyGameSettings", "Card": "TrainCard", "Feedback": "AnswerFeedback"}
__getattr__ = renamed(__name__, OLD, _load)
