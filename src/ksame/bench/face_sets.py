"""Face sets: k-Same, Eigenfaces, the appearance model and the audit."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray
from ksame.attacks import Eigenfaces
from ksame.audit import AuditConfig, AuditResult, audit
from ksame.bench.base import Comparison, MissingYardstickError, Settings, Timed, compare, timed
from ksame.bench.yardsticks import ANONYPYX, OPENCV
from ksame.faces.faceset import FaceSet, quantise
from ksame.faces.reading import encode_png
from ksame.methods import KSame, Outcome, Problem
from ksame.spaces.aam import AppearanceModel, Fitter, build
from ksame.synthetic import synthetic

KS = (2, 5, 10, 50)
_K = 5
_PROBES = 50
_FITTED = 3  # faces to which the appearance model is fitted

_KSAME = """
import anonypyx
images = data["images"]
how = dict(k=int(data["k"]), variant="pixel", clustering_implementation="MDAV-Generic")
begin()
anonypyx.kSame(images, images.shape[2], images.shape[1], **how).anonymize()
end()
tell()
"""
_EIGENFACES = """
import cv2
recogniser = cv2.face.EigenFaceRecognizer_create(num_components=len(data["training"]) - 1)
begin()
recogniser.train(list(data["training"]), np.arange(len(data["training"]), dtype=np.int32))
end()
found = [recogniser.predict(probe) for probe in data["probes"]]
tell(nearest=[f[0] for f in found], distances=[f[1] for f in found])
"""


def fields(settings: Settings, n: int, seed: int = 0) -> ByteArray:
    """Return smooth random pictures, 8 bits, (n, height, width): as many components as pictures, like faces."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(seed)
    rows = gaussian_filter(rng.normal(size=(n, settings.height, settings.width)), (0, 2.0, 2.0))
    return quantise(0.5 + 0.15 * rows / rows.std())


def plain_loop(pixels: FloatArray, k: int, rng: np.random.Generator) -> tuple[FloatArray, NDArray[np.intp]]:
    """Newton et al. (2005, Fig. 4), line by line: pick a face, measure all that are left, average the nearest k."""
    released, labels = np.empty_like(pixels), np.empty(len(pixels), dtype=np.intp)
    left = list(range(len(pixels)))
    group = 0
    while left:
        if len(left) < 2 * k:
            k = len(left)
        centre = left[rng.integers(len(left))]
        distances = [np.sqrt(((pixels[j] - pixels[centre]) ** 2).sum()) for j in left]
        nearest = [left[i] for i in np.argsort(distances, kind="stable")[:k]]
        released[nearest] = pixels[nearest].mean(axis=0)
        labels[nearest] = group
        left = [j for j in left if j not in nearest]
        group += 1
    return released, labels


def k_same(settings: Settings) -> Iterator[Comparison]:
    """Form groups and their means, as the paper has it and as anonypyx does."""
    images = fields(settings, settings.faces) / 255.0
    pixels = images.reshape(len(images), -1)
    subjects = np.arange(len(images)).astype(str)
    ks = [k for k in KS if k <= len(images)]

    def loop() -> list[tuple[FloatArray, NDArray[np.intp]]]:
        return [plain_loop(pixels, k, np.random.default_rng(k)) for k in ks]

    def ours() -> list[Outcome]:
        problem = Problem(pixels, subjects)
        return [KSame(k).run(problem, np.random.default_rng(k)) for k in ks]

    def alike(own: list[Outcome], other: list[tuple[FloatArray, NDArray[np.intp]]]) -> dict[str, float]:
        pairs = zip(own, other, strict=True)
        return {"same groups": float(np.mean([outcome.groups == labels for outcome, (_, labels) in pairs]))}

    size = f"{len(images)} faces of {pixels.shape[1]} pixels"
    what = f"k-Same-Pixel, {size}, k = {', '.join(map(str, ks))}"
    yield compare(what, "the paper's loop", timed(ours), timed(loop), rounds=settings.rounds, figures=alike)
    yield compare(
        f"k-Same-Pixel by MDAV, {size}, k = {_K}",
        ANONYPYX.requirement,
        timed(lambda: KSame(_K, grouping="mdav").run(Problem(pixels, subjects), np.random.default_rng(0))),
        partial(ANONYPYX.run, _KSAME, install=settings.install, images=images, k=np.array(_K)),
        rounds=settings.rounds,
    )


def eigenfaces(settings: Settings) -> Iterator[Comparison]:
    """Train on all components, with scikit-learn and with OpenCV's recogniser; the neighbours found are the same."""
    training = fields(settings, settings.faces)
    rng = np.random.default_rng(1)
    near = training[rng.integers(0, len(training), _PROBES)] + rng.normal(0, 40.0, (_PROBES, *training.shape[1:]))
    probes = np.concatenate([np.clip(near, 0, 255).astype(np.uint8), fields(settings, _PROBES, seed=2)])
    faces, seen = (FaceSet(p[..., None], np.arange(len(p)).astype(str)) for p in (training, probes))
    rows, seen_rows = (p.reshape(len(p), -1) / 255.0 for p in (training, probes))

    def agreement(own: Eigenfaces, nearest: Any, distances: Any) -> dict[str, float]:
        measured = own.distances(seen, faces)
        gap = np.abs(255.0 * measured.min(axis=1) / np.asarray(distances) - 1).max()
        return {"same neighbour": float((measured.argmin(axis=1) == nearest).mean()), "largest difference": float(gap)}

    def against_sklearn(own: Eigenfaces, pca: Any) -> dict[str, float]:
        gaps = pca.transform(seen_rows)[:, None] - pca.transform(rows)[None]
        distances = np.sqrt((gaps**2).sum(axis=2))
        return agreement(own, distances.argmin(axis=1), 255.0 * distances.min(axis=1))

    what = f"Eigenfaces, {len(rows)} faces of {rows.shape[1]} pixels"
    ours = timed(lambda: Eigenfaces().fit(faces))

    def theirs() -> Timed[Any]:
        pca = scikit_learn().decomposition.PCA(len(rows) - 1, svd_solver="full")
        return timed(lambda: pca.fit(rows))()

    yield compare(what, "scikit-learn", ours, theirs, rounds=settings.rounds, figures=against_sklearn)
    yield compare(
        what,
        "OpenCV",
        ours,
        partial(OPENCV.run, _EIGENFACES, install=settings.install, training=training, probes=probes),
        rounds=settings.rounds,
        figures=lambda own, other: agreement(own, other["nearest"], other["distances"]),
    )


def appearance_model(settings: Settings) -> Iterator[Comparison]:
    """Fit to faces from a start beside them, and the same model by SciPy's general solver."""
    faces = synthetic(max(30, settings.faces // 10), expressions=("smile",), seed=5)
    points = np.asarray(faces.landmarks, dtype=np.float64)
    learned, shown = np.s_[:-_FITTED], list(zip(faces.images[-_FITTED:], points[-_FITTED:], strict=True))
    model = build(faces.images[learned], points[learned], shape=10, texture=20, width=64)
    fitter = Fitter.train(model, faces.images[learned], points[learned], shape_modes=10, texture_modes=20)
    starts = [points + 0.04 * np.ptp(points[:, 0]) for _, points in shown]

    def error(own: list[FloatArray], other: list[FloatArray]) -> dict[str, float]:
        widths = [np.ptp(truth[:, 0]) for _, truth in shown]
        gaps = [
            float(np.mean([np.abs(f - t).mean() / w for f, (_, t), w in zip(fitted, shown, widths, strict=True)]))
            for fitted in (own, other)
        ]
        return {"error": gaps[0], "yardstick's error": gaps[1]}

    def solver() -> list[FloatArray]:
        return [general_fit(model, image, start) for (image, _), start in zip(shown, starts, strict=True)]

    yield compare(
        f"Fitting an appearance model to {len(shown)} faces",
        "SciPy least_squares",
        timed(lambda: [fitter.fit(image, start).points for (image, _), start in zip(shown, starts, strict=True)]),
        timed(solver),
        rounds=1,
        figures=error,
    )


def general_fit(model: AppearanceModel, image: NDArray[Any], start: FloatArray) -> FloatArray:
    """Fit pose and shape by least squares with numerical derivatives; what textures can explain is projected out."""
    from scipy.optimize import least_squares

    mean = model.mean_texture.ravel().astype(np.float64)
    modes = model.texture_modes.reshape(len(model.texture_modes), -1).astype(np.float64)
    deviations = np.sqrt(model.shape_variances)
    params, pose = model.shape_params(start)
    centre, across = start.mean(axis=0), np.ptp(start[:, 0])

    def place(numbers: FloatArray) -> FloatArray:
        steps = numbers - 1.0  # about 1: SciPy's steps for derivatives are shares of the numbers
        scale, turn, *shift = 0.01 * steps[:4]
        offset = pose.apply(model.shape(steps[4:] * deviations)) - centre
        return np.asarray(centre + offset * (1 + scale) + offset[:, ::-1] * [-turn, turn] + across * np.array(shift))

    def residual(numbers: FloatArray) -> FloatArray:
        texture = model.warp.sample(image, place(numbers)).ravel() - mean
        return np.asarray(texture - (texture @ modes.T) @ modes)

    first = 1.0 + np.concatenate([np.zeros(4), params / deviations])
    return place(least_squares(residual, first, diff_step=0.1, max_nfev=20).x)


def auditing(settings: Settings) -> Iterator[Comparison]:
    """Attack released files by Eigenfaces, and the same single number by a script with Pillow and scikit-learn."""
    originals = fields(settings, settings.faces)
    blurred = fields(settings, settings.faces, seed=3) // 2 + originals // 2
    with tempfile.TemporaryDirectory() as name:
        folders = Path(name) / "before", Path(name) / "after"
        for folder, images in zip(folders, (originals, blurred), strict=True):
            folder.mkdir()
            for i, image in enumerate(images):
                (folder / f"{i:05d}.png").write_bytes(encode_png(image[..., None]))
        config = AuditConfig(attackers=("eigenfaces",), scenarios=("naive",), view="faces")

        def differ(own: AuditResult, other: float) -> dict[str, float]:
            return {"recognised": own.attacks[0].rank1, "by the script": other}

        yield compare(
            f"Audit of {len(originals)} faces by Eigenfaces",
            "script, scikit-learn",
            timed(lambda: audit(*folders, config)),
            timed(lambda: script(*folders)),
            rounds=1,
            figures=differ,
        )


def scikit_learn() -> Any:
    """Return the package, or raise as for any other yardstick that is missing."""
    try:
        import sklearn.decomposition
        import sklearn.neighbors
    except ImportError as error:
        raise MissingYardstickError("scikit-learn is not installed: pip install 'ksame[labels]'") from error
    return sklearn


def script(before: Path, after: Path) -> float:
    """Return the share of released faces whose nearest original, among eigenface coefficients, is their own."""
    from PIL import Image

    sklearn = scikit_learn()
    gallery, probes = (
        np.stack([np.asarray(Image.open(file), dtype=np.float64).ravel() for file in sorted(folder.iterdir())])
        for folder in (before, after)
    )
    pca = sklearn.decomposition.PCA(len(gallery) - 1, svd_solver="full").fit(gallery)
    index = sklearn.neighbors.NearestNeighbors(n_neighbors=1).fit(pca.transform(gallery))
    nearest = index.kneighbors(pca.transform(probes), return_distance=False)[:, 0]
    return float((nearest == np.arange(len(probes))).mean())
