"""One result: written beside its destination under another name, and renamed when it is complete."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import av
import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from ksame.errors import InputError, KsameError, OutputError, UsageError
from ksame.scene.media.assemble import assemble, count_packets
from ksame.scene.media.encoding import CONTAINERS, PICTURE_SUFFIXES, Encoding, video_settings
from ksame.scene.media.gif import assemble_gif
from ksame.scene.media.losses import sound_losses, video_losses
from ksame.scene.media.planes import Picture
from ksame.scene.media.segments import LENGTH, Segments
from ksame.scene.media.source import Media, Pixels
from ksame.scene.media.stills import PhotographSink, save_picture
from ksame.scene.media.wholeness import check_whole

STATE = "state.json"
_SCHEMA, _VERSION = "ksame-media-work", 1
_TIME = 315532800
"""Of all outputs: 1980, the first that every file system and archive can tell."""


class _Sink(Protocol):
    @property
    def next_frame(self) -> int: ...
    @property
    def losses(self) -> tuple[str, ...]: ...
    def write(self, picture: Picture) -> None: ...
    def finish(self, path: Path) -> None: ...
    def abandon(self) -> None: ...


class Output:
    """Writes one destination from the frames of a :class:`Media`, in order.

    What is written is decided by the destination's suffix: a photograph, a recording, or, without a suffix, a folder
    of numbered pictures. Nothing stands under the destination's name before all of it does.

    Parameters
    ----------
    media : Media
        The source, whose :meth:`Media.frames` the caller is reading: the frames written get their times.
    destination : Path
    encoding : Encoding
    work : Path
        Folder for the work in progress; removed at the end.
    resume : bool
        Go on where an interrupted run stopped. Otherwise earlier work is thrown away.
    force : bool
        Replace a destination that exists.
    run_key : str
        Everything else that decides the pixels, such as options and seed.
    length : int
        Frames in one piece of the work: what an interruption can cost.

    Raises
    ------
    UsageError
        When the destination exists, its suffix is not known, or the earlier work was for something else.
    OutputError
        When nothing can be written there.

    Attributes
    ----------
    next_frame : int
        Number of the frame that is to be written next.
    """

    def __init__(
        self,
        media: Media,
        destination: Path,
        encoding: Encoding,
        work: Path,
        *,
        resume: bool = False,
        force: bool = False,
        run_key: str = "",
        length: int = LENGTH,
    ) -> None:
        self._media = media
        self._destination = Path(destination)
        self._temporary = self._destination.with_name(f".{self._destination.name}.part")
        self._work = Path(work)
        self._force = force
        self._ended = False
        check_destination(media, self._destination, encoding, force=force)
        with _writing(self._destination):
            _try_writing(self._destination, self._temporary)
            self._prepare_work(encoding, run_key, length, resume=resume)
            self._sink = self._make_sink(encoding, length)

    @property
    def next_frame(self) -> int:
        """Number of the frame that is to be written next."""
        return self._sink.next_frame

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if not self._ended:
            self.abandon()

    @property
    def losses(self) -> tuple[str, ...]:
        """What of the source the output cannot hold, in words."""
        return self._sink.losses

    def write(self, pixels: Pixels, native: VideoFrame | None = None, touched: NDArray[np.bool_] | None = None) -> None:
        """Write the next frame, of shape (height, width, 3), uint8.

        Where ``touched``, (height, width), is given, only these pixels are taken from it, and all others from the
        source with all their bits: from ``native``, or from the photograph.

        Errors of earlier frames, which are encoded in a thread of their own, may be raised here too.
        """
        width, height = self._media.size
        if pixels.shape != (height, width, 3) or pixels.dtype != np.uint8:
            raise InputError(
                f"Frame {self.next_frame}: expected uint8 of shape {(height, width, 3)}, "
                f"got {pixels.dtype} of shape {pixels.shape}."
            )
        with _writing(self._destination):
            self._sink.write(Picture(pixels, native, touched))

    def finish(self) -> None:
        """Put everything together, rename it to its destination and remove the work in progress."""
        expected = self._media.n_frames
        if self._media.exact and self.next_frame != expected:
            raise OutputError(f"{self._destination}: {self.next_frame} of {expected} frames were written.")
        with _writing(self._destination):
            try:
                self._sink.finish(self._temporary)
                _settle(self._temporary, self._destination, force=self._force)
            except BaseException:
                _remove(self._temporary)
                raise
            self._ended = True
            shutil.rmtree(self._work, ignore_errors=True)

    def abandon(self) -> None:
        """Stop; only the folder with the work in progress stays."""
        self._ended = True
        self._sink.abandon()
        _remove(self._temporary)

    def _prepare_work(self, encoding: Encoding, run_key: str, length: int, *, resume: bool) -> None:
        state: dict[str, Any] = {
            "schema": _SCHEMA,
            "version": _VERSION,
            "source": self._media.fingerprint,
            "suffix": self._destination.suffix.lower(),
            "encoding": json.loads(json.dumps(asdict(encoding))),
            "options": run_key,
            "length": length,
        }
        file = self._work / STATE
        part = file.with_suffix(".part")  # all that is there where a run was killed as it began
        if file.is_file():
            if not resume:
                shutil.rmtree(self._work)
            else:
                _check_state(file, state)
        elif self._work.is_dir() and any(path != part for path in self._work.iterdir()):
            raise UsageError(f"{self._work}: the folder for work in progress is not empty. Choose another.")
        self._work.mkdir(parents=True, exist_ok=True)
        if not file.is_file():
            part.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
            part.replace(file)

    def _make_sink(self, encoding: Encoding, length: int) -> _Sink:
        suffix = self._destination.suffix.lower()
        if suffix in PICTURE_SUFFIXES:
            return PhotographSink(self._media, encoding, PICTURE_SUFFIXES[suffix])
        if suffix in CONTAINERS:
            return _FilmSink(self._media, encoding, self._destination, self._work, length)
        return _FolderSink(self._media, encoding, self._work)


def check_destination(media: Media, destination: Path, encoding: Encoding, *, force: bool) -> None:
    """Refuse a destination that cannot hold what is in ``media``, or that must not be replaced.

    Raises
    ------
    UsageError
    """
    suffix = destination.suffix.lower()
    if suffix and suffix not in PICTURE_SUFFIXES and suffix not in CONTAINERS:
        known = ", ".join([*CONTAINERS, *PICTURE_SUFFIXES])
        raise UsageError(f"{destination}: the suffix {suffix!r} is not known. Choose one of {known}.")
    if suffix in PICTURE_SUFFIXES and media.kind != "photograph":
        raise UsageError(f"{destination}: a picture cannot hold a recording. Choose .mp4, or a folder.")
    if suffix in CONTAINERS:
        encoding.codec_for(destination)
    if destination.exists():
        if destination.samefile(media.path):
            raise UsageError(f"{destination}: that is the source itself. Choose another place.")
        if not force:
            raise UsageError(f"{destination} exists. Choose another place, or replace it with --force.")


def check_wishes(
    media: Sequence[Media], encoding: Encoding, regions: Sequence[tuple[float, float, float, float]]
) -> None:
    """Refuse what would have no effect: metadata that no file has, and rectangles outside a picture.

    Raises
    ------
    UsageError
    """
    entries = sorted({entry for one in media for entry in one.entries})
    for name in encoding.keep_metadata:
        if name not in entries:
            there = ", ".join(entries) or "none"
            raise UsageError(f"There is no entry {name!r} in the metadata. Entries that can be kept: {there}.")
    for one in media:
        for x, y, width, height in regions:
            if not (x < one.size[0] and y < one.size[1] and x + width > 0 and y + height > 0):
                raise UsageError(
                    f"{one.path}: the --region {x:g},{y:g},{width:g},{height:g} lies outside its picture of "
                    f"{one.size[0]}x{one.size[1]} pixels. Correct it, or work on this file apart."
                )


class _FolderSink:
    def __init__(self, media: Media, encoding: Encoding, work: Path) -> None:
        self.losses = video_losses(media, 8)
        self._encoding = encoding
        self._work = work
        self._form, self._suffix = ("JPEG", ".jpg") if encoding.codec == "jpeg" else ("PNG", ".png")
        self.next_frame = 0
        while self._name(self.next_frame).is_file():
            self.next_frame += 1

    def _name(self, index: int) -> Path:
        return self._work / f"{index + 1:06d}{self._suffix}"

    def write(self, picture: Picture) -> None:
        part = self._name(self.next_frame).with_suffix(".part")
        save_picture(picture.pixels, part, self._form, self._encoding.quality)
        part.replace(self._name(self.next_frame))
        self.next_frame += 1

    def finish(self, path: Path) -> None:
        _remove(path)
        path.mkdir()
        for index in range(self.next_frame):
            source = self._name(index)
            try:
                os.link(source, path / source.name)
            except OSError:
                shutil.copyfile(source, path / source.name)

    def abandon(self) -> None:
        """Nothing is open."""


class _FilmSink:
    def __init__(self, media: Media, encoding: Encoding, destination: Path, work: Path, length: int) -> None:
        self._media = media
        self._encoding = encoding
        self._container = CONTAINERS[destination.suffix.lower()]
        codec = encoding.codec_for(destination, 8 if media.coding is None else media.coding.bits)
        settings = video_settings(codec, encoding, media)
        self._segments = Segments(work, media, settings, length)
        self.losses = (*video_losses(media, settings.bits), *sound_losses(media, encoding, self._container))

    @property
    def next_frame(self) -> int:
        return self._segments.next_frame

    def write(self, picture: Picture) -> None:
        self._segments.write(picture)

    def finish(self, path: Path) -> None:
        self._segments.finish()
        if self._container.muxer == "gif":
            assemble_gif(self._segments, self._media, path)
        else:
            assemble(self._segments, self._media, self._encoding, self._container, path)
        check_whole(path)
        count = count_packets(path)
        if count != self.next_frame:
            raise OutputError(f"{path}: {count} frames arrived of {self.next_frame} that were written.")

    def abandon(self) -> None:
        self._segments.abandon()


def _check_state(file: Path, state: dict[str, Any]) -> None:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{file}: not readable. Start anew without --resume.") from error
    for key, value in state.items():
        if found.get(key) != value:
            raise UsageError(
                f"{file.parent}: the work in progress there was for another {key}. "
                "Repeat the command as it was, or start anew without --resume."
            )


def _try_writing(destination: Path, temporary: Path) -> None:
    if not destination.parent.is_dir():
        raise OutputError(f"{destination}: the folder {destination.parent} does not exist. Make it first.")
    _remove(temporary)
    with temporary.open("xb"):
        pass
    temporary.unlink()


def _settle(temporary: Path, destination: Path, *, force: bool) -> None:
    """Flush to the disk, take the times away and rename."""
    for path in [*temporary.iterdir(), temporary] if temporary.is_dir() else [temporary]:
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        timeless(path)
    if destination.exists() and not force:
        raise UsageError(f"{destination} exists. Choose another place, or replace it with --force.")
    if temporary.is_dir() and destination.exists():
        old = destination.with_name(f".{destination.name}.old")
        _remove(old)
        destination.replace(old)
        temporary.replace(destination)
        _remove(old)
    else:
        temporary.replace(destination)


def timeless(path: Path) -> None:
    """Give a file or folder the same time as every other: the order of writing is that of the originals."""
    os.utime(path, (_TIME, _TIME))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def _writing(destination: Path) -> Iterator[None]:
    """Turn what the disk and the encoders say into an :class:`OutputError`."""
    try:
        yield
    except KsameError:
        raise
    except (OSError, av.FFmpegError) as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"{destination}: cannot be written ({reason}). Check the space and the permissions."
        ) from error
