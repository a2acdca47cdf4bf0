"""What a person's edits of the tracks did to the faces that were found: who is left out, whose name is whose."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ksame.errors import PrivacyWarning
from ksame.scene.track.tracks import OriginalTrack, Track, Tracks, in_order


@dataclass(frozen=True)
class LeftOut:
    """Somebody who was found, and whom no track covers any more in some frames."""

    person: str  # the name under which they were found
    first: int  # of these frames
    last: int
    confirmed: bool  # whether it surely is a face


def left_out(tracks: Tracks) -> tuple[LeftOut, ...]:
    """Return who was found and is shown as they are: in some frames, their middle lies in the box of no track."""
    bare: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for original in tracks.originals or ():
        covered = np.zeros(len(original.boxes), dtype=bool)
        for track in tracks.tracks:
            rows, hit = _covered(original, track)
            covered[rows] |= hit
        bare[original.person] += [(original.first + int(i), original.confirmed) for i in np.flatnonzero(~covered)]
    return tuple(
        LeftOut(name, min(frames)[0], max(frames)[0], any(confirmed for _, confirmed in frames))
        for name, frames in sorted(bare.items(), key=lambda item: in_order(item[0]))
        if frames
    )


def misnamed(tracks: Tracks) -> dict[str, str]:
    """Return names that now mean somebody else: the name in the tracks, and who had been found as whom.

    Two people made one, and one made two, keep their names as long as somebody who was found by a name still has it.
    """
    originals = tracks.originals or ()
    covers: dict[str, Counter[str]] = defaultdict(Counter)
    for track in tracks.tracks:
        for original in originals:
            covers[track.person][original.person] += int(_covered(original, track)[1].sum())
    return {
        name: counts.most_common(1)[0][0] if counts.total() else ""
        for name, counts in covers.items()
        if name in counts and not counts[name]
    }


def warn_of_edits(path: Path, tracks: Tracks) -> None:
    """Warn of whoever an edit of these tracks, read from a path, left out or renamed."""
    for face in left_out(tracks):
        what = face.person if face.confirmed else f"{face.person}, which is perhaps a face,"
        warnings.warn(
            f"{path}: {what} was found in frames {face.first} to {face.last}, and in some of them no track has them "
            "any more. There they stay as they are, and can be recognised.",
            PrivacyWarning,
            stacklevel=2,
        )
    for name, before in misnamed(tracks).items():
        who = f"who was found as {before}" if before else "nobody who was found"
        warnings.warn(
            f"{path}: {name} is now {who}. Look at the names with: ksame people --tracks.",
            PrivacyWarning,
            stacklevel=2,
        )


def _covered(original: OriginalTrack, track: Track) -> tuple[slice, NDArray[np.bool_]]:
    """Return the rows of an original that a track has too, and in which of them its box covers the face's middle."""
    first, end = max(original.first, track.first), min(original.first + len(original.boxes), track.end)
    if first >= end:
        return slice(0), np.zeros(0, dtype=bool)
    rows = slice(first - original.first, end - original.first)
    theirs = track.boxes[first - track.first : end - track.first]
    middle = original.boxes[rows, :2] + original.boxes[rows, 2:] / 2
    inside = (middle >= theirs[:, :2]) & (middle <= theirs[:, :2] + theirs[:, 2:])
    return rows, np.asarray(inside.all(axis=1))
