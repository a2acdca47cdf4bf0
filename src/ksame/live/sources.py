"""Where live pictures come from: cameras, streams, and files played at their own rate."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import av
import cv2
import numpy as np

from ksame.arrays import ByteArray
from ksame.errors import InputError, KsameError
from ksame.live.newest import Newest
from ksame.live.statistics import Statistics
from ksame.pictures import STRICT
from ksame.scene.media import Frame, open_media

Sleep = Callable[[float], object]
Now = Callable[[], float]
_STREAM = re.compile(r"(rtsps?|https?|rtmps?|udp|tcp|srt)://", re.I)
_TIMEOUT = 10.0  # seconds in which a stream must be there, and give a frame, by choice
_WAITS = (0.5, 1.0, 2.0, 5.0, 10.0)  # seconds before each new try to reach a source; the last one again and again


class LiveSource(Protocol):
    """Gives pictures as they come. A source that ``returns`` is opened again when it drops."""

    returns: bool

    def frames(self) -> Iterator[ByteArray]:
        """Open the source and yield its pictures, (height, width, 3), RGB; ends, or raises, where it drops."""
        ...


@dataclass
class CameraSource:
    """A camera, through OpenCV, by its number or device file."""

    camera: int | str
    returns: bool = True

    def frames(self) -> Iterator[ByteArray]:
        """Yield pictures until the camera gives no more."""
        capture = cv2.VideoCapture(self.camera)
        try:
            if not capture.isOpened():
                raise InputError(
                    f"Camera {self.camera} cannot be opened. Is it plugged in, and does nobody else use it?"
                )
            capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)  # old frames are of no use
            while True:
                there, bgr = capture.read()
                if not there:
                    return
                yield np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), dtype=np.uint8)
        finally:
            capture.release()


@dataclass
class StreamSource:
    """A stream at an address, through FFmpeg; damaged pictures are left out until a whole one comes."""

    address: str
    statistics: Statistics
    returns: bool = True

    def frames(self) -> Iterator[ByteArray]:
        """Yield pictures until the stream drops."""
        rtsp = self.address.lower().startswith("rtsp")
        options = {"rtsp_transport": "tcp"} if rtsp else {}  # lost packets would be damaged pictures
        try:
            with av.open(self.address, options=options, timeout=_TIMEOUT) as container:
                yield from self._decoded(container)
        except (av.FFmpegError, OSError, ValueError, IndexError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__  # all of it would tell the password
            raise InputError(f"{shown_address(self.address)}: {why}. Check the address and the network.") from None

    def _decoded(self, container: Any) -> Iterator[ByteArray]:
        stream = container.streams.video[0]
        stream.codec_context.options = STRICT
        whole = False  # whether all that this picture refers to was decoded: faces hide in patchwork
        for packet in container.demux(stream):
            try:
                frames = packet.decode()
            except av.InvalidDataError:
                whole = False
                self.statistics.damaged += 1
                continue
            for frame in frames:
                whole = (whole or bool(frame.key_frame)) and not (packet.is_corrupt or frame.is_corrupt)
                if whole:
                    yield np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)
                else:
                    self.statistics.damaged += 1


@dataclass
class FileSource:
    """A recording, played at its own rate."""

    path: Path
    now: Now = time.monotonic
    sleep: Sleep = time.sleep
    returns: bool = False

    def frames(self) -> Iterator[ByteArray]:
        """Yield each frame when its time has come."""
        start: float | None = None
        with closing(open_media(self.path).frames()) as frames:
            for frame in frames:
                start = self.now() - frame.time if start is None else start
                early = start + frame.time - self.now()
                if early > 0:
                    self.sleep(early)
                yield frame.pixels


def open_source(source: str, statistics: Statistics) -> LiveSource:
    """Return the source of a name: the number or device of a camera, the address of a stream, or a file."""
    if re.fullmatch(r"[0-9]{1,3}", source):
        return CameraSource(int(source))
    if source.startswith("/dev/"):
        return CameraSource(source)
    if _STREAM.match(source):
        return StreamSource(source, statistics)
    path = Path(source)
    if not path.exists():
        raise InputError(
            f"{source}: there is no such file. A source is the number of a camera such as 0, an address such as "
            "rtsp://HOST/PATH, or a recording."
        )
    if open_media(path).kind == "photograph":
        raise InputError(f"{source}: this is a photograph. Use ksame deidentify.")
    return FileSource(path)


def shown_address(address: str) -> str:
    """Return an address without the name and the password that may stand in it.

    Examples
    --------
    >>> shown_address("rtsp://me:secret@10.0.0.7/door")
    'rtsp://…@10.0.0.7/door'
    """
    return re.sub(r"//[^/@]*@", "//…@", address)


class Grabber:
    """Reads a source in a thread of its own into the place of the newest frame, and opens it again when it drops."""

    def __init__(
        self,
        source: LiveSource,
        newest: Newest,
        statistics: Statistics,
        now: Now = time.monotonic,
        sleep: Sleep | None = None,
    ) -> None:
        self._source, self._newest, self._statistics, self._now = source, newest, statistics, now
        self._stop = threading.Event()
        self._sleep: Sleep = sleep or self._stop.wait  # until the grabber is left, at most
        self._thread = threading.Thread(target=self.read, name="ksame-live-source", daemon=True)

    def __enter__(self) -> Grabber:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join(timeout=2 * _TIMEOUT)

    def read(self) -> None:
        """Read until the source has ended, or the grabber is left.

        A source that was never there is an error at once; one that was there comes back.
        """
        index = failed = 0
        error: BaseException | None = None
        try:
            while not self._stop.is_set():
                try:
                    with closing(self._source.frames()) as frames:  # type: ignore[type-var]  # a generator
                        for pixels in frames:
                            if self._stop.is_set():
                                return
                            self._newest.put(Frame(index, self._now(), pixels))
                            index, failed = index + 1, 0
                except KsameError as problem:
                    if index == 0 or not self._source.returns:
                        error = problem
                        return
                if not self._source.returns:
                    return
                self._sleep(_WAITS[min(failed, len(_WAITS) - 1)])
                failed += 1
                self._statistics.reconnects += 1
        except BaseException as problem:  # told to whoever waits for frames
            error = problem
        finally:
            self._newest.end(error)
