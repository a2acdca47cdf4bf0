"""Who holds which pixels of a frame: one person, or several together where their regions overlap.

What two people share opens only with the keys of both, so that opening one of them never shows the other.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ksame.errors import OutputError
from ksame.scene.media import Frame
from ksame.scene.media.planes import Part, coarser, plane_steps
from ksame.scene.render import Renderer, filled_parts, owned_parts
from ksame.scene.sealing.film import Blocks
from ksame.scene.track.tracks import in_order

Holders = tuple[str, ...]


def holders_in(
    renderer: Renderer,
    frame: Frame,
    touched: NDArray[np.bool_] | None,
    size: tuple[int, int],
    names: Mapping[str, str],
) -> dict[Holders, Blocks]:
    """Return the blocks of a frame by who holds them; each block has one set of holders, or none.

    ``touched``, (height, width), is what was changed; without it, all that may have been changed is held. There are as
    many blocks as values in the coarsest plane, whose ``size`` is given. ``names`` are from the file to the batch.
    Raises OutputError when a pixel was changed that nobody would hold: it could never be restored.
    """
    shape = frame.pixels.shape[:2]
    steps = plane_steps(shape, size)
    labels = np.zeros(size, dtype=np.int32)
    sets: list[Holders] = [()]
    for person, (window, mask) in owned_parts(renderer, frame):
        held = mask if touched is None else mask & touched[window]
        _add(labels, sets, names[person], coarser((window, held), steps))
    filled = np.zeros(size, dtype=bool)
    for part in filled_parts(shape, renderer.plan(frame.index, frame.time).filled):
        window, blocks = coarser(part, steps)
        filled[window] |= blocks
    labels[filled] = 0
    if touched is not None:
        _, changed = coarser(((slice(0, shape[0]), slice(0, shape[1])), touched), steps)
        if (changed & (labels == 0) & ~filled).any():
            raise OutputError(
                f"Frame {frame.index}: pixels were changed that the vault would not hold. Nothing is kept."
            )
    return {sets[label]: labels == label for label in np.unique(labels).tolist() if label}


def _add(labels: NDArray[np.int32], sets: list[Holders], name: str, part: Part) -> None:
    """Let somebody hold blocks too."""
    window, blocks = part
    there = labels[window]
    for label in np.unique(there[blocks]).tolist():
        if name in sets[label]:
            continue
        both = tuple(sorted({*sets[label], name}, key=in_order))
        if both not in sets:
            sets.append(both)
        there[blocks & (there == label)] = sets.index(both)
