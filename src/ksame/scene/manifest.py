"""The manifest of a job: what is to be done, and what became of each file. It names originals: never publish it.

What was done is read from the job's :class:`Store` while that is there, so that a manifest and ``--resume`` agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from ksame.errors import InputError, UsageError
from ksame.files import write_atomic
from ksame.privacy.documents import Document, Record, read_document
from ksame.scene.config import Job
from ksame.scene.store import FAILED, OUTPUT, Store

_LARGEST = 64 << 20  # bytes


class ListedFile(Record):
    """What became of one file."""

    source: str
    output: str
    state: Literal["open", "done", "withheld", "failed"]
    """Withheld: written, but a mask stands in somewhere, no face was found, or something of it was lost."""
    reason: str = ""


class Manifest(Document):
    """A job in a file."""

    expected: ClassVar[str] = "the manifest of a job"

    schema_: Literal["ksame/job"] = Field("ksame/job", alias="schema")
    version: Literal[1] = 1
    media: tuple[str, ...] = Field(min_length=1)
    output: str
    options: Mapping[str, Any] = Field(default_factory=dict)
    """Of ``ksame deidentify``, by their names with underscores."""
    state: Literal["new", "running", "done", "interrupted", "failed"] = "new"
    reason: str = ""
    files: tuple[ListedFile, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read a manifest.

        Raises
        ------
        InputError
            When it cannot be read, or is something else.
        """
        try:
            if path.stat().st_size > _LARGEST:
                raise InputError(f"{path}: too large for {cls.expected}.")
            data = path.read_bytes()
            if b"\\u0000" in data:
                raise InputError(f"not {cls.expected} (a name with a NUL character)")
            return read_document(cls, data, cls.expected)
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    def write(self, path: Path) -> None:
        """Write it, readable by its owner only."""
        write_atomic(path, f"{self.model_dump_json(indent=1, by_alias=True)}\n".encode(), private=True)

    def record(self, path: Path, job: Job, name: Callable[[Path], str], state: str, reason: str = "") -> None:
        """Write what became of each file of the job so far; ``name`` returns what a file is called."""
        listed = listing(job, name, reason if state == "failed" else "")
        self.model_copy(update={"state": state, "reason": reason, "files": listed}).write(path)


def listing(job: Job, name: Callable[[Path], str] = str, reason: str = "") -> tuple[ListedFile, ...]:
    """Return what became of each file of a job, while its store is there; ``reason`` is why a single one failed."""
    store = Store(job.work.absolute(), 0)
    listed = []
    for number, (source, output) in enumerate(job.files):
        done, failed = store.noted(OUTPUT, number), store.noted(FAILED, number)
        state: Literal["open", "done", "withheld", "failed"] = "open"
        why = ""
        if done is not None:
            why = "; ".join([*dict.fromkeys(risk["reason"] for risk in done["at_risk"]), *done["losses"]])
            state = "withheld" if why else "done"
        elif failed is not None or (reason and len(job.files) == 1):
            state, why = "failed", reason if failed is None else failed["reason"]
        listed.append(ListedFile(source=name(source), output=name(output), state=state, reason=why))
    return tuple(listed)


def require_new(manifest: Path) -> None:
    """Refuse to describe a job in a file that describes one already."""
    if manifest.exists():
        raise UsageError(
            f"{manifest} exists. To run or resume its job, give it alone, without MEDIA and options; for another job "
            "choose another name."
        )
