"""Checks of what a face set is made of, so that nothing is blackened, merged or reordered without notice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame import scratch
from ksame.errors import InputError

_SCALED = ("uint8", "uint16")


def pixels(images: Any) -> NDArray[np.float32]:
    """Return images of shape (n, height, width, 1 or 3) in [0, 1], which nobody can write into."""
    array = unmasked(images, "Face images")
    if array.ndim != 4 or array.shape[3] not in (1, 3) or 0 in array.shape:
        raise InputError(
            "Face images must have shape (n_faces, height, width, 1 or 3) with at least one face and one pixel. "
            f"Got {array.shape}."
        )
    if array.dtype.kind not in "biuf":
        raise InputError(f"Face images must be numbers. Got {array.dtype}.")
    whole = array.dtype.kind in "iu"
    (_require_white if whole else _require_in_range)(array)
    if array.dtype == np.float32 and scratch.is_frozen(array):
        return array
    kept = scratch.empty(array.shape, np.float32)
    for part in scratch.blocks(len(array), 8 * scratch.row_size(array)):  # integers become doubles on the way
        kept[part] = array[part] / np.iinfo(array.dtype.name).max if whole else array[part]
    return scratch.frozen(kept)


def _require_in_range(array: NDArray[Any]) -> None:
    """Refuse numbers that are no brightness."""
    bad = [
        part.start + int(i)
        for part in scratch.blocks(len(array), scratch.row_size(array))
        for i in np.flatnonzero(~np.isfinite(array[part]).reshape(part.stop - part.start, -1).all(axis=1))
    ]
    if bad:
        raise InputError(f"Face images must be finite. Images {shortened(bad)} hold NaN or infinity.")
    if array.min() < 0 or array.max() > 1:
        raise InputError(
            f"Face images must lie in [0, 1]. Got values from {array.min():g} to {array.max():g}; "
            "divide by 255, or pass a uint8 array, which is scaled by its type."
        )


def _require_white(array: NDArray[Any]) -> None:
    """Refuse integers of which it is not known what white is."""
    low, high = int(array.min()), int(array.max())
    if array.dtype.name not in _SCALED or (array.dtype.name == "uint16" and high <= 255):
        advice = "convert 8-bit pictures with images.astype('uint8')" if low >= 0 and high <= 255 else "divide by white"
        raise InputError(
            f"Face images of integers must be uint8 or uint16. Got {array.dtype.name} with values from {low} to "
            f"{high}; {advice}."
        )


def unmasked(values: Any, what: str) -> NDArray[Any]:
    """Return an array, or refuse a masked one of which something is masked: the values below would be shown."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise InputError(f"{what} are masked in places. Fill the places in, or leave the faces out.")
    return np.asarray(values)


def listed(values: Any, n: int, what: str) -> list[Any]:
    """Return n values in the order of the images."""
    if isinstance(values, (Set, Mapping, str, bytes)) or not isinstance(values, Iterable):
        raise InputError(
            f"Expected {what} as a list or an array, in the order of the images. Got {type(values).__name__}."
        )
    items = list(values)
    if len(items) != n:
        raise InputError(f"Expected {n} {what}, one for each image. Got {len(items)}.")
    if any(isinstance(value, (list, tuple, dict, set, np.ndarray)) for value in items if value is not np.ma.masked):
        raise InputError(f"Expected {what} with one value for each image. Got rows of several.")
    return items


def missing(value: Any) -> bool:
    """Tell whether a value says that there is none: None, NaN, NaT, pandas' NA, a masked one, or blanks."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, str):
        return not value.strip()
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA has no truth
        return True


def people(subjects: Any, n: int) -> NDArray[np.str_]:
    """Return who is in each image; everybody needs a name, or people without one would be taken for one person."""
    named = listed(subjects, n, "subjects")
    nameless = [i + 1 for i, subject in enumerate(named) if missing(subject)]
    if nameless:
        raise InputError(
            f"The subject of face {shortened(nameless)} is missing. Say who it is: people without a name would be "
            "taken for one person. Where each image shows somebody else, number them."
        )
    return np.array([str(subject) for subject in named], dtype=np.str_)


def labels(attributes: Any, n: int) -> dict[str, NDArray[np.str_]]:
    """Return labels as strings; a missing one is the empty string."""
    if not isinstance(attributes, Mapping):
        raise InputError(f"Expected attributes as a mapping of name to labels. Got {type(attributes).__name__}.")
    checked = {str(name): listed(values, n, f"labels {name!r}") for name, values in attributes.items()}
    return {
        name: np.array(["" if missing(value) else str(value) for value in values], dtype=np.str_)
        for name, values in checked.items()
    }


def points(landmarks: Any, n: int) -> NDArray[np.float64]:
    """Return landmarks of shape (n, n_points, 2 or 3)."""
    array = np.array(unmasked(landmarks, "Landmarks"), dtype=np.float64)
    if array.ndim != 3 or array.shape[0] != n or array.shape[2] not in (2, 3):
        raise InputError(f"Landmarks must have shape ({n}, n_points, 2 or 3). Got {array.shape}.")
    if not np.isfinite(array).all():
        raise InputError("Landmarks must be finite.")
    return array


def rows(indices: Any, n: int) -> NDArray[np.intp]:
    """Return indices of faces, given as such or as one truth value for each of n faces."""
    index = np.asarray(indices)
    if index.dtype == bool and index.shape == (n,):
        return np.flatnonzero(index)
    if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
        raise InputError("Faces are taken by indices or one truth value for each face.")
    return index.astype(np.intp)


def shortened(items: Iterable[Any], max_items: int = 10) -> str:
    """Return the first items of a list for a message."""
    texts = [str(item) for item in items]
    more = f" and {len(texts) - max_items} more" if len(texts) > max_items else ""
    return ", ".join(texts[:max_items]) + more
