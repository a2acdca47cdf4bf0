"""The linkage: the secret of who became whom."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ksame.errors import InputError, OutputError
from ksame.faces.reading import StrPath

Table = TypeVar("Table", bound=BaseModel)


class LinkedFace(BaseModel):
    """One released face and whom it stands for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    released: str
    subject: str
    sources: tuple[str, ...]
    group: int | None = None
    figures: dict[str, Any] = Field(default_factory=dict)


class WithheldFace(BaseModel):
    """An original for which no released face stands, and why."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    subject: str
    reason: str


class Linkage(BaseModel):
    """Everything that would undo a release: keep it secret, or do not keep it at all."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_: Literal["ksame/linkage"] = Field("ksame/linkage", alias="schema")
    version: Literal[1] = 1
    release_digest: str
    seed: int
    faces: tuple[LinkedFace, ...]
    withheld: tuple[WithheldFace, ...] = ()

    @property
    def groups(self) -> dict[str, int]:
        """The group of every subject that is in one."""
        return {face.subject: face.group for face in self.faces if face.group is not None}

    def write(self, path: StrPath) -> None:
        """Write to ``path``, readable by its owner only; an existing file is refused."""
        write_secret(Path(path), self.model_dump_json(by_alias=True, indent=1) + "\n")

    @classmethod
    def read(cls, path: StrPath) -> Linkage:
        """Read a link table."""
        return read_table(cls, Path(path), "a ksame link table")


def read_table(kind: type[Table], path: Path, what: str) -> Table:
    """Read a link table of some kind, or say that the file is not ``what`` it should be."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: the link table cannot be read ({error.strerror}).") from error
    except ValidationError as error:
        raise InputError(f"{path}: not {what} ({error.errors()[0]['msg']}).") from error


def write_secret(path: Path, text: str) -> None:
    """Write a link table, readable by its owner only; an existing file is refused."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise OutputError(f"{path}: a file of this name exists; a link table is never overwritten.") from None
    except OSError as error:
        raise OutputError(f"{path}: the link table cannot be written ({error.strerror}).") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise OutputError(f"{path}: the link table cannot be written ({error.strerror}).") from error
