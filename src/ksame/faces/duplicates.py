"""Photographs that stand under two names: one person counted twice is one person fewer to hide among."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Literal

import cv2
import numpy as np

from ksame import scratch
from ksame.arrays import FloatArray
from ksame.errors import InputError, KsameWarning
from ksame.faces.faceset import FaceSet

Names = Literal["refuse", "merge", "keep"]

ALIKE = 0.992
"""Correlation of small copies, whatever their brightness, from which two pictures are taken for one photograph. Copies
compressed to quality 50, halved in size, brightened or mirrored reach 0.996; 250 different people reach 0.93, 805
synthetic ones 0.989 (benchmarks/look_alikes.py)."""

APART = "pairs of nearly equal photographs under two names count as different people."
"""What a certificate says where such names were kept."""

_SIDE = 32  # longer side of the small copies, in pixels: what compression and scaling change is gone there
_BLOCK = 512  # rows that are compared with others at a time
_FURTHEST = (2.0 - 2.0 * ALIKE) ** 0.5 + 1e-6  # distance of two rows of length one that correlate


def look_alikes(faces: FaceSet) -> list[tuple[int, int]]:
    """Return the pairs (i, j), i < j, of images of different subjects that are nearly one photograph."""
    plain = small_copies(faces)
    near = {*_near(plain, plain), *_near(plain, small_copies(faces, mirrored=True))}
    return sorted((i, j) for i, j in near if faces.subjects[i] != faces.subjects[j])


def _near(ours: FloatArray, theirs: FloatArray) -> Iterator[tuple[int, int]]:
    """Yield pairs of a row of ours and a later one of theirs that correlate.

    Rows that are far apart along the direction in which they differ most cannot correlate, and are not compared.
    """
    sample = ours[:: max(1, len(ours) // _BLOCK)]
    direction = np.linalg.svd(sample - sample.mean(axis=0), full_matrices=False)[2][0]
    here, there = ours @ direction, theirs @ direction
    order, across = np.argsort(here), np.argsort(there)
    for start in range(0, len(ours), _BLOCK):
        block = order[start : start + _BLOCK]
        reach = (here[block[0]] - _FURTHEST, here[block[-1]] + _FURTHEST)
        window = across[slice(*np.searchsorted(there, reach, sorter=across))]
        rows = ours[block]
        for part in scratch.blocks(len(window), 8 * max(len(rows), rows.shape[1])):
            others = window[part]
            for i, j in np.argwhere(rows @ theirs[others].T >= ALIKE):
                if block[i] < others[j]:
                    yield int(block[i]), int(others[j])


def one_name_each(faces: FaceSet, names: Names, *, settled: Collection[str] = ()) -> tuple[FaceSet, tuple[str, ...]]:
    """Return the faces with one name for each person, and privacy warnings.

    Names that share a photograph are an InputError that lists them, become one person, or are kept as they are.
    Subjects in ``settled`` keep their names, since they are in an earlier release; pairs of two of them are left alone.
    """
    kept, who = set(settled), faces.subjects
    pairs = [(i, j) for i, j in look_alikes(faces) if not (who[i] in kept and who[j] in kept)]
    if not pairs:
        return faces, ()
    if names == "keep":
        return faces, (f"{len(pairs)} {APART}",)
    listed = ", ".join(f"{faces.names[i]} ({who[i]}) and {faces.names[j]} ({who[j]})" for i, j in pairs[:3])
    more = f" and {len(pairs) - 3} more pairs" if len(pairs) > 3 else ""
    if names == "refuse":
        raise InputError(
            f"Nearly the same photograph stands under two names: {listed}{more}. One person under two names is one "
            "fewer to hide among. Correct the names or leave a picture out, or take them for one person with "
            "--same-person."
        )
    warnings.warn(f"Taken for one person: {listed}{more}.", KsameWarning, stacklevel=3)
    return replace(faces, subjects=np.array(_joined(faces, pairs, kept))), ()


def _joined(faces: FaceSet, pairs: list[tuple[int, int]], kept: set[str]) -> list[str]:
    """Return the subjects, one name for all that the pairs connect: a settled one, else the first in the alphabet."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.get(name, name) != name:
            name = leader[name]
        return name

    for i, j in pairs:
        names = (find(str(faces.subjects[i])), find(str(faces.subjects[j])))
        first, second = sorted(names, key=lambda name: (name not in kept, name))
        leader[second] = first
    return [find(str(subject)) for subject in faces.subjects]


def small_copies(faces: FaceSet, *, mirrored: bool = False) -> FloatArray:
    """Return small copies as rows of length one without brightness, so that products are correlations."""
    _, height, width, channels = faces.shape
    scale = min(1.0, _SIDE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    rows = scratch.empty((len(faces), size[0] * size[1] * channels), np.float64)
    for row, image in zip(rows, faces.images, strict=True):
        shown = np.ascontiguousarray(image[:, ::-1]) if mirrored else image
        small = cv2.resize(shown, size, interpolation=cv2.INTER_AREA).ravel()
        centred = small.astype(np.float64) - small.mean()
        row[:] = centred / max(float(np.linalg.norm(centred)), 1e-12)
    return rows
