"""The face set: what every other room works on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ksame.errors import InputError

FloatArray = NDArray[np.float64]
ByteArray = NDArray[np.uint8]
IntArray = NDArray[np.intp]

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
        RGB (three channels) or grey (one channel) in [0, 1]; kept as float32. Integer images are scaled by the
        largest value of their type.
    subjects : sequence of length n_faces
        Who is in each image; kept as strings.
    landmarks : ndarray of shape (n_faces, n_points, 2 or 3), optional
        Points in pixel coordinates, x before y, the centre of the top left pixel at (0, 0); where a mesh gave it, a
        third coordinate towards the viewer, in pixels too.
    attributes : mapping of name to sequence of length n_faces, optional
        Labels such as gender or expression; kept as strings.
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
        images = np.asarray(self.images)
        if images.ndim != 4 or images.shape[3] not in (1, 3) or 0 in images.shape:
            raise InputError(
                "Face images must have shape (n_faces, height, width, 1 or 3) with at least one face and one pixel. "
                f"Got {images.shape}."
            )
        n = len(images)
        if np.issubdtype(images.dtype, np.integer):
            images = images / np.iinfo(str(images.dtype)).max
        if not np.isfinite(images).all():
            bad = np.flatnonzero(~np.isfinite(images).reshape(n, -1).all(axis=1))
            raise InputError(f"Face images must be finite. Images {_some(bad)} hold NaN or infinity.")
        if images.min() < 0 or images.max() > 1:
            raise InputError(
                f"Face images must lie in [0, 1]. Got values from {images.min():g} to {images.max():g}; "
                "divide by 255, or pass an integer array, which is scaled by its type."
            )
        if len(self.subjects) != n:
            raise InputError(f"Expected {n} subjects, one for each image. Got {len(self.subjects)}.")
        names = tuple(self.names) or tuple(f"face {i + 1}" for i in range(n))
        if len(names) != n:
            raise InputError(f"Expected {n} names, one for each image. Got {len(names)}.")
        attributes = {}
        for name, values in self.attributes.items():
            if len(values) != n:
                raise InputError(f"Attribute {name!r} must have {n} values, one for each image. Got {len(values)}.")
            attributes[name] = _read_only(np.array([str(v) for v in values], dtype=np.str_))
        landmarks = self.landmarks
        if landmarks is not None:
            landmarks = np.array(landmarks, dtype=np.float64)
            if landmarks.ndim != 3 or landmarks.shape[0] != n or landmarks.shape[2] not in (2, 3):
                raise InputError(f"Landmarks must have shape ({n}, n_points, 2 or 3). Got {landmarks.shape}.")
            if not np.isfinite(landmarks).all():
                raise InputError("Landmarks must be finite.")
            landmarks = _read_only(landmarks)
        frozen: dict[str, Any] = {
            "images": _read_only(np.array(images, dtype=np.float32)),
            "subjects": _read_only(np.array([str(s) for s in self.subjects], dtype=np.str_)),
            "landmarks": landmarks,
            "attributes": MappingProxyType(attributes),
            "names": names,
        }
        for key, value in frozen.items():
            object.__setattr__(self, key, value)

    def __len__(self) -> int:
        return len(self.images)

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
        index = np.asarray(indices)
        rows = np.flatnonzero(index) if index.dtype == bool else index.astype(np.intp)
        return FaceSet(
            self.images[rows],
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
            raise InputError(
                f"Constant images show no face: {_some([self.names[i] for i in constant])}. Remove them and run again."
            )


def quantise(images: ArrayLike) -> ByteArray:
    """Clip to [0, 1] and round to 8 bits, the form in which every face is released."""
    source = np.asarray(images)
    rounded = np.empty(source.shape, dtype=np.uint8)
    for start in range(0, len(source), _BLOCK):  # doubles of a whole set would take eight times its bytes
        rows = slice(start, start + _BLOCK)
        rounded[rows] = np.rint(np.clip(source[rows].astype(np.float64), 0.0, 1.0) * 255.0)
    return rounded


def subject_means(codes: FloatArray, subjects: Sequence[Any] | NDArray[Any]) -> tuple[FloatArray, NDArray[Any]]:
    """Average the rows of each subject.

    Returns
    -------
    means : ndarray of shape (n_subjects, n_features)
    who : ndarray of shape (n_subjects,)
        The subjects, sorted, one for each row of ``means``.
    """
    who, index = np.unique(np.asarray(subjects), return_inverse=True)
    if len(who) == len(codes):
        means = np.empty_like(codes)
        means[index] = codes
        return means, who
    means = np.zeros((len(who), codes.shape[1]))
    np.add.at(means, index, codes)
    return means / np.bincount(index)[:, None], who


def _some(items: Iterable[Any], most: int = 10) -> str:
    listed = [str(item) for item in items]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
