"""The face set: what every other room works on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ksame import scratch
from ksame.arrays import ByteArray, FloatArray
from ksame.errors import InputError
from ksame.faces import checking

_BLOCK = 64  # faces, or lines of a picture, that are rounded at a time


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class FaceSet:
    """Registered face images of known subjects, checked once and read-only from then on.

    Parameters
    ----------
    images : ndarray of shape (n_faces, height, width, channels)
        RGB (three channels) or grey (one channel) in [0, 1]; kept as float32. Bytes (uint8) and uint16 are
        scaled by the largest value of their type; other integers are refused, since nobody knows what white is.
        Many images are kept on disk, see :mod:`ksame.scratch`; a memory-mapped float32 file is used as it is.
    subjects : sequence of length n_faces
        Who is in each image, in their order; kept as strings. Nobody may be without a name.
    landmarks : ndarray of shape (n_faces, n_points, 2 or 3), optional
        Points in pixels, x before y, the centre of the top left pixel at (0, 0); a third coordinate, where a mesh gave
        it, grows towards the viewer.
    attributes : mapping of name to sequence of length n_faces, optional
        Labels such as gender or expression; kept as strings, a missing one as the empty string.
    names : sequence of length n_faces, optional
        Where each image came from. Names are secret: they go into the linkage, never into a release.

    Examples
    --------
    >>> faces = FaceSet(np.zeros((2, 4, 3, 1)), ["ann", "bob"])
    >>> faces.shape, faces.n_subjects, faces.person_specific
    ((2, 4, 3, 1), 2, True)
    """

    images: NDArray[Any]
    subjects: NDArray[np.str_]
    landmarks: FloatArray | None = None
    attributes: Mapping[str, NDArray[np.str_]] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        images = checking.pixels(self.images)
        n = len(images)
        names = [f"face {i + 1}" for i in range(n)] if isinstance(self.names, tuple) and not self.names else self.names
        attributes = {name: _read_only(values) for name, values in checking.labels(self.attributes, n).items()}
        frozen: dict[str, Any] = {
            "images": _read_only(images),
            "subjects": _read_only(checking.people(self.subjects, n)),
            "landmarks": None if self.landmarks is None else _read_only(checking.points(self.landmarks, n)),
            "attributes": MappingProxyType(attributes),
            "names": tuple(str(name) for name in checking.listed(names, n, "names")),
        }
        for key, value in frozen.items():
            object.__setattr__(self, key, value)

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        """Return what the set holds in numbers: no pixel, no name."""
        n, height, width, channels = self.shape
        points = "no" if self.landmarks is None else self.landmarks.shape[1]
        colours = "grey" if channels == 1 else "colour"
        return (
            f"FaceSet({n} faces of {self.n_subjects} people, {height} x {width} pixels in {colours}, "
            f"{points} landmarks; labels: {', '.join(self.attributes) or 'none'})"
        )

    def __reduce__(self) -> tuple[type[FaceSet], tuple[Any, ...]]:
        """Let it be pickled and copied, as the plain arrays it is made of."""
        labels = {name: np.asarray(values) for name, values in self.attributes.items()}
        return FaceSet, (self.images, self.subjects, self.landmarks, labels, self.names)

    def __sklearn_clone__(self) -> FaceSet:
        """Return itself: nothing about it can change."""
        return self

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(n_faces, height, width, channels)."""
        n, h, w, c = self.images.shape
        return n, h, w, c

    @property
    def n_subjects(self) -> int:
        """How many different people the set shows."""
        return len(np.unique(self.subjects))

    @property
    def person_specific(self) -> bool:
        """Whether no subject appears twice (Newton et al. 2005, Definition 2.4)."""
        return self.n_subjects == len(self)

    def take(self, indices: ArrayLike) -> FaceSet:
        """Return the faces at ``indices``, in that order."""
        rows = checking.rows(indices, len(self))
        return FaceSet(
            scratch.frozen(scratch.take(self.images, rows)),
            self.subjects[rows],
            None if self.landmarks is None else self.landmarks[rows],
            {name: values[rows] for name, values in self.attributes.items()},
            tuple(self.names[i] for i in rows),
        )

    def with_images(self, images: NDArray[Any]) -> FaceSet:
        """Return the same subjects and labels with other images."""
        return replace(self, images=images)

    def attribute(self, name: str) -> NDArray[np.str_]:
        """Return the labels called ``name``, or say which labels there are."""
        try:
            return self.attributes[name]
        except KeyError:
            have = ", ".join(sorted(self.attributes)) or "none"
            raise InputError(
                f"The faces carry no label {name!r} (labels they carry: {have}). "
                "Add a column of that name to labels.csv."
            ) from None

    def require_varied(self) -> None:
        """Raise where an image is constant: it shows nobody, and would count as a person."""
        flat = self.images.reshape(len(self), -1)
        constant = np.flatnonzero(flat.max(axis=1) == flat.min(axis=1))
        if len(constant):
            named = checking.shortened(self.names[i] for i in constant)
            raise InputError(f"Constant images show no face: {named}. Remove them and run again.")


def quantise(images: ArrayLike) -> ByteArray:
    """Clip to [0, 1] and round to 8 bits, the form in which every face is released."""
    source = np.asarray(images)
    rounded = scratch.empty(source.shape, np.uint8)
    for start in range(0, len(source), _BLOCK):  # doubles of a whole set would take eight times its bytes
        rows = slice(start, start + _BLOCK)
        rounded[rows] = np.rint(np.clip(source[rows].astype(np.float64), 0.0, 1.0) * 255.0)
    return rounded


def subject_means(codes: FloatArray, subjects: Sequence[Any] | NDArray[Any]) -> tuple[FloatArray, NDArray[Any]]:
    """Return the mean row of each subject, (n_subjects, n_features), and the subjects, sorted, (n_subjects,)."""
    who, index = np.unique(np.asarray(subjects), return_inverse=True)
    if len(who) == len(codes):
        return scratch.take(codes, np.argsort(index, kind="stable")), who
    means = scratch.empty((len(who), codes.shape[1]), np.float64)
    means[:] = 0.0
    np.add.at(means, index, codes)
    means /= np.bincount(index)[:, None]
    return means, who
