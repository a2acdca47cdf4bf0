"""The restoring attack, measured: pairs to train restorers on, and how much better recognisers do on what they restore.

``python -m benchmarks.restoring_attack prepare ORIGINALS [ORIGINALS ...] PUBLISHED PAIRS.npz``
    Cuts the faces out of pictures of the same name before and after, for ``benchmarks/train_restorer.py``.

``python -m benchmarks.restoring_attack control ORIGINALS PUBLISHED``
    Publishes the pictures of a folder with one face for everyone of a gender, and asks no recogniser. So nothing of a
    person is in them but place, pose, expression and surroundings: what is found there, no choice of faces takes away.

``python -m benchmarks.restoring_attack judge FACES PUBLISHED=RESTORER.onnx [...]``
    FACES holds ``portraits`` (one photograph a person, named by subject) and ``labels.csv`` (subject, gender). The
    gallery is all portraits; the probes are the pictures in PUBLISHED, of people on whom nothing was trained, once as
    they are and once restored. *first*: how many are first in the gallery. *of ten*: how often the likeliest of ten
    portraits of the same gender is the right one, the mean over all lists of nine others: chance is 10 %.

``python -m benchmarks.restoring_attack learn FACES ORIGINALS [ORIGINALS ...] TRAINED PUBLISHED``
    An attacker who restores no picture: ridge regression learns from pairs of other people (ORIGINALS, TRAINED) which
    vector a recogniser sees in the original, once from the vectors that three recognisers see in the published picture,
    once from its expression and pose alone, as the mesh tells them. Probes, gallery and *of ten* as above; the penalty
    is chosen by leaving out one pair at a time.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Mapping, Sequence
from math import comb
from pathlib import Path

import numpy as np
from PIL import Image

from ksame.arrays import ByteArray, FloatArray
from ksame.attacks import Restorer, clopper_pearson
from ksame.attacks.restorer import find_altered, square_of
from ksame.faces.reading import SUFFIXES, read_image
from ksame.geometry import overlap, warp
from ksame.models import DlibResNet, Face, FaceDetector, FaceMesh, SFace, five_points
from ksame.models.pictures import as_rgb8
from ksame.scene.config import Job, JobConfig
from ksame.scene.job import run

SIDE = 128
"""What restorers see, in pixels."""

MARGIN = 8
"""Pixels kept on every side of it, so that training can shift, scale and turn the faces."""

QUALITY = 90
"""Of the WebP squares: 560 pairs take about 4 MB."""

_SAME = 0.4  # overlap of boxes above which the face found in the published picture is the original's


def pictures(folders: Sequence[Path]) -> dict[str, Path]:
    """Return the pictures of folders by their stems."""
    files = [path for folder in folders for path in sorted(folder.iterdir()) if path.suffix.lower() in SUFFIXES]
    found = {path.stem: path for path in files}
    if len(found) != len(files):
        raise SystemExit(f"Two pictures in {', '.join(map(str, folders))} have the same name.")
    return found


def read(path: Path) -> ByteArray:
    return as_rgb8(read_image(path))


def nearest(faces: Sequence[Face], face: Face) -> Face:
    """Return which of ``faces`` lies where ``face`` does; ``face`` itself where none does."""
    if not faces:
        return face
    shared = overlap(np.array([each.box for each in faces]), np.array(face.box))[:, 0]
    return faces[int(shared.argmax())] if shared.max() > _SAME else face


def largest(found: Sequence[Face]) -> Face | None:
    """Return the largest of faces that the detector is sure of, else the surest."""
    sure = [face for face in found if face.score >= 0.6]
    return max(sure, key=lambda face: face.side) if sure else next(iter(found), None)


# --- prepare


def pair_of(
    original: ByteArray, published: ByteArray, detector: FaceDetector
) -> tuple[ByteArray, ByteArray, FloatArray]:
    """Return both squares, of SIDE + 2 MARGIN pixels, and the original's five points in them.

    The square lies where the attacker will put it, at the face found in the published picture; where that is not the
    original's face, at the original's: whoever trains a restorer has both.
    """
    face = largest(find_altered(original, detector))
    if face is None:
        raise LookupError("no face found in the original")
    matrix = square_of(nearest(find_altered(published, detector), face).box, SIDE)
    matrix[:, 2] += MARGIN
    side = SIDE + 2 * MARGIN
    points = face.landmarks @ matrix[:, :2].T + matrix[:, 2]
    return warp(published, matrix, side), warp(original, matrix, side), points


def prepare(originals: Sequence[Path], published: Path, output: Path, heldout: Path | None) -> None:
    """Write the pairs of all pictures in ``published`` that have an original."""
    before, after = pictures(originals), pictures([published])
    names = [name for name in after if name in before]
    kept_apart = set() if heldout is None else set(heldout.read_text(encoding="utf-8").split())
    if both := kept_apart & set(names):
        raise SystemExit(f"{published} shows {len(both)} people on whom nothing may be trained, such as {min(both)}.")
    detector, squares, points, kept = FaceDetector(), ([], []), [], []
    for name in names:
        first, second = read(before[name]), read(after[name])
        try:
            if first.shape != second.shape:
                raise LookupError(f"{first.shape[:2]} became {second.shape[:2]}")
            *both, five = pair_of(first, second, detector)
        except LookupError as error:
            print(f"left out {name}: {error}")
            continue
        for part, square in zip(squares, both, strict=True):
            part.append(encoded(square))
        points.append(five)
        kept.append(name)
    if not kept:
        raise SystemExit(f"{published}: no picture has the name of an original, or none shows a face.")
    data = [*squares[0], *squares[1]]
    output.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        output,
        data=np.frombuffer(b"".join(data), dtype=np.uint8),
        ends=np.cumsum([len(part) for part in data]),
        points=np.array(points, dtype=np.float32),
        names=np.array(kept),
    )
    print(f"{output}: {len(kept)} pairs, {output.stat().st_size / 1e6:.1f} MB")


def encoded(square: ByteArray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(square).save(buffer, format="WEBP", quality=QUALITY, method=5)
    return buffer.getvalue()


# --- control


def control(originals: Path, published: Path, seed: int) -> None:
    """Publish pictures with one face for everyone of a gender."""
    files = [(path, published / path.name) for path in pictures([originals]).values()]
    published.mkdir(parents=True)
    run(Job(files, published.with_name(f"{published.name}-work"), JobConfig(k=len(files), judged=False), seed=seed))


# --- judge


class Reader:
    """Finds the face of a picture and embeds it with all recognisers."""

    def __init__(self, edgeface: bool) -> None:
        self.detector, self.mesher = FaceDetector(), FaceMesh()
        self.networks = [SFace(), DlibResNet()]
        if edgeface:
            from benchmarks.edgeface import EdgeFace  # its weights may have to be fetched

            self.networks.append(EdgeFace())

    def vectors(self, pixels: ByteArray) -> list[FloatArray] | None:
        """Return a vector for each recogniser; None where no face is found."""
        face = largest(find_altered(pixels, self.detector))
        return None if face is None else self.embedded(pixels, face)

    def restored(self, pixels: ByteArray, restorer: Restorer) -> list[FloatArray] | None:
        """Return the vectors of the face after it was restored; None where none is found to begin with."""
        face = largest(find_altered(pixels, self.detector))
        if face is None:
            return None
        better = restorer.restored(pixels, face.box)
        return self.embedded(better, nearest(self.detector.detect(better), face))

    def embedded(self, pixels: ByteArray, face: Face) -> list[FloatArray]:
        """Return the vectors of a face that was found."""
        mesh = self.mesher.fit(pixels, face)
        points = five_points(mesh) if mesh.presence > 0.5 else face.landmarks
        return [network.embed(pixels, points) for network in self.networks]


def gallery_vectors(reader: Reader, files: Sequence[Path], cache: Path | None) -> list[FloatArray]:
    """Return the gallery, (n_people, n_numbers) for each recogniser; kept in ``cache`` where that is given."""
    keys = [network.name for network in reader.networks]
    names = np.array([path.stem for path in files])
    if cache is not None and cache.exists():
        with np.load(cache, allow_pickle=False) as archive:
            if set(keys) <= set(archive.files) and np.array_equal(archive["names"], names):
                return [archive[key] for key in keys]
    rows = [reader.vectors(read(path)) for path in files]
    if None in rows:
        raise SystemExit(f"{files[rows.index(None)]}: no face found in an original.")
    vectors = [np.array([row[i] for row in rows]) for i in range(len(keys))]
    if cache is not None:
        np.savez(cache, names=names, **dict(zip(keys, vectors, strict=True)))
    return vectors


def picked_right(likely: FloatArray, truth: int, others: np.ndarray, listed: int = 10) -> float:
    """Return how probably somebody is the likeliest in a list of themselves and ``listed - 1`` of the others.

    The list is drawn at random; it must miss everybody who is likelier. Who is as likely counts as likelier.
    """
    ahead = int((likely[others] >= likely[truth]).sum())
    return comb(len(others) - ahead, listed - 1) / comb(len(others), listed - 1)


def judge(faces: Path, attacks: Sequence[str], *, edgeface: bool, cache: Path | None, most: int | None) -> None:
    """Print a table of all attacks."""
    known, names, sexes = gallery_of(faces)
    reader = Reader(edgeface)
    gallery = gallery_vectors(reader, list(known.values()), cache)
    print("| published | recogniser | first | first, restored | of ten | of ten, restored | no face found |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for attack in attacks:
        folder, _, weights = attack.rpartition("=")
        restorer = Restorer(weights)
        probes = {name: path for name, path in pictures([Path(folder)]).items() if name in known}
        if not probes:
            raise SystemExit(f"{folder}: no picture is named like a portrait.")
        first, ten = (np.zeros((2, len(gallery), len(probes))) for _ in range(2))
        missing = 0
        for j, (name, path) in enumerate(list(probes.items())[:most]):
            pixels, truth = read(path), names.index(name)
            others = np.flatnonzero((sexes == sexes[truth]) & (np.arange(len(names)) != truth))
            for i, vectors in enumerate((reader.vectors(pixels), reader.restored(pixels, restorer))):
                if vectors is None:
                    missing += i
                    continue
                for r, vector in enumerate(vectors):
                    likely = gallery[r] @ vector
                    first[i, r, j] = likely.argmax() == truth
                    ten[i, r, j] = picked_right(likely, truth, others)
        n = len(probes) if most is None else min(most, len(probes))
        for r, network in enumerate(reader.networks):
            plain, restored = (_rate(first[i, r, :n]) for i in range(2))
            print(
                f"| {_called(Path(folder))} | {network.name} | {plain} | {restored} | {ten[0, r, :n].mean():.1%} | "
                f"{ten[1, r, :n].mean():.1%} | {missing} |",
                flush=True,
            )


# --- learn


PENALTIES = np.geomspace(0.03, 30, 10)
EXPRESSION = "expression and pose"


def seen_in(reader: Reader, path: Path) -> dict[str, FloatArray] | None:
    """Return what an attacker sees in a picture: every recogniser's vector, and expression and pose."""
    pixels = read(path)
    face = largest(find_altered(pixels, reader.detector))
    if face is None:
        return None
    mesh = reader.mesher.fit(pixels, face)
    vectors = reader.embedded(pixels, face)
    seen = {network.name: vector for network, vector in zip(reader.networks, vectors, strict=True)}
    return {**seen, EXPRESSION: np.array([*mesh.blendshapes, mesh.pose.yaw, mesh.pose.pitch, mesh.pose.roll])}


def regressed(known: FloatArray, wanted: FloatArray, shown: FloatArray) -> FloatArray:
    """Learn ``wanted``, (n, d), from ``known``, (n, m), and return what is expected for ``shown``, (n_probes, m)."""
    inner, mean = known @ known.T, wanted.mean(axis=0)
    trials = []
    for penalty in PENALTIES:
        inverse = np.linalg.inv(inner + penalty * np.eye(len(inner)))
        weights = inverse @ (wanted - mean)
        left_out = weights / np.diag(inverse)[:, None]  # errors for each row, learned from all others
        trials.append((float(np.square(left_out).sum()), weights))
    return shown @ known.T @ min(trials, key=lambda trial: trial[0])[1]


def blocks(rows: Sequence[Mapping[str, FloatArray]], names: Sequence[str], like: Sequence | None = None) -> FloatArray:
    """Return what is seen, (n, m), each kind centred and scaled as those of ``like``, (by default these rows)."""
    parts = []
    for name in names:
        part, model = (np.array([row[name] for row in each]) for each in (rows, like or rows))
        parts.append((part - model.mean(axis=0)) / (model.std(axis=0).mean() * np.sqrt(part.shape[1])))
    return np.hstack(parts)


def learn(faces: Path, originals: Sequence[Path], trained: Path, published: Path) -> None:
    """Print a table of how well recognisers do on what is expected of the originals."""
    known, names, sexes = gallery_of(faces)
    reader = Reader(edgeface=True)
    before, after, probes = pictures(originals), pictures([trained]), pictures([published])
    if both := {name.split("_")[0] for name in probes} & {name.split("_")[0] for name in after}:
        raise SystemExit(f"{trained} and {published} both show {min(both)}.")
    pairs = [(seen_in(reader, before[name]), seen_in(reader, path)) for name, path in after.items() if name in before]
    pairs = [(first, second) for first, second in pairs if first and second]
    seen = {name: row for name, path in probes.items() if (row := seen_in(reader, path))}
    gallery = []
    for path in known.values():
        if (row := seen_in(reader, path)) is None:
            raise SystemExit(f"{path}: no face found in an original.")
        gallery.append(row)
    vectors = [network.name for network in reader.networks]
    print(f"{len(pairs)} pairs, {len(seen)} probes\n\n| seen | recogniser | of ten |\n| --- | --- | --- |")
    for what in (vectors, [EXPRESSION]):
        first, second = (
            blocks(rows, what, [b for _, b in pairs]) for rows in ([b for _, b in pairs], [*seen.values()])
        )
        for network in vectors:
            people = np.array([row[network] for row in gallery])
            people = people - people.mean(axis=0)
            people /= np.linalg.norm(people, axis=1, keepdims=True)
            expected = regressed(first, np.array([a[network] for a, _ in pairs]), second)
            ten = []
            for name, vector in zip(seen, expected, strict=True):
                truth = names.index(name.split("_")[0])
                others = np.flatnonzero((sexes == sexes[truth]) & (np.arange(len(names)) != truth))
                ten.append(picked_right(people @ vector, truth, others))
            print(f"| {what[0] if len(what) == 1 else 'vectors'} | {network} | {np.mean(ten):.1%} |", flush=True)


def gallery_of(faces: Path) -> tuple[dict[str, Path], list[str], np.ndarray]:
    """Return portraits by subject, the subjects, and their genders."""
    with (faces / "labels.csv").open(encoding="utf-8") as file:
        gender = {row["subject"]: row["gender"] for row in csv.DictReader(file)}
    known = pictures([faces / "portraits"])
    return known, list(known), np.array([gender[name] for name in known])


def _rate(hits: FloatArray) -> str:
    low, high = clopper_pearson(float(hits.sum()), len(hits))
    return f"{int(hits.sum())} of {len(hits)} ({low:.1%} to {high:.1%})"


def _called(folder: Path) -> str:
    return folder.parent.name if folder.name in ("heldout", "train") else folder.name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = parser.add_subparsers(dest="job", required=True)
    first = jobs.add_parser("prepare", help="cut pairs to train on")
    first.add_argument("originals", type=Path, nargs="+", help="folders of pictures before")
    first.add_argument("published", type=Path, help="folder of pictures after, named alike")
    first.add_argument("output", type=Path, help="file of pairs to write, .npz")
    first.add_argument("--heldout", type=Path, help="list of names that must not be among them")
    same = jobs.add_parser("control", help="publish everyone with one face")
    same.add_argument("originals", type=Path)
    same.add_argument("published", type=Path)
    same.add_argument("--seed", type=int, default=1)
    second = jobs.add_parser("judge", help="recognise people in what restorers restore")
    second.add_argument("faces", type=Path)
    second.add_argument("attacks", nargs="+", metavar="PUBLISHED=RESTORER.onnx")
    second.add_argument("--cache", type=Path, help="where to keep the gallery's vectors; as secret as the portraits")
    second.add_argument("--no-edgeface", action="store_true", help="only SFace and dlib")
    second.add_argument("--most", type=int, help="only the first so many people")
    third = jobs.add_parser("learn", help="learn which vectors the originals have")
    third.add_argument("faces", type=Path)
    third.add_argument("originals", type=Path, nargs="+", help="folders of pictures before, of other people")
    third.add_argument("trained", type=Path, help="folder of these after, named alike")
    third.add_argument("published", type=Path, help="pictures to attack, named by subject")
    options = parser.parse_args()
    if options.job == "learn":
        learn(options.faces, options.originals, options.trained, options.published)
    elif options.job == "prepare":
        prepare(options.originals, options.published, options.output, options.heldout)
    elif options.job == "control":
        control(options.originals, options.published, options.seed)
    else:
        judge(
            options.faces,
            options.attacks,
            edgeface=not options.no_edgeface,
            cache=options.cache,
            most=options.most,
        )


if __name__ == "__main__":
    main()
