"""What a person's edits of the tracks did to the faces that were found: who is left out, whose name is whose."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ksame.scene.track.tracks import Found, Track, Tracks, in_order


@dataclass(frozen=True)
class LeftOut:
    """Somebody who was found, and whom no track covers any more in some frames.

    Attributes
    ----------
    person : str
        The name under which they were found.
    first, last : int
        The first and the last of these frames.
    confirmed : bool
        Whether it surely is a face.
    """

    person: str
    first: int
    last: int
    confirmed: bool


def left_out(cast: Tracks) -> tuple[LeftOut, ...]:
    """Return who was found and is shown as they are, because no track has them any more.

    A face is covered where its middle lies in the box of any track.
    """
    bare: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for found in cast.found or ():
        covered = np.zeros(len(found.boxes), dtype=bool)
        for track in cast.tracks:
            rows, hit = _covered(found, track)
            covered[rows] |= hit
        bare[found.person] += [(found.first + int(i), found.confirmed) for i in np.flatnonzero(~covered)]
    return tuple(
        LeftOut(name, min(frames)[0], max(frames)[0], any(sure for _, sure in frames))
        for name, frames in sorted(bare.items(), key=lambda item: in_order(item[0]))
        if frames
    )


def misnamed(cast: Tracks) -> dict[str, str]:
    """Return names that now mean somebody else: the name in the tracks, and who had been found as whom.

    Two people made one, and one made two, keep their names as long as somebody who was found by a name still has it.
    """
    origins: dict[str, Counter[str]] = defaultdict(Counter)
    for track in cast.tracks:
        for found in cast.found or ():
            origins[track.person][found.person] += int(_covered(found, track)[1].sum())
    known = {found.person for found in cast.found or ()}
    wrong = {}
    for name, seen in origins.items():
        if name in known and not seen[name]:
            wrong[name] = seen.most_common(1)[0][0] if sum(seen.values()) else ""
    return wrong


def _covered(found: Found, track: Track) -> tuple[slice, NDArray[np.bool_]]:
    """Return the rows of a found face that a track has too, and in which of them its box covers the face's middle."""
    first, end = max(found.first, track.first), min(found.first + len(found.boxes), track.end)
    if first >= end:
        return slice(0), np.zeros(0, dtype=bool)
    rows = slice(first - found.first, end - found.first)
    theirs = track.boxes[first - track.first : end - track.first]
    middle = found.boxes[rows, :2] + found.boxes[rows, 2:] / 2
    inside = (middle >= theirs[:, :2]) & (middle <= theirs[:, :2] + theirs[:, 2:])
    return rows, np.asarray(inside.all(axis=1))
