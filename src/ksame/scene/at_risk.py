"""Frames at risk, where a mask had to take the place of a new face; and people who are left as they are."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ksame.errors import InputError
from ksame.scene.decide import Decision, Treatment
from ksame.scene.render import MaskedInstead
from ksame.scene.track.edits import left_out
from ksame.scene.track.tracks import Tracks

_LONGEST = 1 << 30  # frames
NO_FACE = "no face was found in this file"
"""Why a whole file is at risk: whoever is there after all is as they were."""
COLUMNS = ("file", "person", "first_frame", "last_frame", "from_seconds", "to_seconds", "reason")
NOBODY, WHOLE_FILE = "-", ""
"""Stand for the person where a whole frame is concerned, and where a whole file is."""
DAMAGED = "the recording is damaged here; the whole frame is black"
KEPT, OUTSIDE, TAKEN_OUT = "kept", "before or after the span", "taken out of the tracks"


@dataclass(frozen=True)
class AtRisk:
    """Consecutive frames in which a person was masked because they could not be replaced, or frames at risk as a whole.

    Frames have numbers; they are shown from ``start`` to ``end``, in seconds.
    """

    person: str  # or what stands for them
    first: int
    last: int
    start: float
    end: float
    reason: str  # one, or several that follow each other

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def masked(self) -> bool:
        """Whether this is of a face that was masked: not of a whole frame or file."""
        return self.person not in (NOBODY, WHOLE_FILE)


def stretches(masked_instead: Iterable[MaskedInstead], times: Sequence[float]) -> tuple[AtRisk, ...]:
    """Join masks in consecutive frames; they come in the order of their frames, ``times`` are those of all frames.

    Examples
    --------
    >>> found = stretches([MaskedInstead(i, "P1", "profile") for i in (3, 4, 9)], [i / 10 for i in range(10)])
    >>> [(risk.first, risk.last, risk.start, risk.end) for risk in found]
    [(3, 4, 0.3, 0.4), (9, 9, 0.9, 0.9)]
    """
    spans: dict[str, list[tuple[int, int, dict[str, None]]]] = {}
    for mask in masked_instead:
        of_person = spans.setdefault(mask.person, [])
        if of_person and mask.frame - of_person[-1][1] <= 1:
            first, _, reasons = of_person[-1]
            of_person[-1] = (first, mask.frame, {**reasons, mask.reason: None})
        else:
            of_person.append((mask.frame, mask.frame, {mask.reason: None}))
    risks = [
        AtRisk(person, first, last, round(times[first], 3), round(times[last], 3), "; ".join(reasons))
        for person, of_person in spans.items()
        for first, last, reasons in of_person
    ]
    return tuple(sorted(risks, key=lambda risk: (risk.first, risk.person)))


def without_faces(tracks: Tracks, times: Sequence[float]) -> tuple[AtRisk, ...]:
    """Return the whole file as one stretch if nobody is in it, else nothing."""
    if tracks.tracks:
        return ()
    reason = "no face is left in the tracks" if tracks.originals else NO_FACE
    return (AtRisk(WHOLE_FILE, 0, len(times) - 1, round(times[0], 3), round(times[-1], 3), reason),)


def count_risks(files: Iterable[Sequence[AtRisk]]) -> dict[str, int]:
    """Count what is at risk in all files, under the names that certificates use.

    Examples
    --------
    >>> count_risks([[AtRisk("P1", 0, 4, 0, 0, ""), AtRisk("P2", 3, 6, 0, 0, ""), AtRisk("-", 9, 9, 0, 0, "")]])
    {'without_faces': 0, 'faces_masked_instead': 9, 'frames_at_risk': 7, 'frames_damaged': 1}
    """
    files = list(files)
    return {
        "without_faces": sum(any(risk.person == WHOLE_FILE for risk in risks) for risks in files),
        "faces_masked_instead": sum(len(risk) for risks in files for risk in risks if risk.masked),
        "frames_at_risk": sum(_frames_masked(risks) for risks in files),
        "frames_damaged": sum(len(risk) for risks in files for risk in risks if risk.person == NOBODY),
    }


def _frames_masked(risks: Sequence[AtRisk]) -> int:
    """Count the frames of one file in which anybody was masked instead, each once."""
    count, reached = 0, -1
    for risk in sorted((risk for risk in risks if risk.masked), key=lambda risk: risk.first):
        count += max(0, risk.last - max(risk.first, reached + 1) + 1)
        reached = max(reached, risk.last)
    return count


def as_csv(files: Iterable[tuple[str, Sequence[AtRisk]]]) -> str:
    """Return a table of all stretches; ``files`` are names of outputs and what is at risk in each."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for name, risks in files:
        for risk in risks:
            seconds = (f"{risk.start:.3f}", f"{risk.end:.3f}")
            table.writerow((name, risk.person, risk.first, risk.last, *seconds, risk.reason))
    return text.getvalue()


def from_csv(data: bytes) -> dict[str, list[AtRisk]]:
    """Read such a table; return what is at risk in each output.

    Raises InputError when it is no such table.

    Examples
    --------
    >>> table = as_csv([("a.mp4", [AtRisk("P1", 3, 4, 0.3, 0.4, "profile")])])
    >>> len(from_csv(table.encode())["a.mp4"][0])
    2
    """
    risks: dict[str, list[AtRisk]] = {}
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8"), newline=""), strict=True))
        if not rows or tuple(rows[0]) != COLUMNS:
            raise ValueError(f"the first line must be {','.join(COLUMNS)}")
        for line, row in enumerate(rows[1:], start=2):
            name, person, first, last, start, end, reason = row
            risk = AtRisk(person, int(first), int(last), float(start), float(end), reason)
            if not 0 <= risk.first <= risk.last < _LONGEST:
                raise ValueError(f"line {line}: frames {first} to {last}")
            risks.setdefault(name, []).append(risk)
    except (ValueError, csv.Error) as error:
        raise InputError(f"not a list of frames at risk ({error})") from error
    return risks


@dataclass(frozen=True)
class Shown:
    """Somebody who is left as they are in at least one frame, and so can be recognised."""

    person: str
    reason: str
    confirmed: bool = True  # surely a face


def shown(
    tracks: Tracks, decisions: Mapping[str, Decision], span: tuple[float, float], times: Sequence[float]
) -> tuple[Shown, ...]:
    """Return who is left as they are in at least one frame of a file.

    ``decisions`` are for all people of the tracks, faces are changed within the ``span`` of seconds, and ``times`` are
    those of all frames.
    """
    at = np.asarray(times)
    outside = (at < span[0]) | (at > span[1])
    reasons: dict[str, list[str]] = {}
    for person in tracks.people:
        if decisions[person.name].treatment is Treatment.KEEP:
            reasons.setdefault(person.name, []).append(KEPT)
        elif any(outside[track.first : track.end].any() for track in tracks.of(person.name)):
            reasons.setdefault(person.name, []).append(OUTSIDE)
    missing = left_out(tracks)
    for face in missing:
        reasons.setdefault(face.person, []).append(TAKEN_OUT)
    in_doubt = tracks.unconfirmed | ({face.person for face in missing if not face.confirmed} - set(decisions))
    return tuple(Shown(name, "; ".join(why), name not in in_doubt) for name, why in reasons.items())
