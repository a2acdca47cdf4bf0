"""One result: written beside its destination under another name, and renamed when it is complete."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import av
import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from ksame.errors import InputError, KsameError, OutputError, UsageError
from ksame.files import settle, take_place
from ksame.pictures import PICTURE_SUFFIXES, Pixels
from ksame.scene.media.conversion import OutputFrame
from ksame.scene.media.encoding import CONTAINERS, EncoderConfig
from ksame.scene.media.image_writers import ImageSequenceWriter, PhotographWriter
from ksame.scene.media.metadata import GROUPS
from ksame.scene.media.muxing import VideoWriter
from ksame.scene.media.regions import Region, check_region
from ksame.scene.media.segments import WorkFolder
from ksame.scene.media.source import Media
from ksame.scene.media.voice import Voice

_Writer = PhotographWriter | VideoWriter | ImageSequenceWriter
"""Each goes on where an earlier run stopped."""


class Output:
    """Writes one destination from the frames of a :class:`Media`, in order.

    What is written is decided by the destination's suffix: a photograph, a recording, or, without a suffix, a folder of
    numbered pictures. Nothing stands under the destination's name before all of it does. The frames written get the
    times of the source, whose :meth:`Media.frames` the caller is reading. Raises UsageError when the destination exists
    and is not to be replaced (``force``), its suffix is not known, or the earlier work was for something else; an
    OutputError when nothing can be written there.
    """

    def __init__(
        self,
        media: Media,
        destination: Path,
        encoding: EncoderConfig,
        work: WorkFolder,
        *,
        force: bool = False,
        voice: Voice | None = None,
    ) -> None:
        if encoding.audio == "disguise" and voice is None:
            raise UsageError("To disguise a voice, say by which: pass Voice.drawn(seed).")
        self._media = media
        self._destination = Path(destination)
        self._temporary = _part(self._destination)
        self._work = work.path
        self._force = force
        self._ended = False
        check_destination(media, self._destination, encoding, force=force)
        with output_errors(self._destination):
            _try_writing(self._destination, self._temporary)
            work.prepare(media, self._destination, encoding)
            self._writer = _writer(media, self._destination, encoding, work, voice)

    @property
    def next_frame(self) -> int:
        """Number of the frame that is to be written next."""
        return self._writer.next_frame

    @property
    def losses(self) -> tuple[str, ...]:
        """What of the source the output cannot hold, in words."""
        return self._writer.losses

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._ended:
            self.abandon()

    def write(self, pixels: Pixels, native: VideoFrame | None = None, touched: NDArray[np.bool_] | None = None) -> None:
        """Write the next frame, of shape (height, width, 3), uint8.

        Where ``touched``, of shape (height, width), is given, only these pixels are taken from it, and all others from
        the source with all their bits: from ``native``, or from the photograph. Touched are all pixels whose original
        must not be published, changed or not.

        Errors of earlier frames, which are encoded in a thread of their own, may be raised here too.
        """
        width, height = self._media.size
        if pixels.shape != (height, width, 3) or pixels.dtype != np.uint8:
            raise InputError(
                f"Frame {self.next_frame}: expected uint8 of shape {(height, width, 3)}, "
                f"got {pixels.dtype} of shape {pixels.shape}."
            )
        with output_errors(self._destination):
            self._writer.write(OutputFrame(pixels, native, touched))

    def finish(self) -> None:
        """Put everything together, rename it to its destination and remove the work in progress."""
        expected = self._media.n_frames
        if self._media.exact and self.next_frame != expected:
            raise OutputError(f"{self._destination}: {self.next_frame} of {expected} frames were written.")
        with output_errors(self._destination):
            try:
                self._writer.finish(self._temporary)
                settle(self._temporary)
                _check_free(self._destination, force=self._force)
                take_place(self._temporary, self._destination)
            except BaseException:
                remove(self._temporary)
                raise
            self._ended = True
            shutil.rmtree(self._work, ignore_errors=True)

    def abandon(self) -> None:
        """Stop; only the folder with the work in progress stays."""
        self._ended = True
        if isinstance(self._writer, VideoWriter):  # the others have nothing open
            self._writer.abandon()
        remove(self._temporary)


@contextmanager
def open_part(
    media: Media, destination: Path, encoding: EncoderConfig, work: WorkFolder, part: range
) -> Iterator[VideoWriter]:
    """Give what writes some segments of a recording, by their numbers, into the folder of the work in progress.

    An :class:`Output` that is opened for the same goes on with them; until then several parts may be written at once.
    """
    with output_errors(destination):
        work.prepare(media, destination, encoding)
        writer = VideoWriter(media, encoding, destination, work, part=part)
        try:
            yield writer
            writer.complete()
        except BaseException:
            writer.abandon()
            raise


def _writer(media: Media, destination: Path, encoding: EncoderConfig, work: WorkFolder, voice: Voice | None) -> _Writer:
    suffix = destination.suffix.lower()
    if suffix in PICTURE_SUFFIXES:
        return PhotographWriter(media, encoding, PICTURE_SUFFIXES[suffix])
    if suffix in CONTAINERS:
        return VideoWriter(media, encoding, destination, work, voice if encoding.audio == "disguise" else None)
    return ImageSequenceWriter(media, encoding, work.path)


def check_destination(media: Media, destination: Path, encoding: EncoderConfig, *, force: bool) -> None:
    """Refuse a destination that cannot hold what is in ``media``, or that must not be replaced."""
    suffix = destination.suffix.lower()
    if suffix and suffix not in PICTURE_SUFFIXES and suffix not in CONTAINERS:
        known = ", ".join([*CONTAINERS, *PICTURE_SUFFIXES])
        raise UsageError(f"{destination}: the suffix {suffix!r} is not known. Choose one of {known}.")
    if suffix in PICTURE_SUFFIXES and media.kind != "photograph":
        raise UsageError(f"{destination}: a picture cannot hold a recording. Choose .mp4, or a folder.")
    if suffix in CONTAINERS:
        encoding.codec_for(destination)
    if destination.exists() and destination.samefile(media.path):
        raise UsageError(f"{destination}: that is the source itself. Choose another place.")
    _check_free(destination, force=force)


def _check_free(destination: Path, *, force: bool) -> None:
    if not destination.exists():
        return
    if not force:
        raise UsageError(f"{destination} exists. Choose another place, or replace it with --force.")
    if destination.is_dir() == bool(destination.suffix):
        kind, other = ("folder", "file") if destination.is_dir() else ("file", "folder")
        raise UsageError(f"{destination}: a {kind} of this name exists, and no {other} replaces it. Choose another.")


def check_requests(media: Sequence[Media], encoding: EncoderConfig, regions: Sequence[Region]) -> None:
    """Refuse what would have no effect: metadata that no file has, and rectangles outside a picture."""
    keys = sorted({key for source in media for key in source.metadata_keys})
    for name in encoding.keep_metadata:
        if name not in keys and name not in GROUPS:
            raise UsageError(
                f"There is no entry {name!r} in the metadata that may go over. Entries that can be kept: "
                f"{', '.join(keys) or 'none'}. Groups of them: {', '.join(GROUPS)}."
            )
    for source in media:
        for region in regions:
            longest = source.duration if source.exact else 2 * source.duration + 10  # it is an estimate
            check_region(region, str(source.path), source.size, None if source.kind == "photograph" else longest)


def _part(destination: Path) -> Path:
    return destination.with_name(f".{destination.name}.part")


def remove_part(destination: Path) -> None:
    """Remove what a process that was killed left of an output that nobody will write."""
    remove(_part(destination))


def _try_writing(destination: Path, temporary: Path) -> None:
    if not destination.parent.is_dir():
        raise OutputError(f"{destination}: the folder {destination.parent} does not exist. Make it first.")
    remove(temporary)
    temporary.touch(exist_ok=False)
    temporary.unlink()


def remove(path: Path) -> None:
    """Remove a file or folder, where there is one."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def output_errors(destination: Path) -> Iterator[None]:
    """Turn what the disk and the encoders say into an :class:`OutputError`."""
    try:
        yield
    except KsameError:
        raise
    except (OSError, av.FFmpegError) as error:
        raise OutputError(
            f"{destination}: cannot be written ({error.strerror or error}). Check the space and the permissions."
        ) from error
