"""Seals what a file hides while it is rendered: films of some hundred frames, each with the keys of who holds it.

Only public keys are needed for it. A piece is on the disk only when it is sealed; after an interruption the work goes
on at the end of the last complete stretch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ksame.files import read_json, write_atomic, write_json
from ksame.scene.media import Frame, Media
from ksame.scene.media.conversion import FrameConverter, OutputFrame
from ksame.scene.media.encoding import CONTAINERS, EncoderConfig, video_settings
from ksame.scene.render import Renderer
from ksame.scene.sealing.film import RGB, FilmWriter, Planes, Window, blocks_shape, planes_of
from ksame.scene.sealing.holders import Holders, holders_in
from ksame.vault import Recipients

_STRETCH = 240  # frames, as in a segment of the output


@dataclass(frozen=True)
class Piece:
    """A sealed film in the work folder, and whose keys it takes, the innermost first."""

    path: Path
    holders: Holders
    first: int  # frame


class Originals:
    """The frames of a source as they would have been written, had nothing been changed: exact, before any encoder."""

    def __init__(self, media: Media, destination: Path, encoding: EncoderConfig) -> None:
        self.pixel_format = RGB
        self._converter: FrameConverter | None = None
        if destination.suffix.lower() in CONTAINERS:
            bits = 8 if media.stream is None else media.stream.bits
            settings = video_settings(encoding.codec_for(destination, bits), encoding, media)
            if settings.colours is not None:
                self.pixel_format = settings.pixel_format
                self._converter = FrameConverter(media, settings.pixel_format, settings.colours)

    def planes(self, frame: Frame) -> Planes:
        """Return the values of a frame."""
        if self._converter is None:
            return planes_of(frame.pixels)
        nothing = np.zeros(frame.pixels.shape[:2], dtype=bool)
        return planes_of(self._converter.prepare(OutputFrame(frame.pixels, frame.native, nothing))())


class Sealer:
    """Seals the frames of one file in order.

    Sealed pieces of complete stretches that are in the folder are kept. ``names`` of people are from the file to the
    batch, ``recipients`` the public keys of everybody in the batch.
    """

    def __init__(
        self,
        folder: Path,
        originals: Originals,
        renderer: Renderer,
        names: Mapping[str, str],
        recipients: Mapping[str, str],
    ) -> None:
        self._folder = folder
        self._originals = originals
        self._renderer, self._names, self._recipients = renderer, names, recipients
        self._films: dict[Holders, FilmWriter] = {}
        self._sealed: list[tuple[str, Holders, int]] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._stretch = 0
        while self._listed(self._stretch):
            self._stretch += 1
        self.next_frame = self._listed(self._stretch - 1)["next"] if self._stretch else 0

    def _list(self, number: int) -> Path:
        return self._folder / f"{number:06d}.json"

    def _listed(self, number: int) -> dict[str, int]:
        return read_json(self._list(number))

    def add(self, frame: Frame, touched: NDArray[np.bool_] | None = None) -> None:
        """Seal what people hide in the next frame; without ``touched``, all that may have been changed."""
        if frame.index < self.next_frame:
            return
        planes = self._originals.planes(frame)
        size = frame.pixels.shape[:2]
        held = holders_in(self._renderer, frame, touched, blocks_shape(planes), self._names)
        for holders in list(self._films):
            if holders in held and not self._films[holders].window.holds(held[holders], size):
                self._seal(holders)
        nothing = np.zeros(blocks_shape(planes), dtype=bool)
        for holders, blocks in held.items():
            if holders not in self._films:
                window = Window.about(blocks, size)
                self._films[holders] = FilmWriter(frame.index, window, self._originals.pixel_format, size)
        for holders, film in self._films.items():
            film.add(planes, held.get(holders, nothing))
        self.next_frame = frame.index + 1
        if self.next_frame % _STRETCH == 0:
            self._complete()

    def _seal(self, holders: Holders) -> None:
        film = self._films.pop(holders)
        data = film.finish()
        for name in holders:
            data = Recipients((self._recipients[name],)).seal(data)
        file = f"{self._stretch:06d}-{len(self._sealed):06d}.age"
        write_atomic(self._folder / file, data, private=True)
        self._sealed.append((file, holders, film.first))

    def _complete(self) -> None:
        """Seal all films, and note that the stretch is complete."""
        for holders in list(self._films):
            self._seal(holders)
        write_json(self._list(self._stretch), {"next": self.next_frame, "pieces": self._sealed}, private=True)
        self._stretch, self._sealed = self._stretch + 1, []

    def finish(self) -> list[Piece]:
        """Return all pieces of the file."""
        if self._films or self._sealed or not self._stretch:
            self._complete()
        return pieces_in(self._folder)


def pieces_in(folder: Path) -> list[Piece]:
    """Return the pieces that lie in a folder, in order."""
    pieces = []
    for file in sorted(folder.glob("*.json")):
        listed = json.loads(file.read_text(encoding="utf-8"))
        pieces += [Piece(folder / name, tuple(holders), first) for name, holders, first in listed["pieces"]]
    return pieces
