"""Random tokens, and keyed hashes (marks), which only the owner of the key can compute."""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from icy.core.errors import StoreError

BYTES = 16  # length of tokens and marks: 128 bits
KEY_BYTES = 32


def new_token() -> str:
    """Return 128 random bits in upper-case hexadecimal, which cannot contain a (lower-case) code of a language."""
    return secrets.token_hex(BYTES).upper()


@dataclass(frozen=True)
class Key:
    """The secret key of the server, stored in a file next to the database.

    Attributes:
        secret: random bytes.
    """

    secret: bytes

    @classmethod
    def of_file(cls, path: Path, make: bool = True) -> Key:
        """Read the key from a file, or create it. Only the owner may read the file.

        Args:
            path: path of the file.
            make: whether to create a missing key; use False for a database with data, which needs its own key.

        Raises:
            StoreError: the key cannot be read or created.
        """
        try:
            if not path.exists() and not make:
                raise StoreError(
                    f"The key '{path}' of the database is missing; restore it from a backup. Without the key, icy "
                    "cannot recognize people who took part. If it is lost, name another database in the settings."
                )
            if not path.exists():
                _create(path, secrets.token_bytes(KEY_BYTES))
            found = path.read_bytes()
        except OSError as error:
            raise StoreError(f"The key '{path}' cannot be read or created: {error.strerror or error}.") from error
        if len(found) != KEY_BYTES:
            raise StoreError(
                f"'{path}' is not a key; restore the right file. Without the key, icy cannot recognize people who took "
                "part."
            )
        return cls(found)

    def mark(self, *names: str | int) -> str:
        """Return a 128-bit keyed hash of names, which cannot be computed or inverted without the key."""
        text = "\x1f".join(str(name) for name in names)
        return hmac.new(self.secret, text.encode(), "sha256").hexdigest()[: 2 * BYTES].upper()

    def matches(self, mark: str, *names: str | int) -> bool:
        """Return whether a mark is the hash of names, in constant time."""
        return hmac.compare_digest(mark.encode(), self.mark(*names).encode())


def _create(path: Path, content: bytes) -> None:
    """Create a file that only its owner may read, atomically. A file that exists by then is kept."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        pass  # another process was first
    finally:
        temporary.unlink(missing_ok=True)
