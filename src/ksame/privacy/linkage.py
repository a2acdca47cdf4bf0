"""The linkage: the secret of who became whom, and the faces that later releases repeat."""

from __future__ import annotations

import binascii
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ksame.errors import InputError, OutputError, UsageError
from ksame.faces.faceset import ByteArray
from ksame.faces.reading import StrPath, decode_png
from ksame.privacy.documents import read_bytes, read_document

Table = TypeVar("Table", bound=BaseModel)


class LinkedFace(BaseModel):
    """One released face and whom it stands for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    released: str
    subject: str
    sources: tuple[str, ...]
    group: int | None = None
    figures: dict[str, Any] = Field(default_factory=dict)
    since: int = Field(1, ge=1, description="number of the release in which this face was shown first")
    face: str | None = Field(None, description="key of its bytes among the kept faces")


class PastRelease(BaseModel):
    """One release of a series."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int = Field(ge=1)
    digest: str
    k: int = Field(ge=1, description="how many people share each face, all releases up to this one together")


class WithheldFace(BaseModel):
    """An original for which no released face stands, and why."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    subject: str
    reason: str


class Linkage(BaseModel):
    """Everything that would undo a release: keep it secret, or do not keep it at all."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)

    schema_: Literal["ksame/linkage"] = Field("ksame/linkage", alias="schema")
    version: Literal[1, 2] = 2
    release_digest: str
    seed: int
    faces: tuple[LinkedFace, ...]
    withheld: tuple[WithheldFace, ...] = ()
    kept: dict[str, str] = Field(
        default_factory=dict, description="PNG files in base64 by their SHA-256: the faces that later releases repeat"
    )
    history: tuple[PastRelease, ...] = Field((), description="all releases of the series, this one last")

    @property
    def groups(self) -> dict[str, int]:
        """The group of every subject that is in one."""
        return {face.subject: face.group for face in self.faces if face.group is not None}

    @property
    def people(self) -> frozenset[str]:
        """Everybody for whom a face was released, in this release or an earlier one."""
        return frozenset(face.subject for face in self.faces)

    def require_series(self) -> None:
        """Raise where no later release can follow this one: only shared faces are kept, and only since version 2."""
        if not self.history:
            raise UsageError(
                "No release can follow this one: its link table keeps no faces that people share. Only releases with "
                "the promise of k-anonymity can be continued, by link tables written since version 0.2."
            )

    def shown(self) -> ByteArray:
        """Return the released faces, (n_faces, height, width, channels), from the bytes kept here.

        Raises
        ------
        InputError
            When a file is missing or is not the one that was released.
        """
        known = {key: _opened(key, text) for key, text in self.kept.items()}
        missing = [face.released for face in self.faces if face.face not in known]
        if missing:
            raise InputError(f"The link table does not hold the face {missing[0]}; use the copy that was written.")
        return np.stack([known[str(face.face)] for face in self.faces])

    def before(self) -> Linkage | None:
        """Return what this release was added to; None for the first of a series."""
        if len(self.history) < 2:
            return None
        kept = tuple(face for face in self.faces if face.since < self.history[-1].number)
        needed = {face.face for face in kept}
        return self.model_copy(
            update={
                "release_digest": self.history[-2].digest,
                "faces": kept,
                "withheld": (),
                "kept": {key: text for key, text in self.kept.items() if key in needed},
                "history": self.history[:-1],
            }
        )

    def write(self, path: StrPath) -> None:
        """Write to ``path``, readable by its owner only; an existing file is refused."""
        write_secret(Path(path), self.model_dump_json(by_alias=True, indent=1) + "\n")

    @classmethod
    def read(cls, path: StrPath) -> Linkage:
        """Read a link table."""
        return read_table(cls, Path(path), "a ksame link table")


def sealed(files: Iterable[bytes]) -> dict[str, str]:
    """Return PNG files in base64 by their SHA-256, each once."""
    return {sha256(data).hexdigest(): b64encode(data).decode("ascii") for data in dict.fromkeys(files)}


def _opened(key: str, text: str) -> ByteArray:
    """Return the pixels of a sealed file; anything but the bytes that were sealed is refused."""
    try:
        data = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if sha256(data).hexdigest() != key:
        raise InputError("The faces in the link table were changed or damaged; use the copy that was written.")
    return decode_png(data)


def read_table(kind: type[Table], path: Path, what: str) -> Table:
    """Read a link table of some kind, or say that the file is not ``what`` it should be."""
    data = read_bytes(path, "the link table")
    try:
        return read_document(kind, data, what)
    except InputError as error:
        raise InputError(f"{path}: {error}.") from error


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
