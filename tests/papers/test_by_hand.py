"""Numbers of the reproduction, recomputed from the same faces by plain NumPy and nothing of ours."""

import numpy as np
import pytest

from ksame.papers.data import SyntheticData
from ksame.papers.experiment import TINY, Rows, Task


@pytest.fixture(scope="module")
def rows_of_pixels():
    """The faces of the experiments as rows of grey values from 0 to 255, and their size."""
    faces = Task(SyntheticData(), TINY, 0).faces(200)
    return np.rint(faces.images.astype(float) * 255).reshape(len(faces), -1), faces.shape[1:3]


def nearest(probes, gallery):
    """Share of probes whose nearest gallery row is their own, ties shared."""
    squares = ((probes[:, None] - gallery[None]) ** 2).sum(axis=2)
    best = squares.min(axis=1, keepdims=True)
    tied = squares <= best * (1 + 1e-9) + 1e-9
    return float(np.mean(tied.diagonal() / tied.sum(axis=1)))


def test_losses_of_fig_2(performed, rows_of_pixels):
    pixels, _ = rows_of_pixels
    black, mean = [], []
    for i in range(0, len(pixels) - 1, 2):
        pair = pixels[i : i + 2]
        middle = np.rint(pair.mean(axis=0) / 255 * 255)
        black += [np.linalg.norm(face) for face in pair]
        mean += [np.linalg.norm(face - middle) for face in pair]
    rows = Rows(performed("newton2005", "fig2").findings.rows)
    assert rows.value("loss", method="blackout") == pytest.approx(np.mean(black), rel=1e-6)
    assert rows.value("loss", method="average") == pytest.approx(np.mean(mean), rel=1e-3)


@pytest.mark.parametrize("p", [15, 20, 30])
def test_naive_recognition_of_pixelated_faces(performed, rows_of_pixels, p):
    pixels, (height, width) = rows_of_pixels
    blocks = pixels.reshape(-1, height, width).copy()
    for y in range(0, height, p):
        for x in range(0, width, p):
            part = blocks[:, y : y + p, x : x + p]
            part[:] = part.mean(axis=(1, 2), keepdims=True)
    seen = np.rint(blocks).reshape(len(pixels), -1)
    rows = Rows(performed("newton2005", "table").findings.rows)
    rate = rows.value("rank1", method=f"pixelation {p}", attack="naive", components="all")
    assert rate == pytest.approx(nearest(seen, pixels), abs=1e-9)


def test_recognition_of_k_samed_faces(performed, rows_of_pixels):
    pixels, _ = rows_of_pixels
    rows = Rows(performed("newton2005", "fig7b").findings.rows).where(method="k-Same-Pixel", attack="naive")
    centred = pixels - pixels.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    keep = int(np.searchsorted(np.cumsum(s**2) / (s**2).sum(), 0.95)) + 1
    codes = u[:, :keep] * s[:keep]
    for k, rate in zip(rows.column("k"), rows.column("rank1"), strict=True):
        found = []
        for seed in range(2):
            rng, left, made = np.random.default_rng(seed), list(range(len(codes))), np.zeros_like(pixels)
            while left:
                size = len(left) if len(left) < 2 * k else k
                centre = left[rng.integers(len(left))]
                group = sorted(left, key=lambda i: ((codes[i] - codes[centre]) ** 2).sum())[:size]
                made[group] = np.rint(pixels[group].mean(axis=0))
                left = [i for i in left if i not in group]
            found.append(nearest(made, pixels))
        assert rate == pytest.approx(np.mean(found), abs=1e-9)
