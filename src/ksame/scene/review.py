"""Contact sheets for the publisher: everyone, as they were and as they are now. They show originals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ksame.errors import OutputError
from ksame.faces.faceset import ByteArray
from ksame.models import Face, Recogniser, SFace, five_points
from ksame.scene.composing import Treatment
from ksame.scene.media import open_media
from ksame.scene.media.encoding import PICTURE_SUFFIXES
from ksame.scene.media.stills import save_picture
from ksame.scene.pipeline import Result
from ksame.scene.track.tracks import Track, Tracks

SIDE = 176
"""Pixels of one picture on a sheet."""
_ROUND = 2.2  # how much of the frame is shown, in sizes of the face
_COMPARED = 8  # frames of a person among which the worst is sought
_LABEL, _CAPTION, _GAP = 150, 18, 6
_WORDS = {Treatment.REPLACE: "replaced", Treatment.MASK: "masked", Treatment.KEEP: "kept"}
Spot = tuple[int, int, int]
"""Number of a file, number of a track in it, number of a frame."""


@dataclass(frozen=True, eq=False)
class Row:
    """One row of a sheet: what is written before it, and pictures with captions."""

    label: tuple[str, ...]
    pictures: Sequence[tuple[str, ByteArray]]


@dataclass(frozen=True, eq=False)
class _Pair:
    time: float
    before: ByteArray
    after: ByteArray
    like: float


def review_sheet(result: Result) -> ByteArray:
    """Show every person in the first, the worst and the last frame, before and after, side by side.

    The worst frame is one in which a mask had to stand in; where there is none, the one of a few in which a recogniser
    finds the person most like the original. Everything is read from the files that were written.
    """
    spots = {name: _spots(result, name) for name in result.everyone.people}
    wanted = {spot for mine in spots.values() for _, some in mine for spot in some}
    replaced = {name for name, plan in result.choice.plans.items() if plan.treatment is Treatment.REPLACE}
    pairs = dict(_pairs(result, wanted, replaced))
    rows = []
    for name, mine in spots.items():
        plan = result.choice.plans[name]
        what = "masked instead" if plan.stands_in else _WORDS[plan.treatment]
        extra = (f"cover {plan.cover.value}",) if plan.treatment is Treatment.REPLACE else ()
        pictures = []
        for title, some in mine:
            there = [pairs[spot] for spot in some if spot in pairs]
            if there:
                pair = max(there, key=lambda one: one.like)
                pictures += [(f"{title} {pair.time:.2f} s", pair.before), ("after", pair.after)]
        rows.append(Row((name, what, *extra), pictures))
    return sheet(rows)


def _spots(result: Result, name: str) -> list[tuple[str, list[Spot]]]:
    """Return where a person is looked at: first, candidates for the worst, last."""
    places = [(n, track) for n, local in result.everyone.keys(name) for track in result.casts[n].of(local)]
    places.sort(key=lambda place: (place[0], place[1].first))
    if not places:
        return []
    last = max(places, key=lambda place: (place[0], place[1].end))
    risks = [(n, one) for n, done in enumerate(result.done) for one in done.at_risk if one.person == name]
    worst: list[Spot] = []
    if risks:
        n, one = max(risks, key=lambda risk: len(risk[1]))
        frame = (one.first + one.last) // 2
        worst = [(n, track.number, frame) for m, track in places if m == n and track.at(frame) is not None]
    else:
        share = max(1, _COMPARED // len(places))
        worst = [(n, track.number, frame) for n, track in places[:_COMPARED] for frame in _even(track, share)]
    first = (places[0][0], places[0][1].number, places[0][1].first)
    end = (last[0], last[1].number, last[1].end - 1)
    return [("first", [first])] if first == end else [("first", [first]), ("worst", worst), ("last", [end])]


def _even(track: Track, count: int) -> list[int]:
    rows = np.flatnonzero(track.meshed())
    if len(rows) == 0:
        rows = np.arange(len(track))
    return sorted({int(rows[i]) + track.first for i in np.linspace(0, len(rows) - 1, count).round().astype(int)})


def _pairs(result: Result, wanted: set[Spot], replaced: set[str]) -> Iterator[tuple[Spot, _Pair]]:
    """Read originals and outputs together, and cut out what is wanted."""
    recogniser = SFace()
    for number, done in enumerate(result.done):
        due: dict[int, list[Spot]] = defaultdict(list)
        for spot in wanted:
            if spot[0] == number:
                due[spot[2]].append(spot)
        if not due:
            continue
        last = max(due)
        before, after = (open_media(path).frames() for path in (done.job.source, done.job.destination))
        with closing(before), closing(after):  # type: ignore[type-var]  # they are generators
            for old, new in zip(before, after, strict=False):
                for spot in due.get(old.index, ()):
                    face = _sighting(result.casts[number], spot)
                    name = result.everyone.names[number, face.person]
                    like = _likeness(recogniser, old.pixels, new.pixels, face) if name in replaced else 0.0
                    yield spot, _Pair(old.time, crop(old.pixels, face.box), crop(new.pixels, face.box), like)
                if old.index >= last:
                    break


def _sighting(cast: Tracks, spot: Spot) -> Face:
    found = next(track for track in cast.tracks if track.number == spot[1]).at(spot[2])
    if found is None:
        raise ValueError("A spot lies in its track.")
    return found


def _likeness(recogniser: Recogniser, before: ByteArray, after: ByteArray, face: Face) -> float:
    """Return the cosine between a face before and after; 1 where it cannot be told."""
    if face.mesh is None:
        return 1.0
    points = five_points(face.mesh)
    return float(recogniser.embed(before, points) @ recogniser.embed(after, points))


def crop(pixels: ByteArray, box: tuple[float, float, float, float], side: int = SIDE) -> ByteArray:
    """Cut out a square about a box and bring it to ``side`` pixels; grey beyond the edges."""
    x, y, width, height = box
    reach = 0.5 * _ROUND * max(width, height)
    scale = side / (2 * reach)
    matrix = np.array([[scale, 0, side / 2 - scale * (x + width / 2)], [0, scale, side / 2 - scale * (y + height / 2)]])
    if scale < 1:  # the warp below does not average
        pixels = np.asarray(cv2.GaussianBlur(pixels, (0, 0), 0.45 / scale), dtype=np.uint8)
    cut = cv2.warpAffine(pixels, matrix, (side, side), flags=cv2.INTER_LINEAR, borderValue=(128, 128, 128))
    return np.asarray(cut, dtype=np.uint8)


def sheet(rows: Sequence[Row]) -> ByteArray:
    """Lay rows out on white."""
    columns = max((len(row.pictures) for row in rows), default=0)
    height = SIDE + _CAPTION + _GAP
    picture = Image.new("RGB", (_LABEL + columns * (SIDE + _GAP) + _GAP, max(1, len(rows)) * height + _GAP), "white")
    pen = ImageDraw.Draw(picture)
    large, small = ImageFont.load_default(20), ImageFont.load_default(12)
    if not rows:
        pen.text((_GAP, _GAP), "Nobody was found.", fill="black", font=large)
    for i, row in enumerate(rows):
        top = _GAP + i * height
        for j, line in enumerate(row.label):
            pen.text((_GAP, top + (0 if j == 0 else 12 + 16 * j)), line, fill="black", font=small if j else large)
        for j, (caption, pixels) in enumerate(row.pictures):
            left = _LABEL + j * (SIDE + _GAP)
            picture.paste(Image.fromarray(pixels), (left, top))
            pen.text((left, top + SIDE + 2), caption, fill="black", font=small)
    return np.array(picture, dtype=np.uint8)


def write_sheet(pixels: ByteArray, path: Path) -> None:
    """Write a sheet, readable by its owner only; it appears whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.touch(mode=0o600)
        part.chmod(0o600)
        save_picture(pixels, part, PICTURE_SUFFIXES[path.suffix.lower()])
        part.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: the contact sheet cannot be written ({error.strerror}).") from error
    finally:
        part.unlink(missing_ok=True)
