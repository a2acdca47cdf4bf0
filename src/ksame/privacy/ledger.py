"""The ledger: a local memory of which pictures were released before, so that a second release can be warned about.

Two releases of the same people with different groups can be intersected. The ledger holds a keyed perceptual hash of
every original that was released: the same picture is known again at another size, crop or colour. Key and ledger lie
side by side, readable by their owner only. Without the key a reader learns how many pictures there are and which of
them look much alike, and can test no guess; with the key, whether a picture at hand is among them.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame import scratch
from ksame.arrays import FloatArray, IntArray
from ksame.errors import InputError, OutputError
from ksame.faces.faceset import FaceSet, quantise
from ksame.faces.landmarks import eyes_and_nose
from ksame.faces.reading import StrPath
from ksame.faces.registration import Template, register
from ksame.files import write_atomic

_PATCH = Template(32, 32, ((8.0, 9.5), (24.0, 9.5), (16.0, 20.8)))  # inside every registered face, at its own scale
_BANDS, _BITS = 32, 12
_ALIKE = 16  # bands of a picture that must agree; see benchmarks/ledger_portraits.py
_TOKEN = 4  # hexadecimal digits of a band
_EXACT = 32  # hexadecimal digits of the hash of all bytes, which is all that ksame 0.1 wrote


def default_folder() -> Path:
    """Return where the ledger lives: ``KSAME_STATE``, or the user's folder for program state."""
    if "KSAME_STATE" in os.environ:
        return Path(os.environ["KSAME_STATE"])
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "ksame"
    return Path(os.environ.get("XDG_STATE_HOME", str(Path.home() / ".local" / "state"))) / "ksame"


class Ledger:
    """Remembers released pictures by keyed perceptual hash, in a folder that is made on first use."""

    def __init__(self, folder: StrPath | None = None) -> None:
        self.folder = default_folder() if folder is None else Path(folder)
        self.file = self.folder / "released.jsonl"

    def prints(self, faces: FaceSet, rows: IntArray | None = None) -> tuple[str, ...]:
        """Return the keyed hashes of every picture, or of ``rows``: its bands, then that of all its bytes.

        Raises OSError where there is no ledger yet and no key can be made, and InputError where there is, or may be, a
        ledger whose key is gone or cannot be read.
        """
        try:
            key = self._key()
        except OSError as error:
            if self._is_absent():
                raise
            raise InputError(f"{self.folder / 'key'}: {_CANNOT} ({error.strerror}). {_NEXT}") from error
        seed = int.from_bytes(blake2b(b"directions", key=key).digest(), "big")
        directions = np.random.default_rng(seed).standard_normal((_PATCH.width * _PATCH.height, _BANDS * _BITS))
        wanted = np.arange(len(faces)) if rows is None else rows
        prints: list[str] = []
        for part in scratch.blocks(len(wanted), scratch.row_size(faces.images) + 8 * len(directions)):
            some = faces.take(wanted[part])
            bits = (_patches(some) @ directions > 0).reshape(len(some), _BANDS, _BITS)
            words = bits @ (1 << np.arange(_BITS))
            prints += (
                "".join(_hash(b"%d %d" % (band, word), key, _TOKEN) for band, word in enumerate(row))
                + _hash(face.tobytes(), key, _EXACT)
                for row, face in zip(words, quantise(some.images), strict=True)
            )
        return tuple(prints)

    def earlier(self, prints: Sequence[str], digest: str) -> int:
        """Return how many of these pictures are in a release other than the one with this digest.

        Raises InputError when a line cannot be read: what cannot be asked must not count as a no.
        """
        known = [face for record in self._records() if record["release"] != digest for face in record["faces"]]
        exact = {face[-_EXACT:] for face in known}
        bands = _Bands([face[:-_EXACT] for face in known if len(face) > _EXACT])
        return sum(new[-_EXACT:] in exact or bands.know(new[:-_EXACT]) for new in prints)

    def record(self, prints: Sequence[str], digest: str) -> None:
        """Remember these pictures as released; a line that cannot be written whole is taken back."""
        line = json.dumps({"release": digest, "faces": list(prints)}).encode() + b"\n"
        handle = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            before = os.fstat(handle).st_size
            if os.write(handle, line) != len(line):
                os.ftruncate(handle, before)
                raise OSError(f"{self.file}: the disk is full")
        finally:
            os.close(handle)

    def _records(self) -> list[dict[str, Any]]:
        try:
            lines = self.file.read_text(encoding="utf-8", errors="replace").splitlines()
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise InputError(f"{self.file}: {_CANNOT} ({error.strerror}). {_NEXT}") from error
        records = [_record(line) for line in lines]
        broken = [str(i) for i, record in enumerate(records, start=1) if record is None]
        if broken:
            where = f"line{'s' if len(broken) > 1 else ''} {', '.join(broken)}"
            raise InputError(f"{self.file}, {where}: {_CANNOT} (damaged). {_NEXT}")
        return [record for record in records if record is not None]

    def _is_absent(self) -> bool:
        """Tell whether there surely is no ledger; one that cannot be looked for may be there."""
        try:
            self.file.lstat()
        except OSError as error:
            return isinstance(error, (FileNotFoundError, NotADirectoryError))
        return False

    def _key(self) -> bytes:
        path = self.folder / "key"
        if not path.exists():
            if self.file.exists():
                raise InputError(f"{path}: {_CANNOT} (the key is gone). {_NEXT}")
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                write_atomic(path, secrets.token_bytes(32), private=True, replace=False)
            except OutputError as error:
                if not path.exists():  # else another process was faster: its key counts
                    raise OSError(str(error)) from error
        path.chmod(0o600)
        return path.read_bytes()


_CANNOT = "the memory of earlier releases cannot be read"
_NEXT = (
    "Whether these people were released before is not known, so nothing is released. Mend it from a backup, or delete "
    "what is damaged, and compare with earlier releases by hand."
)


def _record(line: str) -> dict[str, Any] | None:
    """Return what a line says, or None where it is damaged."""
    try:
        record = json.loads(line)
        good = isinstance(record["release"], str) and all(
            len(face) in (_EXACT, _BANDS * _TOKEN + _EXACT) and int(face, 16) >= 0 for face in record["faces"]
        )
    except (ValueError, TypeError, KeyError):
        return None
    return record if good else None


def _hash(content: bytes, key: bytes, digits: int) -> str:
    return blake2b(content, key=key, digest_size=digits // 2).hexdigest()


class _Bands:
    """Pictures sorted by each band, so that those that share one with another are looked up at once."""

    def __init__(self, pictures: Sequence[str]) -> None:
        words = np.array([_words(picture) for picture in pictures], dtype=np.uint16).reshape(-1, _BANDS)
        self._order = np.argsort(words, axis=0, kind="stable").T.astype(np.int32)
        every = np.arange(1 << (4 * _TOKEN))
        self._starts = [np.searchsorted(np.sort(column), every).astype(np.int32) for column in words.T]

    def know(self, picture: str) -> bool:
        """Tell whether some picture shares enough bands with this one."""
        sharing = []
        for order, starts, word in zip(self._order, self._starts, _words(picture), strict=True):
            end = len(order) if word + 1 == len(starts) else starts[word + 1]
            sharing.append(order[starts[word] : end])
        return bool(np.bincount(np.concatenate(sharing), minlength=1).max() >= _ALIKE)


def _words(bands: str) -> list[int]:
    """Return the bands of a picture as numbers."""
    return [int(bands[i : i + _TOKEN], 16) for i in range(0, len(bands), _TOKEN)]


def _patches(faces: FaceSet) -> FloatArray:
    """Return the middle of every face, 32 x 32 grey values in rows, without its light: zero mean, unit length.

    A face without landmarks of eyes and nose is taken as registered by them.
    """
    _, height, width, _ = faces.shape
    points: NDArray[Any] = np.array([Template.eyes_and_nose(max(8, width), max(8, height)).points] * len(faces))
    if faces.landmarks is not None:
        with contextlib.suppress(InputError):
            points = eyes_and_nose(faces.landmarks)
    rows = np.zeros((len(faces), _PATCH.width * _PATCH.height))
    for row, image, place in zip(rows, faces.images, points, strict=True):
        try:
            patch = register(image.mean(axis=2, keepdims=True), place, _PATCH)[0][..., 0].astype(np.float64)
        except InputError:  # all points in one place
            patch = cv2.resize(image.mean(axis=2, dtype=np.float64), (_PATCH.width, _PATCH.height))
        fine = np.asarray(cv2.GaussianBlur(patch, (0, 0), 1.2) - cv2.GaussianBlur(patch, (0, 0), 5.0))
        fine -= fine.mean()
        row[:] = (fine / max(float(np.linalg.norm(fine)), 1e-12)).ravel()
    return rows
