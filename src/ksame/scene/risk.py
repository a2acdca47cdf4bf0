"""Frames at risk: where a mask had to stand in for a new face, as stretches that a person can look through."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ksame.errors import InputError
from ksame.scene.composing import StandIn
from ksame.scene.track.tracks import Tracks

_LONGEST = 1 << 30  # frames
NO_FACE = "no face was found in this file"
"""Why a whole file is at risk: whoever is there after all is as they were."""
COLUMNS = ("file", "person", "first_frame", "last_frame", "from_seconds", "to_seconds", "reason")
NOBODY, WHOLE_FILE = "-", ""
"""Stand for the person where a whole frame is concerned, and where a whole file is."""
DAMAGED = "the recording is damaged here; the whole frame is black"


@dataclass(frozen=True)
class AtRisk:
    """Consecutive frames in which a person was masked because they could not be replaced, or frames at risk as a whole.

    Attributes
    ----------
    person : str
        Or what stands for them.
    first, last : int
        Numbers of frames.
    start, end : float
        When these are shown, in seconds.
    reason : str
        One, or several that follow each other.
    """

    person: str
    first: int
    last: int
    start: float
    end: float
    reason: str

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def masked(self) -> bool:
        """Whether this is of a face that was masked: not of a whole frame or file."""
        return self.person not in (NOBODY, WHOLE_FILE)


def stretches(stand_ins: Iterable[StandIn], times: Sequence[float]) -> tuple[AtRisk, ...]:
    """Join stand-ins in consecutive frames.

    Parameters
    ----------
    stand_ins : iterable of StandIn
        In the order of their frames.
    times : sequence of float
        Of all frames, in seconds.

    Examples
    --------
    >>> found = stretches([StandIn(i, "P1", "profile") for i in (3, 4, 9)], [i / 10 for i in range(10)])
    >>> [(one.first, one.last, one.start, one.end) for one in found]
    [(3, 4, 0.3, 0.4), (9, 9, 0.9, 0.9)]
    """
    spans: dict[str, list[tuple[int, int, dict[str, None]]]] = {}
    for one in stand_ins:
        mine = spans.setdefault(one.person, [])
        if mine and one.frame - mine[-1][1] <= 1:
            first, _, reasons = mine[-1]
            mine[-1] = (first, one.frame, {**reasons, one.reason: None})
        else:
            mine.append((one.frame, one.frame, {one.reason: None}))
    found = [
        AtRisk(person, first, last, round(times[first], 3), round(times[last], 3), "; ".join(reasons))
        for person, mine in spans.items()
        for first, last, reasons in mine
    ]
    return tuple(sorted(found, key=lambda one: (one.first, one.person)))


def without_faces(cast: Tracks, times: Sequence[float]) -> tuple[AtRisk, ...]:
    """Return the whole file as one stretch if nobody is in it, else nothing."""
    if cast.tracks:
        return ()
    reason = "no face is left in the tracks" if cast.found else NO_FACE
    return (AtRisk(WHOLE_FILE, 0, len(times) - 1, round(times[0], 3), round(times[-1], 3), reason),)


def as_csv(files: Iterable[tuple[str, Sequence[AtRisk]]]) -> str:
    """Return a table of all stretches; ``files`` are names of outputs and what is at risk in each."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for name, risks in files:
        for one in risks:
            table.writerow((name, one.person, one.first, one.last, f"{one.start:.3f}", f"{one.end:.3f}", one.reason))
    return text.getvalue()


def from_csv(data: bytes) -> dict[str, list[AtRisk]]:
    """Read such a table; return what is at risk in each output.

    Raises
    ------
    InputError
        When it is no such table.

    Examples
    --------
    >>> table = as_csv([("a.mp4", [AtRisk("P1", 3, 4, 0.3, 0.4, "profile")])])
    >>> len(from_csv(table.encode())["a.mp4"][0])
    2
    """
    found: dict[str, list[AtRisk]] = {}
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8"), newline=""), strict=True))
        if not rows or tuple(rows[0]) != COLUMNS:
            raise ValueError(f"the first line must be {','.join(COLUMNS)}")
        for line, row in enumerate(rows[1:], start=2):
            name, person, first, last, start, end, reason = row
            one = AtRisk(person, int(first), int(last), float(start), float(end), reason)
            if not 0 <= one.first <= one.last < _LONGEST:
                raise ValueError(f"line {line}: frames {first} to {last}")
            found.setdefault(name, []).append(one)
    except (ValueError, csv.Error) as error:
        raise InputError(f"not a list of frames at risk ({error})") from error
    return found
