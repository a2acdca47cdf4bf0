"""Who is shown: left as they are in at least one frame, for whatever reason, and so can be recognised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ksame.scene.composing import Plan, Treatment
from ksame.scene.track.edits import left_out
from ksame.scene.track.tracks import Tracks

KEPT, OUTSIDE, TAKEN_OUT = "kept", "before or after the span", "taken out of the tracks"


@dataclass(frozen=True)
class Shown:
    """Somebody who is left as they are in at least one frame.

    Attributes
    ----------
    person : str
    reason : str
    confirmed : bool
        Whether it surely is a face.
    """

    person: str
    reason: str
    confirmed: bool = True


def shown(
    cast: Tracks, plans: Mapping[str, Plan], span: tuple[float, float], times: Sequence[float]
) -> tuple[Shown, ...]:
    """Return who is left as they are in at least one frame of a file.

    Parameters
    ----------
    plans : mapping of person to Plan
        For everyone in the cast.
    span : (float, float)
        Seconds between which faces are changed.
    times : sequence of float
        Of all frames, in seconds.
    """
    at = np.asarray(times)
    outside = (at < span[0]) | (at > span[1])
    reasons: dict[str, list[str]] = {}
    for person in cast.people:
        if plans[person.name].treatment is Treatment.KEEP:
            reasons.setdefault(person.name, []).append(KEPT)
        elif any(outside[track.first : track.end].any() for track in cast.of(person.name)):
            reasons.setdefault(person.name, []).append(OUTSIDE)
    missing = left_out(cast)
    for one in missing:
        reasons.setdefault(one.person, []).append(TAKEN_OUT)
    in_doubt = cast.unsure | ({one.person for one in missing if not one.confirmed} - set(plans))
    return tuple(Shown(name, "; ".join(why), name not in in_doubt) for name, why in reasons.items())
