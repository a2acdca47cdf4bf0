"""The file of a vault: a public index, age files one after the other, and what the log of openings came to.

::

    ksame-vault 1
    {"entries": [...], "release": ...}      the index, with the SHA-256 of every entry
    SHA-256 of both lines
    age file, age file, ...
    log 0000000000 HEAD CHECK               how many openings there were; written anew at each

Keys are wrapped for the recipients, everything else is sealed with these keys: to change recipients, only the small
wraps are written anew. The ``root`` is the hash of all that never changes: it stands in the certificate of the release,
so that a vault whose entries were exchanged is noticed. No byte of the file is without a hash.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Literal

try:
    import fcntl
except ImportError:  # Windows, where two openings in the same moment are not kept apart
    fcntl = None  # type: ignore[assignment]

from ksame.errors import InputError, OutputError
from ksame.files import open_atomic, sha256_of
from ksame.privacy.certificate import release_digest
from ksame.privacy.documents import read_document
from ksame.vault.index import Entry, Index
from ksame.vault.keys import Identity, Recipients, identity_file, identity_in
from ksame.vault.log import OpeningLog, log_of

_MAGIC = b"ksame-vault 1\n"
_MAX_INDEX = 1 << 28
_FOOTER = re.compile(rb"log (\d{10}) ([0-9a-f]{64}) ([0-9a-f]{64})\n")
_FOOTER_SIZE = 4 + 11 + 65 + 65
_BLOCK = 1 << 20
LINK_TABLE = "link table"
"""The owner of what belongs to nobody alone."""
_OWNER = "opens: "


@dataclass(frozen=True)
class Sealed:
    """An age file that goes into a vault: its entry, and its bytes or where they lie."""

    entry: Entry
    source: bytes | Path

    @classmethod
    def of(cls, kind: Literal["record", "film"], source: bytes | Path) -> Sealed:
        """Describe an age file in memory or on disk."""
        if isinstance(source, bytes):
            return cls(Entry(kind=kind, size=len(source), sha256=sha256(source).hexdigest()), source)
        return cls(Entry(kind=kind, size=source.stat().st_size, sha256=sha256_of(source)), source)

    def read(self) -> bytes:
        """Return the age file."""
        return b"".join(_blocks(self.source))


def wrap(identity: Identity, owner: str, recipients: Recipients) -> Sealed:
    """Wrap a key, which opens what belongs to an owner, for the recipients; age takes what is in it for ``-i``."""
    return _wrapped(identity_file(identity, [f"{_OWNER}{json.dumps(owner)}"]), recipients)


def _wrapped(file: bytes, recipients: Recipients) -> Sealed:
    data = recipients.seal(file)
    entry = Entry(kind="key", size=len(data), sha256=sha256(data).hexdigest(), commitment=sha256(file).hexdigest())
    return Sealed(entry, data)


def write_vault(
    path: Path, sealed: Sequence[Sealed], files: Mapping[str, str], n_recipients: int, *, replace: bool = False
) -> str:
    """Write a vault for released files, readable by its owner only; return its root."""
    index = Index(
        release=release_digest(files),
        files=dict(sorted(files.items())),
        recipients=n_recipients,
        entries=tuple(each.entry for each in sealed),
    )
    _write(path, index, [each.source for each in sealed], (0, index.root), replace=replace)
    return index.root


def _write(
    path: Path, index: Index, sources: Sequence[bytes | Path | _Part], log: tuple[int, str], *, replace: bool
) -> None:
    with open_atomic(path, private=True, replace=replace) as file:
        head = _MAGIC + _index_line(index)
        file.write(head + sha256(head).hexdigest().encode() + b"\n")
        for entry, source in zip(index.entries, sources, strict=True):
            digest, size = sha256(), 0
            for block in _blocks(source):
                digest.update(block)
                size += len(block)
                file.write(block)
            if size != entry.size or (size and digest.hexdigest() != entry.sha256):
                raise OutputError(f"{path}: a sealed piece was changed while it was written. Run again.")
        file.write(_footer(*log))


def _index_line(index: Index) -> bytes:
    content = index.model_dump(mode="json", by_alias=True)
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _footer(count: int, head: str) -> bytes:
    line = f"log {count:010d} {head}"
    return f"{line} {sha256(line.encode()).hexdigest()}\n".encode()


@dataclass(frozen=True)
class _Part:
    """Some bytes of a file."""

    path: Path
    start: int
    size: int


def _blocks(source: bytes | Path | _Part) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    part = source if isinstance(source, _Part) else _Part(source, 0, source.stat().st_size)
    with part.path.open("rb") as file:
        file.seek(part.start)
        left = part.size
        while left and (block := file.read(min(left, _BLOCK))):
            left -= len(block)
            yield block


@dataclass(frozen=True)
class Vault:
    """A vault on disk, whose every byte was checked."""

    path: Path
    index: Index
    log: OpeningLog  # all openings so far
    _starts: tuple[int, ...]

    @classmethod
    def read(cls, path: Path) -> Vault:
        """Read the index of a vault, and check all hashes and its log.

        Raises InputError when it is no vault, cut off or changed anywhere, or its log is not the one it has noted.
        """
        try:
            with path.open("rb") as file:
                return cls._read(path, file)
        except OSError as error:
            raise InputError(
                f"{path}: the vault cannot be read ({error.strerror}). Name the file of a vault."
            ) from error

    @classmethod
    def _read(cls, path: Path, file: BinaryIO) -> Vault:
        size = os.fstat(file.fileno()).st_size
        if file.read(len(_MAGIC)) != _MAGIC:
            raise InputError(f"{path}: not a vault of ksame. Name the file that --vault wrote.")
        line, check = file.readline(_MAX_INDEX), file.readline(66)
        if check != sha256(_MAGIC + line).hexdigest().encode() + b"\n":
            raise _changed(path, "its index")
        try:
            index = read_document(Index, line, Index.expected)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        if release_digest(index.files) != index.release:
            raise _changed(path, "its list of released files")
        starts = [file.tell()]
        for entry in index.entries:
            starts.append(starts[-1] + entry.size)
        if size != starts[-1] + _FOOTER_SIZE:
            missing = starts[-1] + _FOOTER_SIZE - size
            raise InputError(
                f"{path}: the vault is cut off, {missing} bytes are missing. Use a whole copy."
                if missing > 0
                else f"{path}: {-missing} bytes too many are in the vault. Use the file that was written."
            )
        for number, entry in enumerate(index.entries):
            digest, left = sha256(), entry.size
            while left and (block := file.read(min(left, _BLOCK))):
                digest.update(block)
                left -= len(block)
            if entry.size and digest.hexdigest() != entry.sha256:
                raise _changed(path, f"sealed piece {number + 1} of {len(index.entries)}")
        return cls(path, index, _log(path, index, file.read()), tuple(starts))

    @property
    def root(self) -> str:
        """What the certificate of the release has to say."""
        return self.index.root

    def sealed(self, number: int) -> bytes:
        """Return an age file."""
        data = b"".join(_blocks(self._part(number)))
        if sha256(data).hexdigest() != self.index.entries[number].sha256:
            raise _changed(self.path, f"sealed piece {number + 1}")
        return data

    def _part(self, number: int) -> _Part:
        return _Part(self.path, self._starts[number], self.index.entries[number].size)

    def numbers(self, kind: str) -> list[int]:
        """Return the entries of a kind that are in this copy."""
        return [i for i, entry in enumerate(self.index.entries) if entry.kind == kind and entry.size]

    def keys(self, identity: Identity) -> dict[str, Identity]:
        """Unwrap all keys, by the name of the person, or "link table", whose sealed entries each opens.

        Raises InputError when the identity is that of no recipient, or a key is not the one that the root stands for.
        """
        keys: dict[str, Identity] = {}
        for number in self.numbers("key"):
            owner, key = self._unwrapped(number, identity)
            keys[owner] = identity_in(key, str(self.path))
        return keys

    def owner(self, number: int, identity: Identity) -> str:
        """Return whose entries a wrapped key opens."""
        return self._unwrapped(number, identity)[0]

    def _unwrapped(self, number: int, identity: Identity) -> tuple[str, bytes]:
        try:
            file = identity.open(self.sealed(number))
        except InputError as error:
            raise InputError(f"{self.path}: {error} Nothing was opened.") from error
        if sha256(file).hexdigest() != self.index.entries[number].commitment:
            raise _changed(self.path, "a wrapped key")
        lines = file.decode("utf-8", "replace").splitlines()
        owner = next((line[2 + len(_OWNER) :] for line in lines if line.startswith(f"# {_OWNER}")), '""')
        try:
            return str(json.loads(owner)), file
        except ValueError:
            raise InputError(f"{self.path}: a key in it does not tell whose it is. Was it made by ksame?") from None

    def open(self, number: int, keys: Sequence[Identity]) -> bytes:
        """Return what was sealed with a key, or with several, one within the other: the outermost comes first."""
        data = self.sealed(number)
        for key in keys:
            try:
                data = key.open(data)
            except InputError as error:
                raise InputError(f"{self.path}: sealed piece {number + 1}: {error} Nothing was opened.") from error
        return data

    def record(self, key: Identity) -> tuple[int, bytes] | None:
        """Return the record that a key opens, and its number; None where it is none of those that are here."""
        for number in self.numbers("record"):
            try:
                return number, self.open(number, [key])
            except InputError:  # somebody else's
                continue
        return None

    def noted(self, **what: Any) -> Vault:
        """Log an opening, beside the vault and in its last line; see :meth:`OpeningLog.append`."""
        with self._writable() as file:
            file.seek(self._starts[-1])
            log = _log(self.path, self.index, file.read())  # as it is now: somebody else may have opened it meanwhile
            log = log.append(**what)
            file.seek(self._starts[-1])
            file.write(_footer(len(log.openings), log.head))
            file.flush()
            os.fsync(file.fileno())
        return Vault(self.path, self.index, log, self._starts)

    @contextmanager
    def _writable(self) -> Iterator[BinaryIO]:
        try:
            with self.path.open("r+b") as file:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX)  # one opening after the other
                yield file
        except OSError as error:
            raise OutputError(
                f"{self.path}: the opening cannot be noted in the vault ({error.strerror}), so nothing was opened. "
                "Copy it to where it can be written."
            ) from error

    def rewrapped(self, identity: Identity, recipients: Recipients, path: Path, keep: Sequence[int] | None) -> None:
        """Write the vault with its keys wrapped for other recipients; with ``keep``, only with these entries.

        In its own place the log goes on; elsewhere, a new one begins.
        """
        entries, sources = [], []
        for number, entry in enumerate(self.index.entries):
            source: bytes | _Part = self._part(number)
            if keep is not None and number not in keep:
                entry, source = entry.model_copy(update={"size": 0}), b""
            elif entry.kind == "key" and entry.size:
                wrapped = _wrapped(self._unwrapped(number, identity)[1], recipients)
                entry, source = wrapped.entry, wrapped.source  # type: ignore[assignment]  # bytes, as made here
            entries.append(entry)
            sources.append(source)
        index = self.index.model_copy(update={"entries": tuple(entries), "recipients": len(recipients.names)})
        own = path.exists() and path.samefile(self.path)
        log = (len(self.log.openings), self.log.head) if own else (0, index.root)
        _write(path, index, sources, log, replace=own)


def _log(path: Path, index: Index, footer: bytes) -> OpeningLog:
    """Return the log of a vault, which must be the one that its last line tells of."""
    told = _FOOTER.fullmatch(footer)
    if told is None or _footer(int(told[1]), told[2].decode()) != told[0]:
        raise _changed(path, "its last line")
    log = OpeningLog.read(log_of(path), index.root)
    log.require(int(told[1]), told[2].decode())
    return log


def _changed(path: Path, what: str) -> InputError:
    return InputError(f"{path}: {what} was changed, or the file is damaged. Use the copy that was written.")
