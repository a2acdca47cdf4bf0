"""Boxes that another detector found, or a person drew: read strictly from CSV, JSON or COCO, and filled as rectangles.

A box says its frame, counted from 0, and x, y, width and height in pixels of the upright picture. It is there in that
frame alone, unless the file says more: rows with the same ``interpolate`` are one box, which moves straight between.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, RootModel

from ksame.errors import InputError
from ksame.files import sha256_of
from ksame.privacy.documents import read_bytes, read_document
from ksame.scene.media.regions import Box, touches

_MOST_FRAMES = 1 << 24
_MOST_BOXES = 1 << 22  # in memory, those between others included
_FAR = 1e6  # pixels
_SIZE, _CORNERS = ("x", "y", "width", "height"), ("x1", "y1", "x2", "y2")
_EXPECTED = f"frame and {','.join(_SIZE)} (or {','.join(_CORNERS)})"

_Number = Annotated[float, Field(strict=True)]
_Whole = Annotated[int, Field(strict=True)]


class _Foreign(BaseModel):
    """What other programs write; names that are not known stand for nothing that is filled."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class _Entry(_Foreign):
    frame: _Whole | None = None
    image_id: _Whole | None = None
    file: str | None = None
    bbox: Annotated[list[_Number], Field(min_length=4, max_length=4)] | None = None
    x: _Number | None = None
    y: _Number | None = None
    width: _Number | None = None
    height: _Number | None = None
    x1: _Number | None = None
    y1: _Number | None = None
    x2: _Number | None = None
    y2: _Number | None = None
    interpolate: str | None = None


class _List(RootModel[list[_Entry]]):
    pass


class _Image(_Foreign):
    id: _Whole
    file_name: str
    frame_id: _Whole | None = None


class _Annotation(_Foreign):
    image_id: _Whole
    bbox: Annotated[list[_Number], Field(min_length=4, max_length=4)]


class _Coco(_Foreign):
    images: list[_Image]
    annotations: list[_Annotation]


@dataclass(frozen=True)
class _Row:
    """One box as the file has it."""

    where: str  # in the file
    file: str | None
    frame: int
    box: Box
    track: str | None = None


@dataclass(frozen=True, eq=False)
class GivenBoxes:
    """Boxes by the file that they are for, which is None where the only one is meant, and by frame."""

    path: Path  # where they were read from
    files: Mapping[str | None, Mapping[int, Sequence[Box]]] = field(repr=False)
    digest: str  # of what was read

    def __len__(self) -> int:
        return sum(len(boxes) for frames in self.files.values() for boxes in frames.values())

    def of(self, source: Path, n_frames: int) -> Mapping[int, Sequence[Box]]:
        """Return the boxes for a source, by frame; refuse those of frames that it does not have."""
        frames: dict[int, list[Box]] = {}
        for given in (given for name, given in self.files.items() if _means(name, source)):
            for frame, boxes in given.items():
                frames.setdefault(frame, []).extend(boxes)
        if frames and max(frames) >= n_frames:
            raise InputError(
                f"{self.path}: there is a box in frame {max(frames)}, but {source} has {n_frames} frames, counted from "
                "0. Were these boxes made for another recording?"
            )
        return frames

    def check(self, sources: Mapping[Path, tuple[int, int]]) -> None:
        """Refuse boxes for other files than the sources, which have sizes, or outside of their pictures."""
        for name, frames in self.files.items():
            meant = [source for source in sources if _means(name, source)]
            if len(meant) != 1 and name is None:
                raise InputError(f"{self.path}: there are {len(sources)} files. Say in 'file' which box is for which.")
            if len(meant) != 1:
                why = "is none of the files" if not meant else f"may be {' or '.join(map(str, meant))}"
                raise InputError(f"{self.path}: there is a box for {name!r}, which {why}. Name the files as they are.")
            width, height = sources[meant[0]]
            for frame, box in ((frame, box) for frame, boxes in frames.items() for box in boxes):
                if not touches(box, (width, height)):
                    told = ",".join(f"{value:g}" for value in box)
                    raise InputError(
                        f"{self.path}: the box {told} in frame {frame} lies outside of the {width}x{height} pixels of "
                        f"{meant[0]}. Were these boxes made for another size?"
                    )


def _means(name: str | None, source: Path) -> bool:
    """Tell whether a name in a file of boxes may mean a source: it is the end of its path."""
    parts = () if name is None else PurePath(name).parts
    return source.absolute().parts[len(source.absolute().parts) - len(parts) :] == parts


def read_boxes(path: Path) -> GivenBoxes:
    """Read boxes; raises InputError, with the line or entry, when the file is not understood."""
    data = read_bytes(path, "the file of boxes")
    try:
        rows = list(_from_json(data) if data.lstrip()[:1] in (b"[", b"{") else _from_csv(data))
        if not rows:
            raise InputError("there is no box in it. Leave --boxes out, or give those that were found.")
        if all(max(abs(value) for value in row.box) <= 1 for row in rows):
            raise InputError(f"{rows[0].where}: the boxes are fractions of the picture. Give pixels.")
        return GivenBoxes(path, _gathered(rows), sha256_of(path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _from_csv(data: bytes) -> Iterator[_Row]:
    try:
        table = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True, restkey="")
        names = [name.strip().lower() for name in table.fieldnames or ()]
        if len(set(names)) != len(names):
            raise InputError("line 1: a column has the name of another.")
        table.fieldnames = names
        if not ({*_SIZE} <= {*names} or {*_CORNERS} <= {*names}) or not {"frame", "file"} & {*names}:
            raise InputError(
                f"line 1: expected columns {_EXPECTED}; 'file' and 'interpolate' if you like. Got {names}."
            )
        for row in table:
            where = f"line {table.line_num}"
            if None in row.values() or "" in row:
                raise InputError(f"{where}: expected {len(names)} values.")
            yield _row(where, {name: _value(name, text, where) for name, text in row.items() if text.strip()})
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"no table ({error}).") from error


def _value(name: str, text: str, where: str) -> Any:
    """Return a cell as what its column holds."""
    try:
        if name == "frame":
            return int(text)
        return float(text) if name in (*_SIZE, *_CORNERS) else text.strip()
    except ValueError:
        raise InputError(f"{where}: {name} must be a number. Got {text[:50]!r}.") from None


def _from_json(data: bytes) -> Iterator[_Row]:
    if data.lstrip()[:1] == b"[":
        for number, entry in enumerate(read_document(_List, data, f"a list of boxes with {_EXPECTED}").root):
            given = {name: value for name, value in entry if value is not None}
            if "image_id" in given:
                given.setdefault("frame", given["image_id"])
            yield _row(f"entry {number + 1}", given)
        return
    coco = read_document(_Coco, data, "boxes in the format of COCO")
    images = {image.id: image for image in coco.images}
    if len(images) != len(coco.images):
        raise InputError("two images have one id.")
    for number, annotation in enumerate(coco.annotations):
        where = f"annotation {number + 1}"
        if annotation.image_id not in images:
            raise InputError(f"{where}: there is no image {annotation.image_id}.")
        image = images[annotation.image_id]
        of_video = {"frame": image.frame_id}
        yield _row(
            where, {"bbox": annotation.bbox} | ({"file": image.file_name} if image.frame_id is None else of_video)
        )


def _row(where: str, given: Mapping[str, Any]) -> _Row:
    """Return a box from what is given of it by name."""
    shapes = [names for names in (_SIZE, _CORNERS, ("bbox",)) if all(name in given for name in names)]
    if len(shapes) != 1 or ("frame" not in given and "file" not in given):
        raise InputError(f"{where}: expected {_EXPECTED}, in one way.")
    values = given["bbox"] if shapes[0] == ("bbox",) else [given[name] for name in shapes[0]]
    x, y, width, height = (float(value) for value in values)
    if shapes[0] == _CORNERS:
        width, height = width - x, height - y
    if not all(math.isfinite(v) and abs(v) <= _FAR for v in (x, y, width, height)) or width <= 0 or height <= 0:
        raise InputError(f"{where}: a box needs a width and a height above 0, in pixels. Got {values}.")
    frame = given.get("frame", 0)
    if not 0 <= frame < _MOST_FRAMES:
        raise InputError(f"{where}: frames are counted from 0. Got {frame}.")
    return _Row(where, given.get("file"), frame, (x, y, width, height), given.get("interpolate"))


def _gathered(rows: Sequence[_Row]) -> dict[str | None, dict[int, list[Box]]]:
    files: dict[str | None, dict[int, list[Box]]] = {}
    moving: dict[tuple[str | None, str], list[_Row]] = {}
    for row in rows:
        files.setdefault(row.file, {}).setdefault(row.frame, []).append(row.box)
        if row.track is not None:
            moving.setdefault((row.file, row.track), []).append(row)
    left = _MOST_BOXES
    for (file, name), track in moving.items():
        for first, last in pairwise(sorted(track, key=lambda row: row.frame)):
            if first.frame == last.frame:
                raise InputError(f"{last.where}: {name[:50]!r} is in frame {last.frame} twice.")
            left -= last.frame - first.frame
            if left < 0:
                raise InputError(f"{last.where}: more than {_MOST_BOXES} boxes.")
            for frame in range(first.frame + 1, last.frame):
                share = (frame - first.frame) / (last.frame - first.frame)
                x, y, w, h = ((1 - share) * np.array(first.box) + share * np.array(last.box)).tolist()
                files[file].setdefault(frame, []).append((x, y, w, h))
    return files
