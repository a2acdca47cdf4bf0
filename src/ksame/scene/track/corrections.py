"""What a person corrects in tracks: who is who, where a track ends, a face that was missed, one that is none.

Each correction returns new tracks; what was found (``originals``) is never changed, so that whoever is left out is
noticed. ``docs/scenes.md`` says how the same is done by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ksame.errors import UsageError
from ksame.models import Source
from ksame.scene.media.regions import Box, touches
from ksame.scene.track.join import unit_mean
from ksame.scene.track.storage import SHAPES, new_arrays
from ksame.scene.track.tracks import Person, Track, Tracks, in_order

_VIEWS = 2  # best frames that a person gets who has none: as many as are looked at for a surrogate


def renamed(tracks: Tracks, names: Mapping[str, str]) -> Tracks:
    """Return the tracks with other names for people; those who get one name become one person.

    Examples
    --------
    >>> renamed(Tracks((8, 8), 1, (Person("P1", None),), ()), {"P1": "guest"}).people[0].name
    'guest'
    """
    groups: dict[str, list[Person]] = {}
    for person in tracks.people:
        groups.setdefault(names.get(person.name, person.name), []).append(person)
    people = tuple(_joined(name, group) for name, group in sorted(groups.items(), key=lambda item: in_order(item[0])))
    moved = tuple(replace(track, person=names.get(track.person, track.person)) for track in tracks.tracks)
    return replace(tracks, people=people, tracks=moved)


def split(tracks: Tracks, number: int, frame: int, person: str) -> Tracks:
    """Give a track, from a frame on, to somebody else; at its first frame, all of it."""
    track = _track(tracks, number)
    if not track.first <= frame < track.end:
        raise UsageError(
            f"Track {number} is in frames {track.first} to {track.end - 1}. Choose one of them. Got {frame}."
        )
    if person == track.person:
        raise UsageError(f"Track {number} is {person} already. Choose another name.")
    moved, kept = replace(track, person=person), []
    if frame > track.first:
        moved = replace(_cut(track, frame, track.end), number=_free_number(tracks), person=person)
        kept = [_cut(track, track.first, frame)]
    best = [pair for each in tracks.people for pair in each.best if pair[0] == number and pair[1] >= frame]
    people = {each.name: replace(each, best=tuple(p for p in each.best if p not in best)) for each in tracks.people}
    owner = people.get(person, Person(person, None))
    people[person] = replace(owner, best=(*owner.best, *((moved.number, at) for _, at in best)))
    others = [each for each in tracks.tracks if each.number != number]
    return _settled(tracks, list(people.values()), [*others, *kept, moved])


def draw(tracks: Tracks, box: Box, first: int, last: int, person: str) -> Tracks:
    """Add a box, the same in all frames from ``first`` to ``last``, for a face that was not found. It is masked."""
    if not 0 <= first <= last < tracks.n_frames:
        raise UsageError(f"Frames go from 0 to {tracks.n_frames - 1}. Got {first} to {last}.")
    if not (box[2] > 0 and box[3] > 0 and touches(box, tracks.size)):
        raise UsageError(f"A box must lie in the picture of {tracks.size[0]} x {tracks.size[1]} pixels. Got {box}.")
    arrays = new_arrays(last - first + 1)
    arrays["boxes"][:] = box
    arrays["points"][:] = np.nan
    arrays["source"][:] = Source.ADDED
    track = Track(_free_number(tracks), person, first, **arrays, confirmed=True)
    known = person in {each.name for each in tracks.people}
    people = tracks.people if known else (*tracks.people, Person(person, None))
    return _settled(tracks, people, [*tracks.tracks, track])


def discard(tracks: Tracks, number: int) -> Tracks:
    """Throw a track away: what it shows is no face, and stays as it is."""
    _track(tracks, number)
    return _settled(tracks, tracks.people, [track for track in tracks.tracks if track.number != number])


def _track(tracks: Tracks, number: int) -> Track:
    for track in tracks.tracks:
        if track.number == number:
            return track
    raise UsageError(f"There is no track {number} any more.")


def _free_number(tracks: Tracks) -> int:
    return max((track.number for track in tracks.tracks), default=0) + 1


def _cut(track: Track, first: int, end: int) -> Track:
    rows = slice(first - track.first, end - track.first)
    return replace(track, first=first, **{name: getattr(track, name)[rows] for name in SHAPES})


def _joined(name: str, people: Sequence[Person]) -> Person:
    """Make one person of several."""
    if len(people) == 1:
        return replace(people[0], name=name)
    embedding = unit_mean([person.embedding for person in people if person.embedding is not None])
    return Person(name, embedding, tuple(pair for person in people for pair in person.best))


def _settled(tracks: Tracks, people: Sequence[Person], changed: Sequence[Track]) -> Tracks:
    """Return tracks in order, with the people who have any; each has best frames where there is a mesh."""
    kept = []
    for person in sorted(people, key=lambda person: in_order(person.name)):
        theirs = [track for track in changed if track.person == person.name]
        if theirs:
            numbers = {track.number for track in theirs}
            best = tuple(pair for pair in person.best if pair[0] in numbers) or _most_frontal(theirs)
            kept.append(replace(person, best=best))
    ordered = tuple(sorted(changed, key=lambda track: track.number))
    return replace(tracks, people=tuple(kept), tracks=ordered, originals=tracks.as_found)


def _most_frontal(tracks: Sequence[Track]) -> tuple[tuple[int, int], ...]:
    """Return the frames in which a head is turned least, of those with a mesh."""
    turned = [
        (float(abs(track.poses[row]).max()), track.number, track.first + int(row))
        for track in tracks
        for row in np.flatnonzero(track.meshed())
    ]
    return tuple((number, frame) for _, number, frame in sorted(turned)[:_VIEWS])
