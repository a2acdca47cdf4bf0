"""Contact sheets for the publisher: everyone, as they were and as they are now. They show originals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ksame.arrays import ByteArray
from ksame.errors import UsageError
from ksame.files import atomic_path
from ksame.models import Face, Recogniser, SFace, five_points
from ksame.pictures import PICTURE_SUFFIXES, save_picture
from ksame.scene.decide import Treatment
from ksame.scene.media import open_media
from ksame.scene.paths import require_folder
from ksame.scene.result import JobResult
from ksame.scene.track.tracks import Track

SIDE = 176
"""Pixels of one picture on a sheet."""
_SHOWN = 2.2  # how much of the frame is shown, in sizes of the face, by choice
_COMPARED = 8  # frames of a person among which the worst is sought, by choice
_LABEL, _CAPTION, _GAP = 150, 18, 6  # pixels of the layout
_WORDS = {Treatment.REPLACE: "replaced", Treatment.MASK: "masked", Treatment.KEEP: "kept"}
Place = tuple[int, int, int]
"""Number of a file, number of a track in it, number of a frame."""


PICTURES = (".png", ".jpg", ".jpeg")
"""Suffixes of a review sheet."""


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
    likeness: float


def review_sheet(result: JobResult) -> ByteArray:
    """Show every person in the first, the worst and the last frame, before and after, side by side.

    The worst frame is one in which somebody was masked instead; where there is none, the one of a few in which a
    recogniser finds the person most like the original. Everything is read from the files that were written.
    """
    places = {name: _places(result, name) for name in result.people.ordered}
    wanted = {place for titled in places.values() for _, candidates in titled for place in candidates}
    pairs = dict(_pairs(result, wanted))
    rows = []
    for name, titled in places.items():
        decision = result.plan.decisions[name]
        what = "masked instead" if decision.masked_instead else _WORDS[decision.treatment]
        cover = (f"cover {decision.cover.name}",) if decision.treatment is Treatment.REPLACE else ()
        pictures = []
        for title, candidates in titled:
            read = [pairs[place] for place in candidates if place in pairs]
            if read:
                worst = max(read, key=lambda pair: pair.likeness)
                pictures += [(f"{title} {worst.time:.2f} s", worst.before), ("after", worst.after)]
        rows.append(Row((name, what, *cover), pictures))
    return sheet(rows)


def _places(result: JobResult, name: str) -> list[tuple[str, list[Place]]]:
    """Return where a person is shown: first, candidates for the worst, last."""
    tracks = [(n, track) for n, local in result.people.keys(name) for track in result.tracks_of(n).of(local)]
    tracks.sort(key=lambda pair: (pair[0], pair[1].first))
    if not tracks:
        return []
    (first_file, first), (last_file, last) = tracks[0], max(tracks, key=lambda pair: (pair[0], pair[1].end))
    start = (first_file, first.number, first.first)
    end = (last_file, last.number, last.end - 1)
    if start == end:
        return [("first", [start])]
    risks = [(n, risk) for n, file in enumerate(result.files) for risk in file.at_risk if risk.person == name]
    if risks:
        n, risk = max(risks, key=lambda pair: len(pair[1]))
        frame = (risk.first + risk.last) // 2
        worst = [(n, track.number, frame) for m, track in tracks if m == n and track.at(frame) is not None]
    else:
        share = max(1, _COMPARED // len(tracks))
        worst = [(n, track.number, frame) for n, track in tracks[:_COMPARED] for frame in evenly(track, share)]
    return [("first", [start]), ("worst", worst), ("last", [end])]


def evenly(track: Track, count: int) -> list[int]:
    """Return frames of a track, evenly spread over those with a mesh."""
    rows = np.flatnonzero(track.meshed())
    if len(rows) == 0:
        rows = np.arange(len(track))
    return sorted({int(rows[i]) + track.first for i in np.linspace(0, len(rows) - 1, count).round().astype(int)})


def _pairs(result: JobResult, wanted: set[Place]) -> Iterator[tuple[Place, _Pair]]:
    """Read originals and outputs together, and cut out what is wanted."""
    recogniser = SFace()
    for number, file in enumerate(result.files):
        due: dict[int, list[Place]] = defaultdict(list)
        for place in wanted:
            if place[0] == number:
                due[place[2]].append(place)
        if not due:
            continue
        tracks = {track.number: track for track in result.tracks_of(number).tracks}
        before, after = (open_media(path).frames() for path in (file.source, file.output))
        with closing(before), closing(after):
            for old, new in islice(zip(before, after, strict=False), max(due) + 1):
                for place in due.get(old.index, ()):
                    face = tracks[place[1]].at(old.index)
                    if face is None:
                        raise ValueError("A place lies in its track.")
                    decision = result.plan.decisions[result.people.names[number, face.person]]
                    replaced = decision.treatment is Treatment.REPLACE
                    likeness = _likeness(recogniser, old.pixels, new.pixels, face) if replaced else 0.0
                    yield place, _Pair(old.time, crop(old.pixels, face.box), crop(new.pixels, face.box), likeness)


def _likeness(recogniser: Recogniser, before: ByteArray, after: ByteArray, face: Face) -> float:
    """Return the cosine between a face before and after; 1 where it cannot be told."""
    if face.mesh is None:
        return 1.0
    points = five_points(face.mesh)
    return float(recogniser.embed(before, points) @ recogniser.embed(after, points))


def crop(pixels: ByteArray, box: tuple[float, float, float, float]) -> ByteArray:
    """Cut out a square about a box and bring it to ``SIDE`` pixels; grey beyond the edges."""
    x, y, width, height = box
    reach = 0.5 * _SHOWN * max(width, height)
    scale = SIDE / (2 * reach)
    matrix = np.array([[scale, 0, SIDE / 2 - scale * (x + width / 2)], [0, scale, SIDE / 2 - scale * (y + height / 2)]])
    if scale < 1:  # the warp below does not average
        pixels = np.asarray(cv2.GaussianBlur(pixels, (0, 0), 0.45 / scale), dtype=np.uint8)
    cut = cv2.warpAffine(pixels, matrix, (SIDE, SIDE), flags=cv2.INTER_LINEAR, borderValue=(128, 128, 128))
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


def check_sheet(path: Path, *, may_exist: bool) -> None:
    """Refuse a path that cannot be that of a review sheet."""
    if path.suffix.lower() not in PICTURES:
        raise UsageError(f"{path}: the contact sheet is a picture; its name ends in {', '.join(PICTURES)}.")
    if path.exists() and not may_exist:
        raise UsageError(f"{path} exists. Choose another name, or replace it with --force.")
    require_folder(path)


def write_sheet(pixels: ByteArray, path: Path) -> None:
    """Write a sheet, readable by its owner only; it appears whole or not at all."""
    with atomic_path(path, private=True) as part:
        save_picture(pixels, part, PICTURE_SUFFIXES[path.suffix.lower()])
