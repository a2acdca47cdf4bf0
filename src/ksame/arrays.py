"""Types of arrays, and rows by their label."""

from threading import Lock

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
ByteArray = NDArray[np.uint8]
IntArray = NDArray[np.intp]

READING = Lock()
"""To be held while arrays are read from a file: Python 3.11 may fail where two threads do (python/cpython#106905)."""


def members(labels: IntArray) -> list[IntArray]:
    """Return the rows that have each label, in the order of the labels."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
