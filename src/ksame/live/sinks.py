"""Where live pictures go: numbered file segments, or a virtual camera."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import av
from av.container import OutputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ksame.arrays import ByteArray
from ksame.errors import OutputError, UsageError
from ksame.files import atomic_path, make_folder
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
        numbers = [int(found[1]) for file in folder.iterdir() if (found := _SEGMENT.fullmatch(file.name))]
        self._number = max(numbers, default=0)
        self._open: _Segment | None = None
        self._thread = EncoderThread(self._write, _QUEUE)

    def show(self, pixels: ByteArray, time: float) -> None:
        """Let a frame be written; the segment that it would make too long is finished first.

        Errors of earlier frames may be raised here too.
        """
        self._thread.put((pixels, time))

    def _write(self, frame: tuple[ByteArray, float]) -> None:
        pixels, time = frame
        if self._open is not None and time - self._open.start >= self._seconds:
            self._finish()
        if self._open is None:
            self._number += 1
            self._open = _Segment(self._folder / f"{self._number:06d}.mp4", pixels.shape, time)
        self._open.write(pixels, time)

    def __exit__(self, *error: object) -> None:
        try:
            self._thread.close()
        finally:
            self._finish()

    def _finish(self) -> None:
        segment, self._open = self._open, None
        if segment is not None:
            segment.finish()


class _Segment:
    """One file that is being written, under another name."""

    def __init__(self, path: Path, shape: tuple[int, ...], start: float) -> None:
        self.path, self.start = path, start
        self._last = -1
        self._failed = False
        with ExitStack() as stack:
            part = stack.enter_context(atomic_path(path, replace=False, constant_time=True))
            with _output_errors(path):
                self._container: OutputContainer = stack.enter_context(av.open(str(part), "w", format="mp4"))
                self._stream: VideoStream = self._container.add_stream("libx264", rate=30, options=_OPTIONS)
            self._stream.height, self._stream.width = shape[:2]
            self._stream.pix_fmt = "yuv420p"
            self._stream.codec_context.time_base = _TIME_BASE
            self._stack = stack.pop_all()

    def write(self, pixels: ByteArray, time: float) -> None:
        self._last = max(self._last + 1, round((time - self.start) / _TIME_BASE))
        self._guarded(lambda: self._encode(pixels))

    def finish(self) -> None:
        """Let the file take its name; where it could not be written nothing is left of it."""
        if self._failed:
            return
        self._guarded(lambda: self._container.mux(self._stream.encode(None)))
        with _output_errors(self.path):
            self._stack.close()

    def _encode(self, pixels: ByteArray) -> None:
        frame = VideoFrame.from_ndarray(pixels, format="rgb24")
        frame.pts, frame.time_base = self._last, _TIME_BASE
        self._container.mux(self._stream.encode(frame))

    def _guarded(self, work: Callable[[], Any]) -> None:
        """Do something; where it fails nothing is left of the file."""
        try:
            with _output_errors(self.path):
                work()
        except BaseException as error:
            self._failed = True
            self._stack.__exit__(type(error), error, error.__traceback__)
            raise


class _output_errors:  # noqa: N801 -- used like a function
    """Turn what the disk and the encoder say into an OutputError."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (OSError, av.FFmpegError)):
            raise OutputError(f"{self._path}: cannot be written ({error}). Check the space and the permissions.")


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
