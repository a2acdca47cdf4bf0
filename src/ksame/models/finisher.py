"""The finisher: a network that makes a photograph of a head from a drawing and from what surrounds it.

It never sees the head that it replaces: the square that it is given has a hole there. docs/model-card.md says what it
was trained on and what was measured.
"""

from __future__ import annotations

from functools import lru_cache, partial
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray
from ksame.models.runtime import on_gpu, session

SIZES = (128, 256, 512)
"""Sides of the squares that it was trained on, in pixels; at sizes between it is less steady from frame to frame."""

Image = NDArray[np.float32]


class Finisher:
    """The network; one object may be used from several threads.

    Parameters
    ----------
    device : str
        Where it runs: see :data:`ksame.models.runtime.DEVICES`.
    threads : int
        On the processor; 0 takes one per core.
    """

    def __init__(self, device: str = "auto", threads: int = 1) -> None:
        weights = (files("ksame.data") / "finisher.onnx").read_bytes()
        load = partial(session, weights, device=device, threads=threads, keeps_memory=True)
        first = load()
        # A GPU prepares itself anew whenever the size changes, so there it has a session for each.
        self._sessions = {size: load() if size != SIZES[0] and on_gpu(first) else first for size in SIZES}

    def finish(self, drawing: Image, surroundings: Image, known: Image) -> ByteArray:
        """Return the square with the head in it, (size, size, 3), in 8-bit colours.

        Parameters
        ----------
        drawing : ndarray of shape (size, size, 6)
            See :func:`ksame.heads.drawing.draw`.
        surroundings : ndarray of shape (size, size, 3)
            From -1 to 1; 0 where nothing is known.
        known : ndarray of shape (size, size)
            Where the surroundings are known, 0 or 1.
        """
        size = len(known)
        given = np.empty((1, 10, size, size), dtype=np.float32)
        given[0, :6], given[0, 6:9], given[0, 9] = drawing.transpose(2, 0, 1), surroundings.transpose(2, 0, 1), known
        network = self._sessions.get(size, self._sessions[SIZES[0]])
        blocks = np.asarray(network.run(None, {"given": given})[0])  # colours of 2 x 2 pixels, (1, 12, size/2, size/2)
        pixels = blocks.reshape(3, 2, 2, size // 2, size // 2).transpose(3, 1, 4, 2, 0)
        return np.ascontiguousarray(pixels).reshape(size, size, 3)


@lru_cache(maxsize=2)
def finisher(device: str = "auto") -> Finisher:
    """Return the network that comes with ksame, loaded once for each device."""
    return Finisher(device)
