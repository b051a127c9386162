"""What happens at the end of a command: a sentence on stderr where something went wrong, and an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import IO, Any

import click

from icy.core.errors import IcyError, IncompatibleError, InvalidSettingError, UnknownNameError

FULL = "The memory is full; choose smaller sizes, fewer --workers, or a machine with more of it."
DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class Interrupted(click.ClickException):
    """Ctrl-C, with a sentence on what is kept and how to go on."""

    exit_code = INTERRUPTED

    def show(self, file: IO[Any] | None = None) -> None:
        """The sentence, below the ^C that the terminal printed."""
        click.echo(f"\n{self.message}", err=True)


def exit_code_of(action: Callable[[], Any]) -> int:
    """Run a command and return its exit code: 0 done, 1 something failed, 2 usage, 130 interrupted.

    A user's mistake is printed as one sentence. Only a mistake of icy's own, which is worth a report, leaves as an
    exception.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ± or † shows a question mark
    try:
        result = action()
        sys.stdout.flush()  # so that a closed pipe shows here and not at the interpreter's end
        return result if isinstance(result, int) else DONE
    except (click.Abort, KeyboardInterrupt):  # click makes the one of the other
        Interrupted("Interrupted.").show()
        return INTERRUPTED
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
    except RuntimeError as error:
        if "memory" not in str(error):  # torch has no error of its own for a CPU's
            raise
        return _failed(FULL)


def _failed(sentence: str, code: int = FAILED) -> int:
    click.echo(f"Error: {sentence}", err=True)
    return code


def _pipe_closed() -> int:
    """The reader, such as `head`, had enough; keep the interpreter from complaining when it closes stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
