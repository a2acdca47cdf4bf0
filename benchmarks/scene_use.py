"""What is left to use: movement, pose and steadiness of a talking head, or gender and age of people in photographs.

``python -m benchmarks.scene_use ORIGINAL RELEASED`` compares two clips. Both are measured anew, frame by frame, by
detector and mesh; the face is the largest of the original's first frame, followed, and the one in its place afterwards.

- *correlation* of expressions before and after; where somebody hardly moves (*moves*: standard deviation of the
  original's), it means little.
- *one person*: mean cosine between frames of one clip, by EdgeFace, before and after.
- *flicker*: mean absolute difference of consecutive frames, each brought to the same place by the *original's* mesh;
  of the face, and of the ring round it up to 1.45 outlines; by that of the original.

``python -m benchmarks.scene_use --pictures ORIGINALS RELEASED [--labels labels.csv] [--link-table FILE]`` compares two
folders of photographs: what the face model reads of gender and year of birth before and after, and what the labels
(subject, gender, birth_year) say.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.edgeface import EdgeFace
from benchmarks.released import Reader, Released, crop_matrix, cut, picture_files, read
from ksame.arrays import ByteArray, FloatArray
from ksame.models import BLENDSHAPES, Face, FaceDetector, FaceMesh, Mesh, five_points
from ksame.scene.media import open_media
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.geometry import OUTLINE, polygon, with_forehead
from ksame.spaces.facemodel.labels import genders

WATCHED = ("jawOpen", "eyeBlinkLeft", "eyeBlinkRight", "mouthSmileLeft", "mouthSmileRight")
SIGNALS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "jaw": (("jawOpen",), ()),
    "blink": (("eyeBlinkLeft", "eyeBlinkRight"), ()),
    "smile": (("mouthSmileLeft", "mouthSmileRight"), ()),
    "brow up": (("browInnerUp", "browOuterUpLeft", "browOuterUpRight"), ()),
    "brow down": (("browDownLeft", "browDownRight"), ()),
    "gaze sideways": (("eyeLookOutLeft", "eyeLookInRight"), ("eyeLookInLeft", "eyeLookOutRight")),
    "gaze upwards": (("eyeLookUpLeft", "eyeLookUpRight"), ("eyeLookDownLeft", "eyeLookDownRight")),
}
"""Movements, and the blendshapes that are added and subtracted for each."""
RING = 1.45
"""How far the ring round the face goes, in outlines."""
_COMPARED = 60  # frames of a clip whose faces are compared with each other
_SIDE = 128  # of the crops in which the ring is compared
_YEARS = 10.0


@dataclass(frozen=True, eq=False)
class Movement:
    """One face through a clip; rows are frames, not a number before the face is first seen."""

    found: NDArray[np.bool_]  # (n,)
    blendshapes: FloatArray  # (n, 52)
    poses: FloatArray  # (n, 3), degrees
    points: FloatArray  # (n, 468, 2)
    meshes: tuple[Mesh | None, ...]

    def signal(self, name: str) -> FloatArray:
        """Return a movement, (n,), by its name."""
        plus, minus = (self.blendshapes[:, [BLENDSHAPES.index(one) for one in part]] for part in SIGNALS[name])
        return np.asarray((plus.sum(axis=1) - minus.sum(axis=1)) / plus.shape[1])


@dataclass(frozen=True)
class Kept:
    """What is left of movement."""

    found: float
    """Share of frames with a face in which the detector finds it afterwards."""
    correlations: dict[str, float]
    """By blendshape, and by movement."""
    pose: tuple[float, float, float]
    """Mean absolute error of yaw, pitch and roll in degrees."""
    jitter: float
    """Mean second difference of the points, by that of the original."""


@dataclass(frozen=True)
class Steadiness:
    """Whether one person stays one person, before and after, and how much the picture flickers."""

    likeness: tuple[float, float]
    """Mean cosine between frames of the original, and of what was released."""
    across: float
    """Mean cosine between frames of the original and the same frames afterwards."""
    face: float
    """Flicker inside the face, by that of the original."""
    ring: float
    """Flicker round the face, by that of the original."""


def measure(path: Path, guide: Movement | None = None) -> Movement:
    """Follow one face of a clip: the largest, or the one where ``guide`` has it."""
    detector, mesher = FaceDetector(), FaceMesh()
    found: list[bool] = []
    meshes: list[Mesh | None] = []
    for frame in open_media(path).frames():
        last = meshes[-1] if meshes else None
        if guide is not None and len(meshes) < len(guide.meshes):
            last = guide.meshes[len(meshes)]
        face = _picked(detector.detect(frame.pixels, min_face=48), last, strict=guide is not None)
        found.append(face is not None)
        if face is not None:
            meshes.append(mesher.fit(frame.pixels, face))
        else:
            meshes.append(None if last is None else mesher.follow(frame.pixels, last))
    if not any(found):
        raise SystemExit(f"{path}: no face in any frame")
    return _movement(found, meshes)


def _picked(faces: list[Face], last: Mesh | None, *, strict: bool) -> Face | None:
    """Return the face nearest to a mesh; the largest where there is none, or none near and it need not be there."""
    if last is not None:
        centre, reach = last.points[:, :2].mean(axis=0), np.ptp(last.points[:, 0])
        away = [float(np.linalg.norm(face.landmarks.mean(axis=0) - centre)) for face in faces]
        if away and min(away) < reach:
            return faces[int(np.argmin(away))]
    return None if strict else max(faces, key=lambda face: face.side, default=None)


def _movement(found: list[bool], meshes: list[Mesh | None]) -> Movement:
    seen = [(mesh.blendshapes, _angles(mesh), mesh.points[:468, :2]) for mesh in meshes if mesh is not None]
    there = np.array([mesh is not None for mesh in meshes])
    columns = []
    for values in zip(*seen, strict=True):
        rows = np.full((len(meshes), *values[0].shape), np.nan)
        rows[there] = values
        columns.append(rows)
    return Movement(np.array(found), *columns, tuple(meshes))


def _angles(mesh: Mesh) -> FloatArray:
    return np.array([mesh.pose.yaw, mesh.pose.pitch, mesh.pose.roll])


def compare(before: Movement, after: Movement) -> Kept:
    """Compare two clips of the same length."""
    both = ~np.isnan(before.poses[:, 0] + after.poses[:, 0])
    pairs = {name: [one.blendshapes[both, BLENDSHAPES.index(name)] for one in (before, after)] for name in WATCHED}
    pairs |= {name: [one.signal(name)[both] for one in (before, after)] for name in SIGNALS}
    error = np.abs(before.poses - after.poses)[both].mean(axis=0)
    shakes = [np.nanmean(np.linalg.norm(np.diff(one.points, n=2, axis=0), axis=2)) for one in (before, after)]
    return Kept(
        float(after.found[before.found].mean()),
        {name: float(np.corrcoef(*pair)[0, 1]) for name, pair in pairs.items()},
        (float(error[0]), float(error[1]), float(error[2])),
        float(shakes[1] / shakes[0]),
    )


def steadiness(original: Path, released: Path, before: Movement, after: Movement) -> Steadiness:
    """Compare the faces' vectors and the flicker of two clips that were measured."""
    network, warp = EdgeFace(), face_model().warp
    rows = np.flatnonzero(before.found & after.found)
    compared = set(rows[np.linspace(0, len(rows) - 1, min(_COMPARED, len(rows))).round().astype(int)].tolist())
    vectors: list[list[FloatArray]] = [[], []]
    flicker: list[tuple[float, ...]] = []
    last = None
    for number, frames in enumerate(_both(original, released)):
        if number in compared:
            for mine, frame, movement in zip(vectors, frames, (before, after), strict=True):
                mine.append(network.embed(frame, five_points(movement.meshes[number])))
        mesh = before.meshes[number] if before.found[number] else None
        held = None if mesh is None else _held(frames, mesh, warp)
        if held is not None and last is not None:
            flicker.append(_changes(last, held))
        last = held
    (face_before, ring_before), (face_after, ring_after) = np.mean(flicker, axis=0).reshape(2, 2)
    first, second = (np.array(mine) for mine in vectors)
    upper = np.triu_indices(len(first), 1)
    likeness = tuple(float((mine @ mine.T)[upper].mean()) for mine in (first, second))
    across = float((first * second).sum(axis=1).mean())
    return Steadiness(likeness, across, float(face_after / face_before), float(ring_after / ring_before))


def _both(original: Path, released: Path) -> Iterator[tuple[ByteArray, ByteArray]]:
    for one, other in zip(open_media(original).frames(), open_media(released).frames(), strict=True):
        yield one.pixels, other.pixels


def _held(frames: tuple[ByteArray, ByteArray], mesh: Mesh, warp) -> tuple[list, NDArray[np.bool_]]:
    """Return (face, crop) of both frames in the place that the mesh gives, and where in the crops the ring is."""
    points = with_forehead(mesh.points[:, :2])
    parts = [
        (np.asarray(warp.sample(frame, points), dtype=np.float32), cut(frame, mesh.points, _SIDE).astype(np.float32))
        for frame in frames
    ]
    matrix = crop_matrix(mesh.points, _SIDE)
    outline = points[list(OUTLINE)] @ matrix[:, :2].T + matrix[:, 2]
    middle = (outline.min(axis=0) + outline.max(axis=0)) / 2
    size = (_SIDE, _SIDE)
    return parts, polygon(size, middle + RING * (outline - middle)) & ~polygon(size, outline)


def _changes(last, held) -> tuple[float, ...]:
    """Return how much face and ring changed from one frame to the next: of the original, and afterwards."""
    ring = last[1] & held[1]
    return tuple(
        float(value)
        for (old_face, old), (face, crop) in zip(last[0], held[0], strict=True)
        for value in (np.abs(face - old_face).mean(), np.abs(crop - old)[ring].mean())
    )


@dataclass(frozen=True, eq=False)
class Reading:
    """Gender and year of birth of faces; rows are pictures, empty or not a number where there is no face."""

    gender: NDArray[np.str_]
    born: FloatArray


def read_faces(paths: list[Path]) -> Reading:
    """Read gender and year of birth of the largest face of each picture."""
    reader, model = Reader(), face_model()
    gender, born = [], []
    for path in paths:
        pixels = read(path)
        mesh = reader.mesh(pixels)
        if mesh is None:
            gender.append("")
            born.append(np.nan)
            continue
        code = model.encode(mesh.points * [1, 1, -1], model.texture_of(pixels.astype(np.float32) / 255, mesh.points))
        gender.append(str(genders(model, code[None])[0]))
        born.append(float(model.predicted(code[None], "born")[0]))
    return Reading(np.array(gender), np.array(born))


def compare_pictures(originals: Path, folder: Path, table: Path | None, labels: Path | None) -> None:
    """Print how well gender and year of birth are kept in a folder of photographs."""
    paths = picture_files(originals)
    released = Released.of(paths, folder, table)
    paths = [path for path in paths if path.stem in released.made]
    if not paths:
        raise SystemExit(f"{folder}: no picture is named as one in {originals}")
    before, after = read_faces(paths), read_faces([released.made[path.stem] for path in paths])
    there = (before.gender != "") & (after.gender != "")
    print(
        f"{len(paths)} pictures; a face in {(before.gender != '').sum()} before, {(after.gender != '').sum()} after.\n"
    )
    print("| compared | pictures | gender agrees | born within ten years | mean difference, years |")
    print("| --- | --- | --- | --- | --- |")
    _row("after with before", before, after, there)
    if labels is not None:
        truth = _labels(labels, [path.stem.split("_")[0] for path in paths])
        _row("before with labels", truth, before, there)
        _row("after with labels", truth, after, there)


def _row(name: str, truth: Reading, read_: Reading, there: NDArray[np.bool_]) -> None:
    same = (truth.gender == read_.gender)[there].mean()
    away = (read_.born - truth.born)[there & ~np.isnan(truth.born)]
    years = "– | –" if not len(away) else f"{(np.abs(away) <= _YEARS).mean():.1%} | {away.mean():+.1f}"
    print(f"| {name} | {there.sum()} | {same:.1%} | {years} |")


def _labels(table: Path, subjects: list[str]) -> Reading:
    with table.open(encoding="utf-8", newline="") as file:
        known = {row["subject"]: row for row in csv.DictReader(file)}
    rows = [known[subject] for subject in subjects]
    return Reading(np.array([r["gender"] for r in rows]), np.array([float(r.get("birth_year") or "nan") for r in rows]))


def compare_clips(original: Path, released: Path) -> None:
    """Print what is left of one clip."""
    before = measure(original)
    after = measure(released, before)
    kept, steady = compare(before, after), steadiness(original, released, before, after)
    print(f"{before.found.sum()} of {len(before.found)} frames with a face; found afterwards in {kept.found:.1%}.\n")
    print("| movement | correlation | moves |\n| --- | --- | --- |")
    for name in SIGNALS:
        print(f"| {name} | {kept.correlations[name]:.3f} | {np.nanstd(before.signal(name)):.3f} |")
    print("\n| measure | value |\n| --- | --- |")
    print("| pose error, degrees: yaw, pitch, roll | {:.2f}, {:.2f}, {:.2f} |".format(*kept.pose))
    print(f"| jitter of the points, by the original's | {kept.jitter:.2f} |")
    print("| one person, cosine between frames: original, released | {:.3f}, {:.3f} |".format(*steady.likeness))
    print(f"| cosine between original and released | {steady.across:.3f} |")
    print(f"| flicker of the face, by the original's | {steady.face:.2f} |")
    print(f"| flicker round the face, by the original's | {steady.ring:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("original", type=Path)
    parser.add_argument("released", type=Path)
    parser.add_argument("--pictures", action="store_true", help="both are folders of photographs")
    parser.add_argument("--link-table", type=Path, help="where released photographs are numbered")
    parser.add_argument("--labels", type=Path, help="table of subject, gender and, if known, birth_year")
    options = parser.parse_args()
    if options.pictures:
        compare_pictures(options.original, options.released, options.link_table, options.labels)
    else:
        compare_clips(options.original, options.released)


if __name__ == "__main__":
    main()
