"""Exit codes of commands, and the sentence on stderr when one fails."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import IO, Any

import click

from icy.core.errors import IcyError, IncompatibleError, InvalidSettingError, UnknownNameError
from icy.core.processes import ENDING, hides_interrupt, set_ending
from icy.core.text import printable

# -- standard streams of a command: closed streams, and an error stream without a reader -------------------------------


STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


class _Remarks(io.FileIO):
    """The error stream. After a failed write (no reader, full disk) it drops all output.

    Training does not stop because its progress cannot be shown.
    """

    def write(self, content: Any, /) -> int:
        """Write bytes, or drop them."""
        with contextlib.suppress(OSError):
            return super().write(content)
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        return memoryview(content).nbytes


def mend_streams() -> None:
    """Open standard streams that the caller closed (`>&-`), and make the error stream drop unwritable output.

    Call this only in a process that runs a single command. A closed stream is opened on the null device: otherwise the
    next file that is opened would get the stream's number, and receive everything that a library prints.
    """
    for number, (name, mode) in enumerate(STREAMS):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number and _is_closed(number):
                os.dup2(null, number)
                os.close(null)
                null = number
            setattr(sys, name, os.fdopen(null, mode, encoding="utf-8"))
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        raw = io.BufferedWriter(_Remarks(sys.stderr.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(raw, sys.stderr.encoding, "backslashreplace", line_buffering=True)


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False


# -- reaction of a command to signals that end it ----------------------------------------------------------------------

# All three raise KeyboardInterrupt: finished results are saved, and tables are written. Meanwhile, further signals have
# no effect for PATIENCE_SECONDS. After that, another signal interrupts the saving as well.


PATIENCE_SECONDS = 10.0  # before a second signal ends the process at once
AGAIN_SECONDS = 0.05  # before an interrupt that was lost is repeated


class _Stopping:
    """The signals of one command.

    Attributes:
        number: number of the first signal; None before any signal.
        hook: callback for exceptions that Python drops.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._at = -PATIENCE_SECONDS  # when the signal came
        self._over = False
        self.hook: Callable[[Any], object] = sys.__unraisablehook__

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        now = time.monotonic()
        if now - self._at < PATIENCE_SECONDS:
            return
        if self._over:
            os._exit(self.code)  # the process hangs while it ends
        self.number, self._at = self.number or number, now
        set_ending(True)
        _leave_lost_terminal()
        raise KeyboardInterrupt

    def end(self) -> None:
        """Mark the command as ended: later signals interrupt nothing."""
        self._at, self._over = time.monotonic(), True

    @property
    def code(self) -> int:
        """The exit code after a signal, in the shells' convention."""
        return 128 + (self.number or signal.SIGINT)

    @property
    def said(self) -> str:
        """The signal, as the beginning of a sentence."""
        return "Interrupted" if self.number in (None, signal.SIGINT) else f"Ended by {signal.Signals(self.number).name}"

    def lost(self, unraisable: Any) -> None:
        """Interrupt again if Python dropped a KeyboardInterrupt, as in finalizers. Report other dropped exceptions."""
        if self.number is None or self._over or not issubclass(unraisable.exc_type, KeyboardInterrupt):
            self.hook(unraisable)
            return
        again = threading.Timer(AGAIN_SECONDS, self._again)
        again.daemon = True
        again.start()

    def _again(self) -> None:
        self._at = -PATIENCE_SECONDS
        os.kill(os.getpid(), self.number or signal.SIGINT)


_stopping = _Stopping()


def exit_code() -> int:
    """Return the exit code of a command that was interrupted."""
    return _stopping.code


def what_happened() -> str:
    """Return how a command was interrupted, as the beginning of a sentence: "Interrupted" or "Ended by SIGTERM"."""
    return _stopping.said


@contextlib.contextmanager
def interruptible(whole: bool) -> Iterator[None]:
    """Make signals interrupt the command in the context.

    Signals that the process ignores stay ignored: hang-ups under nohup, Ctrl-C in the background of a shell.

    Args:
        whole: whether the process ends with the command; otherwise the earlier handlers are restored.
    """
    global _stopping
    if threading.current_thread() is not threading.main_thread():  # only the main thread can have handlers
        yield
        return
    _stopping = now = _Stopping()
    if whole:
        atexit.register(_ignore)  # registered first, so that it runs last
    heard = [number for number in ENDING if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    before: Any = {number: signal.signal(number, now.hear) for number in heard}
    now.hook, sys.unraisablehook = sys.unraisablehook, now.lost
    try:
        yield
    finally:
        set_ending(False)
        if whole:
            now.end()
            # Otherwise Python ends by SIGINT, not with the exit code, if an interrupt ever occurred in an `exec` of
            # text, which dataclasses use. Evaluating another text clears this state.
            eval("0")
        else:
            sys.unraisablehook = now.hook
            for number, handler in before.items():
                signal.signal(number, handler)


def _ignore() -> None:
    """Ignore signals in the last moments of this process, when Python removes its handlers."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _leave_lost_terminal() -> None:
    """Stop writing to a terminal that has closed: every write would be an error."""
    for descriptor in (1, 2):
        try:
            os.write(descriptor, b"")
        except OSError:
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


FULL = "The memory is full; choose smaller sizes, fewer --workers, or a machine with more memory."
DONE, FAILED, USAGE = 0, 1, 2


class Interrupted(click.ClickException):
    """Ctrl-C, or another signal that ends the process.

    Args:
        saved: a sentence on the saved results and on how to resume.
    """

    def __init__(self, saved: str = "") -> None:
        super().__init__(f"{what_happened()}{f': {saved}' if saved else '.'}")
        self.exit_code = exit_code()  # type: ignore[misc]  # click reads it from the class

    def show(self, file: IO[str] | None = None) -> None:
        """Print the sentence, below the ^C that the terminal printed."""
        click.echo(f"\n{self.message}", err=True)


def same_command(ctx: click.Context) -> str:
    """Return the command as typed, without `--rerun always`, which would repeat finished replicates."""
    line = shlex.join(["icy", *ctx.find_root().meta["icy.words"]])
    return re.sub(r" --rerun[ =]always", "", line)


def exit_code_of(action: Callable[[], object]) -> int:
    """Run a command and return its exit code: 0 done, 1 something failed, 2 usage, 128 + n ended by signal n.

    Expected errors are printed as one sentence. Only bugs in icy raise an exception.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ± or † shows a question mark
    try:
        result = action()
        sys.stdout.flush()  # a closed pipe should raise here, not when the interpreter exits
        return result if isinstance(result, int) else DONE
    except (click.Abort, KeyboardInterrupt):  # click turns KeyboardInterrupt into Abort
        return _interrupted()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (UnknownNameError, InvalidSettingError, IncompatibleError) as error:
        return _failed(str(error), USAGE)
    except IcyError as error:
        return _failed(str(error))
    except MemoryError:
        return _failed(FULL)
    except BrokenPipeError:  # the reader of stdout, such as `head`, has closed it: the interpreter exits quietly
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        return _failed(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.")
    except Exception as error:
        if isinstance(error, RuntimeError) and "memory" in str(error):  # torch has no special error for this
            return _failed(FULL)
        if hides_interrupt(error):
            return _interrupted()
        raise


def _interrupted() -> int:
    interrupted = Interrupted()
    interrupted.show()
    return interrupted.exit_code


def _failed(sentence: str, code: int = FAILED) -> int:
    click.echo(f"Error: {printable(sentence)}", err=True)
    return code
