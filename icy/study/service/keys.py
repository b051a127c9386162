"""Random tokens, and marks that only the holder of the key can make."""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from icy.core.errors import StoreError

BYTES = 16  # of tokens and marks: 128 bits
KEY_BYTES = 32


def new_token() -> str:
    """Return 128 random bits as capital hexadecimal digits, in which no code of a game can be read by chance."""
    return secrets.token_hex(BYTES).upper()


@dataclass(frozen=True)
class Key:
    """A secret of the server, which stands in a file beside the database.

    Attributes:
        secret: random bytes.
    """

    secret: bytes

    @classmethod
    def of_file(cls, path: Path, make: bool = True) -> Key:
        """Return the key in a file, which only its owner may read.

        Args:
            path: of the file.
            make: whether to make a key if there is none; not where people were recorded under one that is gone.

        Raises:
            StoreError: it cannot be read or made.
        """
        try:
            if not path.exists() and not make:
                raise StoreError(
                    f"The key '{path}' of the database is gone; put it back from where you keep copies. Without it "
                    "nobody who took part is known again; if it is lost, name another database in the settings."
                )
            if not path.exists():
                _create(path, secrets.token_bytes(KEY_BYTES))
            found = path.read_bytes()
        except OSError as error:
            raise StoreError(f"The key '{path}' cannot be read or made: {error.strerror or error}.") from error
        if len(found) != KEY_BYTES:
            raise StoreError(f"'{path}' holds no key; put the right file back, or ids cannot be told apart any more.")
        return cls(found)

    def mark(self, *names: str | int) -> str:
        """Return 128 bits that stand for some names, and that nobody can guess or trace back without the key."""
        text = "\x1f".join(str(name) for name in names)
        return hmac.new(self.secret, text.encode(), "sha256").hexdigest()[: 2 * BYTES].upper()

    def matches(self, given: str, *names: str | int) -> bool:
        """Return whether a mark is that of some names, in a time that tells nothing."""
        return hmac.compare_digest(given.encode(), self.mark(*names).encode())


def _create(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, whole or not at all; another process may be first."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        pass  # of the other process
    finally:
        temporary.unlink(missing_ok=True)
