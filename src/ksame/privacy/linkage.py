"""The linkage: the secret of who became whom, and the faces that later releases repeat."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import Field

from ksame import scratch
from ksame.arrays import ByteArray
from ksame.errors import InputError, UsageError
from ksame.faces.reading import StrPath, decode_png
from ksame.files import write_atomic
from ksame.privacy.documents import Document, Record, read_any, read_bytes

_SEALED = b"ksame-vault "  # how a vault begins


class LinkedFace(Record):
    """One released face and whom it stands for."""

    released: str
    subject: str
    sources: tuple[str, ...]
    group: int | None = None
    figures: dict[str, Any] = Field(default_factory=dict)
    since: int = Field(1, ge=1, description="number of the release in which this face was shown first")
    face: str | None = Field(None, description="key of its bytes among the kept faces")


class PastRelease(Record):
    """One release of a series."""

    number: int = Field(ge=1)
    digest: str
    k: int = Field(ge=1, description="how many people share each face, all releases up to this one together")


class WithheldFace(Record):
    """An original for which no released face stands, and why."""

    source: str
    subject: str
    reason: str


class LinkTable(Document):
    """Everything that would undo a release: keep it secret, or do not keep it at all."""

    release_digest: str
    seed: int

    def write(self, path: StrPath, *, again: bool = False) -> None:
        """Write to ``path``, readable by its owner only; an existing file is refused.

        With ``again``, one that holds just this is good: a resumed run may have written it before.
        """
        path, data = Path(path), (self.model_dump_json(by_alias=True, indent=1) + "\n").encode()
        if not (again and path.is_file() and read_bytes(path, "the link table") == data):
            write_atomic(path, data, private=True, replace=False)

    @classmethod
    def read(cls: type[Table], path: StrPath) -> Table:
        """Read a link table of this kind."""
        return read_table(Path(path), cls)


Table = TypeVar("Table", bound=LinkTable)


def read_table(path: Path, *kinds: type[Table]) -> Table:
    """Read a link table of one of several kinds; InputError when it is none of them."""
    data = read_bytes(path, "the link table")  # once: it may come through a pipe
    if data.startswith(_SEALED):
        raise InputError(f"{path}: it is sealed. Open it first: ksame vault open {path} --identity KEY -o link.json")
    try:
        return read_any(data, *kinds)
    except InputError as error:
        raise InputError(f"{path}: {error}.") from error


class Linkage(LinkTable):
    """Who became whom in a release of faces, and the faces that later releases repeat."""

    expected: ClassVar[str] = "a ksame link table"

    schema_: Literal["ksame/linkage"] = Field("ksame/linkage", alias="schema")
    version: Literal[1, 2] = 2
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

        Raises InputError when a file is missing or is not the one that was released.
        """
        pictures = [_opened(key, text) for key, text in self.kept.items()]
        numbers = {key: i for i, key in enumerate(self.kept)}
        missing = [face.released for face in self.faces if face.face not in numbers]
        if missing:
            raise InputError(f"The link table does not hold the face {missing[0]}; use the copy that was written.")
        return scratch.take(np.stack(pictures), [numbers[str(face.face)] for face in self.faces])

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


def count_faces(faces: Sequence[LinkedFace], waiting: Sequence[WithheldFace]) -> dict[str, int]:
    """Count faces, and originals for which none stands, under the names that certificates use."""
    sources = sum(len(face.sources) for face in faces)
    people = {face.subject for face in faces}
    return {
        "originals": sources + len(waiting),
        "subjects": len(people | {face.subject for face in waiting}),
        "released": len(faces),
        "subjects_released": len(people),
        "merged": sources - len(faces),
        "withheld": len(waiting),
    }


def sealed(file: bytes) -> str:
    """Return a PNG file in base64, as it is kept under its SHA-256."""
    return b64encode(file).decode("ascii")


def _opened(key: str, text: str) -> ByteArray:
    """Return the pixels of a sealed file; refuse other bytes than those that were sealed."""
    try:
        data = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if sha256(data).hexdigest() != key:
        raise InputError("The faces in the link table were changed or damaged; use the copy that was written.")
    return decode_png(data)
