"""Where live pictures go: numbered file segments, or a virtual camera."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import av
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ksame.arrays import ByteArray
from ksame.errors import OutputError, UsageError
from ksame.files import atomic_path, make_folder
from ksame.scene.media.output import output_errors
from ksame.scene.media.threads import EncoderThread

_CAMERA = "camera"
_QUEUE = 16  # frames that may wait to be encoded; after that those to come wait too
_TIME_BASE = Fraction(1, 1000)
_SEGMENT = re.compile(r"(\d{6,})\.mp4")
_EXAMPLES = "a folder such as out/, camera, camera:/dev/video2, or http://127.0.0.1:8089"
_OPTIONS = {"preset": "superfast", "tune": "zerolatency", "crf": "20", "threads": "1"}


class LiveSink(AbstractContextManager["LiveSink"], Protocol):
    """Shows frames; leaving it finishes what was begun."""

    def show(self, pixels: ByteArray, time: float) -> None:
        """Show a frame, (height, width, 3), that was captured at ``time``, in seconds of a clock that never stops."""
        ...


class SegmentSink(AbstractContextManager["SegmentSink"]):
    """Numbered files of some seconds each, without sound; each takes its name when it is complete.

    Numbers go on after those that are there; nothing is overwritten. Frames are encoded in a thread of their own, so
    that those to come do not wait for the disk.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        make_folder(folder)
        self._folder, self._seconds = folder, seconds
        numbers = [int(match[1]) for file in folder.iterdir() if (match := _SEGMENT.fullmatch(file.name))]
        self._number, self._start = max(numbers, default=0), 0.0
        self._segment: ExitStack | None = None  # that is being written
        self._encode: Callable[[ByteArray, float], None]  # into it
        self._thread = EncoderThread(self._write, _QUEUE)

    def show(self, pixels: ByteArray, time: float) -> None:
        """Let a frame be written; the segment that it would make too long is finished first.

        Errors of earlier frames may be raised here too.
        """
        self._thread.put((pixels, time))

    def _write(self, frame: tuple[ByteArray, float]) -> None:
        pixels, time = frame
        if time - self._start >= self._seconds:
            self._finish()
        if self._segment is None:
            self._number, self._start = self._number + 1, time
            with ExitStack() as stack:
                path = self._folder / f"{self._number:06d}.mp4"
                self._encode = stack.enter_context(_segment(path, pixels.shape))
                self._segment = stack.pop_all()
        try:
            self._encode(pixels, time - self._start)
        except BaseException as error:
            self._finish(error)
            raise

    def __exit__(self, *error: object) -> None:
        try:
            self._thread.close()
        finally:
            self._finish()

    def _finish(self, error: BaseException | None = None) -> None:
        """Let the file take its name; after an error nothing is left of it."""
        segment, self._segment = self._segment, None
        if segment is not None:
            segment.__exit__(None if error is None else type(error), error, None)


@contextmanager
def _segment(path: Path, shape: tuple[int, ...]) -> Iterator[Callable[[ByteArray, float], None]]:
    """Give what encodes a frame at a time in seconds into a file, which takes its name in the end."""
    with (
        atomic_path(path, replace=False, constant_time=True) as part,
        output_errors(path),
        av.open(str(part), "w", format="mp4") as container,
    ):
        stream: VideoStream = container.add_stream("libx264", rate=30, options=_OPTIONS)
        stream.height, stream.width = shape[:2]
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = _TIME_BASE
        last = -1

        def encode(pixels: ByteArray, time: float) -> None:
            nonlocal last
            last = max(last + 1, round(time / _TIME_BASE))
            frame = VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = last, _TIME_BASE
            container.mux(stream.encode(frame))

        yield encode
        container.mux(stream.encode(None))


class CameraSink(AbstractContextManager["CameraSink"]):
    """A virtual camera that other programs see, through pyvirtualcam; without a device the first that is free."""

    def __init__(self, device: str | None) -> None:
        try:
            import pyvirtualcam
        except ImportError as error:
            raise UsageError(
                "A virtual camera needs pyvirtualcam. Install it with: pip install 'ksame[live]'"
            ) from error
        self._module: Any = pyvirtualcam
        self._device = device
        self._camera: Any = None

    def show(self, pixels: ByteArray, time: float) -> None:
        """Send a frame."""
        if self._camera is None:
            height, width = pixels.shape[:2]
            try:
                self._camera = self._module.Camera(width=width, height=height, fps=30, device=self._device)
            except RuntimeError as error:
                raise OutputError(
                    f"There is no virtual camera ({str(error).strip()}). Set one up first: v4l2loopback on Linux, OBS "
                    "on Windows and macOS."
                ) from error
        self._camera.send(pixels)

    def __exit__(self, *error: object) -> None:
        if self._camera is not None:
            self._camera.close()


def open_sink(sink: str, segment: float) -> LiveSink:
    """Return the sink of a name: a folder, ``camera``, ``camera:DEVICE``, or an address of a page on this machine."""
    name, _, device = sink.partition(":")
    if name == _CAMERA:
        return CameraSink(device or None)
    if "://" in sink:
        from ksame.live.page import PageSink

        parts = urlsplit(sink)
        try:
            port = parts.port
        except ValueError:
            port = None
        if parts.scheme != "http" or parts.path not in ("", "/") or port is None:
            raise UsageError(f"{sink}: unknown sink. Expected {_EXAMPLES}.")
        return PageSink(parts.hostname or "", port)
    path = Path(sink)
    if path.suffix or (path.exists() and not path.is_dir()):
        raise UsageError(f"{sink}: live pictures have no end, and go into segments. Expected {_EXAMPLES}.")
    return SegmentSink(path, segment)
