"""Writes prompts: rules, all games so far, a question.

Both formats of a prompt have the parts that MetaRG24 prints (appendix B): rules, history (stimuli with three decimals,
messages as the player hears them, decisions, whether they were right, the partner's stimulus), the current game, and
multiple-choice questions. The format "metarg24" also has the step-by-step structure of the printed prompts. The
wording is icy's.
"""

import copy

import numpy as np
from jaxtyping import Float32, Float64
from numpy.typing import ArrayLike, NDArray

from icy.core.registry import LISTENER
from icy.core.text import counted
from icy.s2b.settings import GameSettings
from icy.s2b.transcript import stimuli
from icy.text.interface import estimated_tokens

from .text_model import Choices

FORMS: dict[str, str] = {
    "icy": "one line per fact of a game, and a request where an answer counts",
    "metarg24": "the structure that MetaRG24 prints: 10 symbols, messages of up to 5, and both questions at every step",
}
PRINTED = "metarg24"
PRINTED_GAME: dict[str, int] = {"vocab_size": 9, "length": 5}  # settings of the game in the printed prompts
DECIMALS = ".3f"
Shown = Float32[NDArray[np.float32], "slots width"] | Float64[NDArray[np.float64], "slots width"]
SEE, SAW = "You see: ", "Your partner saw: "
HEARD, SAID, ANSWERED = "Message from your partner: ", "Your message: ", "Your answer: "
RIGHT, WRONG = "That was right.", "That was wrong."
HEADING = "Phase {phase}, game {game}"
STEP = "Step "
PHASES_OF_MEANINGS = (
    "Phase 1 shows the atomic components of meanings. In phase 2 the numbers of games begin anew, and new stimuli "
    "combine the same components in new ways."
)


class Script:
    """The history of one episode from one player's view, as text that grows line by line.

    Args:
        settings: settings of the game.
        role: "speaker" or "listener".
        form: format of the prompt, one of FORMS.

    Attributes:
        printed: whether the format is MetaRG24's, with a heading for each step.
        tokens: estimated number of tokens so far; see `estimated_tokens`.
        phase: 1 in the support, 2 in the query; 0 before the first game.
        game: number of the current game in its phase, from 1.
        step: number of the current step in its game, from 1.
    """

    def __init__(self, settings: GameSettings, role: str, form: str = "icy") -> None:
        self.settings, self.role, self.form = settings, role, form
        self.printed = form == PRINTED
        self.clear()

    def clear(self) -> None:
        """Begin an episode."""
        self._lines: list[str] = []
        self.tokens = self.phase = self.game = self.step = 0

    def copy(self) -> "Script":
        """Return an independent copy of the script."""
        made = copy.copy(self)
        made._lines = list(self._lines)
        return made

    def add(self, line: str) -> None:
        """Add a line."""
        self._lines.append(line)
        self.tokens += estimated_tokens(line)

    def begin_game(self, query: bool, shown: Shown) -> None:
        """Add a game's heading and the player's observation. Games are numbered from 1 in each phase."""
        phase = 2 if query else 1
        self.game = self.game + 1 if phase == self.phase else 1
        self.phase, self.step = phase, 0
        self.add("\n" * bool(self._lines) + HEADING.format(phase=phase, game=self.game))
        self.sees(shown)

    def sees(self, shown: Shown) -> None:
        """Begin a step with the stimuli that the player sees."""
        self._begin_step()
        self.add(SEE + self.shown(shown))

    def _begin_step(self) -> None:
        """Add the heading of the next step, in the format of MetaRG24."""
        self.step += 1
        if self.printed:
            self.add(f"{STEP}{self.step}")

    def shown(self, slots: Shown) -> str:
        """Format stimuli, [slots, W]; they are numbered if the listener sees several."""
        if self.role == LISTENER and len(slots) > 1:
            each = [stimuli(slots[i : i + 1], self.settings, DECIMALS) for i in range(len(slots))]
            return "  ".join(f"{place}: {one}" for place, one in enumerate(each))
        return stimuli(slots, self.settings, DECIMALS)

    def partner_saw(self, slots: Shown) -> None:
        """Begin a step with the stimuli that the partner saw."""
        self._begin_step()
        self.add(SAW + stimuli(slots, self.settings, DECIMALS))

    def prompt(self, choices: Choices) -> str:
        """Return the whole prompt: rules, history, question."""
        above = rules(self.settings, self.role, self.form)
        return "\n".join([above, *self._lines, question(self.settings, self.role, choices)])


# -- rules and questions -----------------------------------------------------------------------------------------------


def rules(settings: GameSettings, role: str, form: str = "icy") -> str:
    """Return the rules for one role, in one of FORMS."""
    here, printed = role == LISTENER, form == PRINTED
    you, partner = ("listener", "speaker") if here else ("speaker", "listener")
    rest = "read as 0" if printed else "ignored"
    form_of_stimuli = f"{counted(settings.dimensions, 'number')} from -1 to 1"
    if settings.representation == "ohe":
        form_of_stimuli = f"{counted(settings.dimensions, 'block')} of {settings.most} bits"
    told = "you are" if here else "the listener is"
    ending = f"At the end of a game {told} told whether the answer was right, and shown what the speaker saw."
    channel = (
        f"The speaker sends {counted(settings.rounds, 'message')} per game. A message has at most "
        f"{counted(settings.length, 'symbol')} out of {settings.vocab_size + 1}, 0 to {settings.vocab_size}. Symbol 0 "
        f"ends a message: whatever follows it is {rest}. What the other symbols mean has to be worked out; it stays "
        "the same in all games."
    )
    lines = [
        "You play a sequence of referential games with a partner, who cannot see what you see. "
        f"You are the {you}, and your partner is the {partner}.",
        f"- A stimulus is {form_of_stimuli}, in brackets. It stands for a hidden meaning. The same meaning may be "
        "shown as different stimuli.",
        f"- {_views(settings)}",
        f"- {channel}",
        *(["- The listener may send messages of the same kind back."] if settings.listener_messages else []),
        f"- {_aim(settings)}",
        *([f"- {ending}"] if settings.feedback else []),
        *([f"- {_steps(settings)}"] if printed else []),
        *([f"- {PHASES_OF_MEANINGS}"] if settings.kind == "meta" else []),
        "",
        "The games so far, and the present one last:",
        "",
    ]
    return "\n".join(lines)


def _views(settings: GameSettings) -> str:
    if settings.slots == 1:
        return "In each game the speaker sees 1 stimulus, and the listener sees 1 stimulus."
    beside = f", the target, and after it the {settings.distractors} others" if settings.speaker_slots > 1 else ""
    numbered = f"the listener sees {settings.slots} stimuli, numbered from 0"
    return f"In each game the speaker sees 1 stimulus{beside}; {numbered}."


def _aim(settings: GameSettings) -> str:
    if settings.slots == 1:
        return "Your common goal is that the listener tells whether both of you see the same meaning."
    missing = ", or that it is not among them" if settings.descriptive else ""
    return f"Your common goal is that the listener tells which stimulus has the meaning of the target{missing}."


def _steps(settings: GameSettings) -> str:
    rounds, last = settings.rounds, settings.rounds + 1
    feedback = f" Step {last + 1} shows the listener what the speaker saw." if settings.feedback else ""
    return (
        f"A game has {counted(last + settings.feedback, 'step')}. A message is heard at the step after it is sent: the "
        f"speaker's messages count up to step {rounds}, and the listener's answer at step {last}.{feedback} All "
        "questions are asked at every step; answers that a step does not need are ignored."
    )


def question(settings: GameSettings, role: str, choices: Choices) -> str:
    """Return the questions to answer now, and the format of the answer."""
    asked, form = [], {}
    if "decision" in choices:
        what, options = "does your partner understand you?", "0 = Yes, 1 = No"
        if role == LISTENER and settings.slots == 1:
            what = "is your stimulus of the same hidden meaning as your partner's?"
        elif role == LISTENER:
            what = "which stimulus has the hidden meaning of your partner's target?"
            none = f", {settings.slots} = none of them" if settings.descriptive else ""
            options = f"0 to {settings.slots - 1} = the stimulus of that number{none}"
        asked.append(f"{what} {options}")
        form["decision"] = "D"
    if "message" in choices:
        again = "" if role == LISTENER else " Use symbols in the same way in all games."
        asked.append(
            f"what is your message? {counted(settings.length, 'symbol')}, each from 0 to {settings.vocab_size}.{again}"
        )
        form["message"] = f"[{', '.join('M' * settings.length)}]"
    lines = [f"Question {number}: {one}" for number, one in enumerate(asked, 1)]
    answer = ", ".join(f'"{name}": {letter}' for name, letter in form.items())
    return "\n".join(["", "Answer as an expert at this game.", *lines, f"Answer with JSON alone: {{{answer}}}"])


def choices_of(settings: GameSettings, role: str, decides: bool, speaks: bool) -> Choices:
    """Return the possible answers. A speaker is also asked whether its partner understands."""
    found: Choices = {}
    if decides or (role != LISTENER and speaks):
        found["decision"] = [str(n) for n in range(settings.decisions if role == LISTENER else 2)]
    if speaks:
        found["message"] = [[str(n) for n in range(settings.vocab_size + 1)]] * settings.length
    return found


def rounded(shown: ArrayLike) -> Float64[NDArray[np.float64], "..."]:
    """Round numbers to three decimals, as in a prompt."""
    array = np.asarray(shown)
    texts = [float(format(x, DECIMALS)) for x in array.ravel().tolist()]
    return np.array(texts).reshape(array.shape)
