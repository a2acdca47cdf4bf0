"""Who holds which pixels of a frame: one person, or several together where their regions overlap.

What two people share opens only with the keys of both, so that opening one of them never shows the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ksame.errors import OutputError
from ksame.scene.media import Frame
from ksame.scene.render import Renderer, filled_parts, owned_parts
from ksame.scene.render.changed import Part
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

    Parameters
    ----------
    touched : ndarray of shape (height, width), optional
        What was changed; without it, all that may have been changed is held.
    size : (int, int)
        Rows and columns of blocks: those of the coarsest plane.
    names : mapping of name in the file to name in the batch

    Raises
    ------
    OutputError
        When a pixel was changed that nobody would hold: it could never be restored.
    """
    shape = frame.pixels.shape[:2]
    steps = (-(-shape[0] // size[0]), -(-shape[1] // size[1]))
    labels = np.zeros(size, dtype=np.int32)
    sets: list[Holders] = [()]
    for person, part in owned_parts(renderer, frame):
        _add(labels, sets, names[person], _blocks(part, touched, steps))
    filled = np.zeros(size, dtype=bool)
    for part in filled_parts(shape, renderer.plan(frame.index, frame.time).filled):
        window, blocks = _blocks(part, None, steps)
        filled[window] |= blocks
    labels[filled] = 0
    if touched is not None:
        _, changed = _blocks(((slice(0, shape[0]), slice(0, shape[1])), touched), None, steps)
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


def _blocks(part: Part, touched: NDArray[np.bool_] | None, steps: Sequence[int]) -> Part:
    """Return the blocks that some pixels of a window lie in."""
    (rows, columns), mask = part
    if touched is not None:
        mask = mask & touched[rows, columns]
    if list(steps) == [1, 1]:
        return (rows, columns), mask
    window = tuple(
        slice(each.start // step, -(-each.stop // step)) for each, step in zip((rows, columns), steps, strict=True)
    )
    padded = np.zeros([(each.stop - each.start) * step for each, step in zip(window, steps, strict=True)], dtype=bool)
    top, left = rows.start - window[0].start * steps[0], columns.start - window[1].start * steps[1]
    padded[top : top + mask.shape[0], left : left + mask.shape[1]] = mask
    height, width = (length // step for length, step in zip(padded.shape, steps, strict=True))
    return (window[0], window[1]), np.asarray(padded.reshape(height, steps[0], width, steps[1]).any(axis=(1, 3)))


def opened(holders: Iterable[Holders], people: Iterable[str]) -> Iterator[Holders]:
    """Yield the sets of holders who are all among these people."""
    known = set(people)
    return (each for each in holders if set(each) <= known)
