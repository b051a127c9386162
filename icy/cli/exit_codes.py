"""Exit codes of commands, and the sentence on stderr when one fails."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
from collections.abc import Callable
from typing import IO

import click

from icy.core.errors import IcyError, IncompatibleError, InvalidSettingError, UnknownNameError
from icy.core.escapes import printable
from icy.core.processes import hides_interrupt

from .interrupts import exit_code, what_happened

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
    except BrokenPipeError:
        return _pipe_closed()
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


def _pipe_closed() -> int:
    """Redirect stdout when its reader, such as `head`, has closed it, so that the interpreter exits quietly."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
