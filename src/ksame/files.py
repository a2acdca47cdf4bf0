"""Files of the whole package: hashes, writing that appears whole or not at all, and the one constant time stamp."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from ksame.errors import OutputError

EPOCH = 315_532_800
"""The time stamp of everything that is published: the first second of 1980. Real times tell one run from another."""

_BLOCK = 1 << 20  # bytes that are read at once
_PART = ".part"
_CHECK = "Check the space and the permissions."
_LONGEST = 60  # characters of a name that its temporary name repeats: at most 255 bytes with the rest


def sha256_of(*paths: Path) -> str:
    """Return the SHA-256 of what files hold, one after the other.

    Raises OSError when one cannot be read.
    """
    digest = sha256()
    for path in paths:
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()


def hash_tree(path: Path) -> dict[str, str]:
    """Return the SHA-256 of a file, or of all files in a folder, by name below the parent; none where it is missing."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path] if path.exists() else []
    return {file.relative_to(path.parent).as_posix(): sha256_of(file) for file in files}


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, where they are not there yet.

    Raises OutputError when it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}). {_CHECK}") from error


def set_constant_time(path: Path) -> None:
    """Give a file or folder the same time stamp as every other: real ones tell the order of the originals."""
    os.utime(path, (EPOCH, EPOCH))


def write_atomic(
    path: Path, data: bytes, *, private: bool = False, replace: bool = True, constant_time: bool = False
) -> None:
    """Write a file that appears whole or not at all; see :func:`open_atomic`."""
    with open_atomic(path, private=private, replace=replace, constant_time=constant_time) as stream:
        stream.write(data)


@contextmanager
def open_atomic(
    path: Path, *, private: bool = False, replace: bool = True, constant_time: bool = False
) -> Iterator[BinaryIO]:
    """Open a file that takes its name when all of it is on the disk; see :func:`atomic_path`."""
    with (
        atomic_path(path, private=private, replace=replace, constant_time=constant_time) as part,
        part.open("wb") as stream,
    ):
        yield stream


@contextmanager
def atomic_path(
    path: Path, *, private: bool = False, replace: bool = True, constant_time: bool = False
) -> Iterator[Path]:
    """Give an empty file in the same folder to be written; it takes the name when all of it is on the disk.

    Raises OutputError when it cannot be written, or is there already and must stay; nothing half-written is left.

    Parameters
    ----------
    path : Path
        In a folder that exists.
    private : bool
        Readable by its owner only, from the first byte on.
    replace : bool
        Whether a file of this name is replaced.
    constant_time : bool
        Whether it gets the time stamp of everything that is published.
    """
    part = path.with_name(f"{_prefix(path)}{secrets.token_hex(4)}{_PART}")
    try:
        part.touch(0o600 if private else 0o666, exist_ok=False)
        try:
            yield part
            _flush(part)
            if constant_time:
                set_constant_time(part)
            _name_it(part, path, replace=replace)
        finally:
            part.unlink(missing_ok=True)
    except FileExistsError as error:
        raise OutputError(f"{path}: a file of this name exists, and is never overwritten. Choose another.") from error
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror or error}). {_CHECK}") from error


def _flush(path: Path) -> None:
    with path.open("rb+") as stream:  # Windows flushes no file that is open for reading only
        os.fsync(stream.fileno())


def _prefix(path: Path) -> str:
    return f".{path.name[:_LONGEST]}."


def _name_it(part: Path, path: Path, *, replace: bool) -> None:
    if replace:
        part.replace(path)
        return
    try:
        os.link(part, path)  # unlike a renaming, it refuses a name that is taken
    except FileExistsError:
        raise
    except OSError:  # this disk has no links
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        part.rename(path)


def remove_parts(path: Path) -> None:
    """Remove what runs that were killed left of a file; only where no other process writes the same one."""
    with suppress(OSError):
        for part in list(path.parent.iterdir()):
            if part.name.startswith(_prefix(path)) and part.suffix == _PART:
                part.unlink(missing_ok=True)


def write_json(path: Path, content: Mapping[str, Any], *, private: bool = False) -> None:
    """Write an object as JSON; it appears whole or not at all, and holds no number that JSON does not have."""
    text = json.dumps(content, indent=1, allow_nan=False)
    write_atomic(path, f"{text}\n".encode(), private=private)


def read_json(path: Path) -> dict[str, Any]:
    """Return an object that this program wrote; an empty one where there is none that can be read.

    Files of others are read with :func:`ksame.privacy.documents.read_document`.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


@contextmanager
def build_folder(folder: Path) -> Iterator[Path]:
    """Give a temporary folder that takes its name when all went well, and vanishes otherwise.

    Files are flushed to the disk, and everything gets the constant time stamp. Raises OutputError when the disk is full
    or not writable; what stood there before is there still.
    """
    building: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=_prefix(folder), suffix=_PART, dir=folder.parent))
        yield building
        building.chmod(0o755)
        settle(building)
        take_place(building, folder)
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be written ({error.strerror or error}). Nothing was left there. {_CHECK}"
        ) from error
    finally:
        if building is not None:
            shutil.rmtree(building, ignore_errors=True)


def settle(path: Path) -> None:
    """Flush a file, or all files of a folder, to the disk, and take their times away."""
    for each in [*path.rglob("*"), path] if path.is_dir() else [path]:
        if each.is_file():
            _flush(each)
        set_constant_time(each)


def take_place(building: Path, final: Path) -> None:
    """Give a finished file or folder its final name; a folder that stood there is removed after that, or put back."""
    if not final.is_dir() or final.is_symlink():
        building.replace(final)
        return
    retired = final.with_name(f"{_prefix(final)}{secrets.token_hex(4)}.old")
    final.rename(retired)
    try:
        building.rename(final)
    except BaseException:
        retired.rename(final)
        raise
    shutil.rmtree(retired, ignore_errors=True)
