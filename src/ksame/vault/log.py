"""The log of openings, beside the vault: JSON lines, each with the hash of the line before.

The vault's last line holds the number of lines and the hash of the last one, so that a log that was cut off or removed
is noticed. Who can write both files can put both back to an earlier state, and that is not noticed here: note the head
that every opening prints elsewhere.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ksame.errors import InputError, OutputError
from ksame.privacy.documents import Record, read_document

_HASH = r"^[0-9a-f]{64}$"


class Opening(Record):
    """One line: who of a vault was opened, when and with which key."""

    number: int = Field(ge=1)
    time: str
    action: Literal["open", "rekey", "grant"]
    people: tuple[str, ...] = Field(description="names in the link table; empty for all of it")
    key: str = Field(description="public key of the identity that opened it")
    note: str = ""
    before: str = Field(pattern=_HASH, description="SHA-256 of the line before; of the first, the root of the vault")


@dataclass(frozen=True)
class OpeningLog:
    """The lines of a log that holds together."""

    path: Path
    openings: tuple[Opening, ...]
    head: str  # SHA-256 of the last line; the root of the vault where there is none

    @classmethod
    def read(cls, path: Path, root: str) -> OpeningLog:
        """Read a log and check its chain; one that is not there is empty.

        Raises InputError when a line was changed, added or taken out.
        """
        try:
            data = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise InputError(f"{path}: the log of openings cannot be read ({error.strerror}).") from error
        openings, head = [], root
        if data and not data.endswith(b"\n"):
            raise InputError(
                f"{path}: its last line is incomplete. If the machine stopped during an opening, remove that line; "
                "otherwise use the log that was beside the vault."
            )
        for number, line in enumerate(data.split(b"\n")[:-1], 1):
            try:
                opening = read_document(Opening, line, "a line of a log of openings")
            except InputError:
                raise _broken(path, number) from None
            if opening.number != number or opening.before != head or _line(opening) != line:
                raise _broken(path, number)
            openings.append(opening)
            head = sha256(line).hexdigest()
        return cls(path, tuple(openings), head)

    def require(self, count: int, head: str) -> None:
        """Refuse a log that is not the one that the vault has noted.

        One line more is good: the vault may not have been told of it, where an opening was interrupted.
        """
        n = len(self.openings)
        at = self.openings[count].before if n > count else self.head
        if n < count or n > count + 1 or at != head:
            raise InputError(
                f"{self.path}: the vault has noted {count} openings, and this log has {n} lines, or others. They were "
                "cut off, added or changed, or it is the log of another vault. Use the log that was beside the vault."
            )

    def append(self, **what: Any) -> OpeningLog:
        """Write one more line to the disk, and return the log with it."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        opening = Opening(number=len(self.openings) + 1, time=now, before=self.head, **what)
        line = _line(opening)
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                file.write(line + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OutputError(
                f"{self.path}: the opening cannot be logged ({error.strerror}), so nothing was opened. Copy the vault "
                "to where it can be written."
            ) from error
        return OpeningLog(self.path, (*self.openings, opening), sha256(line).hexdigest())


def log_of(vault: Path) -> Path:
    """Return where the log of a vault lies.

    Examples
    --------
    >>> log_of(Path("case.age")).as_posix()
    'case.age.log'
    """
    return vault.with_name(f"{vault.name}.log")


def _line(opening: Opening) -> bytes:
    text = json.dumps(opening.model_dump(mode="json"), ensure_ascii=True, separators=(",", ":"))
    return re.sub(r"[\r\n]", " ", text).encode()


def _broken(path: Path, number: int) -> InputError:
    return InputError(f"{path}: line {number} was changed, or lines before it. Use the log that was beside the vault.")
