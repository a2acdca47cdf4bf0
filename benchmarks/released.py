"""What ``ksame deidentify`` wrote, as anybody who has the files sees it: pairs of pictures, and the faces in them.

Everything here goes by files on disk: pictures are made by the command line, and read again from where it put them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from ksame.arrays import ByteArray, FloatArray
from ksame.models import Face, FaceDetector, FaceMesh, Mesh, five_points
from ksame.scene.media import open_media
from ksame.spaces.facemodel.geometry import OUTLINE, with_forehead

PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")
MASKED = 3
"""Exit code of the command line where faces were masked that could not be replaced."""
CROP = 256
"""Side of a crop in pixels."""
MARGIN = 1.9
"""Side of a crop, in longest sides of the box around the face's outline."""
PRESENCE = 0.5
"""Probability below which a mesh is not believed."""


def read(path: Path) -> ByteArray:
    """Return a photograph's pixels, (height, width, 3)."""
    return next(iter(open_media(path).frames())).pixels


def picture_files(folder: Path) -> list[Path]:
    """Return the pictures of a folder in the order of their names."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in PICTURES)


@dataclass(frozen=True)
class Recipe:
    """How pictures are de-identified: what the command line is told.

    Parameters
    ----------
    cover, method : str or None
        None leaves it to the command line's default.
    k, seed : int
    """

    cover: str | None = None
    k: int = 10
    seed: int = 1
    method: str | None = None

    @property
    def words(self) -> list[str]:
        """The recipe as arguments of ``ksame deidentify``."""
        words = ["-k", str(self.k), "--seed", str(self.seed)]
        words += [] if self.cover is None else ["--cover", self.cover]
        return words + ([] if self.method is None else ["--method", self.method])

    def __str__(self) -> str:
        parts = [self.method, self.cover and f"cover {self.cover}", f"k {self.k}", f"seed {self.seed}"]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True)
class Released:
    """What became of originals.

    Attributes
    ----------
    made : mapping of stem to Path
        The de-identified file of each original, by the original's stem.
    masked : frozenset of str, or None
        Stems of originals in which everybody was masked because nobody could be replaced; None where no link table
        tells.
    """

    made: Mapping[str, Path]
    masked: frozenset[str] | None

    @classmethod
    def of(cls, originals: Sequence[Path], folder: Path, table: Path | None = None) -> Released:
        """Find the de-identified files of originals, by their names or, where numbered, by the link table."""
        masked, outputs = (None, {}) if table is None else _linked(table)
        by_stem = {path.stem: path for path in picture_files(folder)}
        stems = {path.stem: Path(outputs.get(path.stem, path.name)).stem for path in originals}
        made = {original: by_stem[stem] for original, stem in stems.items() if stem in by_stem}
        return cls(made, None if masked is None else masked & stems.keys())


def _linked(table: Path) -> tuple[frozenset[str], dict[str, str]]:
    """Return the stems of originals in which nobody is replaced, and the output of each, from a link table."""
    replaced, outputs = set(), {}
    for person in json.loads(table.read_text(encoding="utf-8"))["people"]:
        for place in person["places"]:
            stem = Path(place["source"]).stem
            outputs[stem] = place["output"]
            if person["treatment"] == "replace" and not person["stands_in"]:
                replaced.add(stem)
    return frozenset(outputs.keys() - replaced), outputs


def deidentify(originals: Sequence[Path], folder: Path, recipe: Recipe) -> Released:
    """De-identify originals by the command line into ``folder``, whose earlier content goes: it may be out of date.

    The link table is written beside the folder.
    """
    table = folder.with_name(f"{folder.name}-links.json")
    shutil.rmtree(folder, ignore_errors=True)
    table.unlink(missing_ok=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "ksame", "deidentify", *map(str, originals), "-o", str(folder)]
    command += ["--keep-names", "--link-table", str(table), *recipe.words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, MASKED):
        raise SystemExit(f"ksame deidentify ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return Released.of(originals, folder, table)


def kept(file: Path, sources: Sequence[Path], compute: Callable[[], FloatArray]) -> FloatArray:
    """Return what ``compute`` makes of ``sources``, from ``file`` where it was made of the same files before."""
    facts = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in sources]
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    if file.exists():
        with np.load(file) as known:
            if str(known["digest"]) == digest:
                return np.asarray(known["rows"])
    rows = compute()
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file, rows=rows, digest=np.array(digest))
    return rows


class Reader:
    """Finds the largest face of a picture and meshes it."""

    def __init__(self) -> None:
        self._detector, self._mesher = FaceDetector(), FaceMesh()

    def face(self, pixels: ByteArray) -> Face | None:
        """Return the largest face; None where the detector finds none, even if it need not be sure."""
        found = self._detector.detect(pixels) or self._detector.detect(pixels, score=0.3)
        if not found:
            return None
        largest = max(found, key=lambda face: face.side)
        mesh = self._mesher.fit(pixels, largest)
        if mesh.presence <= PRESENCE:
            return largest
        return replace(largest, landmarks=five_points(mesh), mesh=mesh)

    def mesh(self, pixels: ByteArray) -> Mesh | None:
        """Return the mesh of the largest face; None where there is none to be believed."""
        face = self.face(pixels)
        return None if face is None else face.mesh


def crop_matrix(points: FloatArray, side: int = CROP) -> FloatArray:
    """Return the matrix, (2, 3), from a picture to the square crop about a mesh of shape (478, 2 or 3)."""
    outline = with_forehead(points[:, :2])[list(OUTLINE)]
    low, high = outline.min(axis=0), outline.max(axis=0)
    scale = side / (MARGIN * float((high - low).max()))
    return np.column_stack([scale * np.eye(2), side / 2 - scale * (low + high) / 2])


def cut(pixels: ByteArray, points: FloatArray, side: int = CROP) -> ByteArray:
    """Cut the square about a mesh, (side, side, 3); what lies beyond the picture is mirrored."""
    matrix = crop_matrix(points, side)
    if (times := 1 / matrix[0, 0]) > 1.2:
        pixels = cv2.GaussianBlur(pixels, (0, 0), 0.4 * times)
    flags, border = cv2.INTER_LINEAR, cv2.BORDER_REFLECT_101
    return np.asarray(cv2.warpAffine(pixels, matrix, (side, side), flags=flags, borderMode=border), dtype=np.uint8)
