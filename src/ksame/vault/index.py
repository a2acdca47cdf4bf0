"""The index of a vault: what anybody can see of it, and the root, which stands for all that never changes."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import ClassVar, Literal

from pydantic import Field

from ksame.privacy.documents import Document, Record

_HASH = r"^[0-9a-f]{64}$"


class Entry(Record):
    """One age file in a vault."""

    kind: Literal["key", "record", "film"]
    size: int = Field(ge=0, description="in bytes; 0 where it was left out of this copy")
    sha256: str = Field(pattern=_HASH, description="of the age file")
    commitment: str | None = Field(
        None, pattern=_HASH, description="SHA-256 of the key, which wrapping does not change"
    )

    @property
    def constant(self) -> str:
        """What of the entry never changes."""
        return self.commitment or self.sha256


class Index(Document):
    """What anybody can see of a vault."""

    expected: ClassVar[str] = "the index of a vault"

    schema_: Literal["ksame/vault"] = Field("ksame/vault", alias="schema")
    version: Literal[1] = 1
    release: str = Field(pattern=_HASH, description="digest of the release, as in its certificate")
    files: dict[str, str] = Field(description="SHA-256 of every released file")
    recipients: int = Field(ge=1, description="how many keys open it")
    entries: tuple[Entry, ...] = Field(min_length=1)

    @property
    def root(self) -> str:
        """One hash of everything that never changes."""
        return root_of(self.release, self.entries)


def root_of(release: str, entries: Iterable[Entry]) -> str:
    """Return the root of a vault of a release."""
    lines = [f"{entry.kind} {entry.constant}\n" for entry in entries]
    return sha256("".join([f"ksame-vault 1 {release}\n", *lines]).encode()).hexdigest()
