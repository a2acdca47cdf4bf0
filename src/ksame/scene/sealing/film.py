"""Films of a region: what a few people hide in some frames, exact to one level, small enough to be kept.

A film is a window of the frames in their own pixel format. Outside the mask, which goes with it, the window keeps what
was last seen inside: that costs nothing, and shows nobody else. The encoder may err; wherever a value is more than one
level off, what is missing goes with the film.
"""

from __future__ import annotations

import json
import lzma
import struct
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import av
import numpy as np
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from ksame.errors import InputError
from ksame.privacy.documents import Record, read_document
from ksame.scene.media.planes import coarser_window, plane_steps, plane_values
from ksame.scene.sealing.fixes import FixReader, FixWriter

Planes = list[NDArray[Any]]
"""The planes of a frame, (height, width) each, or one of (height, width, 3) for RGB."""
Blocks = NDArray[np.bool_]
"""A mask with one value for each value of the coarsest plane."""
RGB = "rgb24"
_MAGIC = b"ksame-film 1\n"
_GRID = 16
_X264 = {"preset": "slow", "bf": "0", "threads": "1", "a53cc": "0", "rc-lookahead": "0"}
# 10 is the best of 0 to 14 with what is then missing (docs/vault.md); deblocking would only blur what is nearly exact
_NEARLY = {"qp": "10", "x264-params": "no-deblock=1:weightp=0:mbtree=0:aq-mode=0:ipratio=1"}


def _encoder(pixel_format: str) -> tuple[str, str, dict[str, str]]:
    """Return encoder, decoder and options for a pixel format."""
    if pixel_format == RGB:
        return "libx264rgb", "h264", {**_X264, "qp": "0"}
    if pixel_format in ("yuv420p", "yuv422p", "yuv444p"):
        return "libx264", "h264", {**_X264, **_NEARLY}
    if pixel_format.endswith("10le"):
        return "libx264", "h264", {**_X264, "qp": "0"}
    return "ffv1", "ffv1", {"level": "3", "threads": "1"}


class FilmHead(Record):
    """What a film says of itself."""

    first: int
    count: int
    window: tuple[int, int, int, int]
    pixel_format: str
    decoder: Literal["h264", "ffv1"]
    extradata: str
    sizes: tuple[int, int, int, int]


def planes_of(frame: VideoFrame | NDArray[np.uint8]) -> Planes:
    """Return the values of a frame, as views; an RGB picture is one plane."""
    if isinstance(frame, VideoFrame):
        return [plane_values(frame, number) for number in range(len(frame.planes))]
    return [frame]


def blocks_shape(planes: Planes) -> tuple[int, int]:
    """Return the shape of the coarsest plane."""
    return planes[-1].shape[0], planes[-1].shape[1]


def on_plane(blocks: Blocks, shape: tuple[int, ...], size: tuple[int, int]) -> Blocks:
    """Return the values of a plane of ``shape`` that blocks mean; ``size`` is the coarsest plane's."""
    mask = blocks
    for axis, step in enumerate(plane_steps(shape, size)):
        mask = mask if step == 1 else mask.repeat(step, axis)
    return mask[: shape[0], : shape[1]]


@dataclass(frozen=True)
class Window:
    """A part of a picture, in pixels; it begins on a grid that all planes share."""

    top: int
    left: int
    bottom: int
    right: int

    @classmethod
    def about(cls, blocks: Blocks, size: tuple[int, int]) -> Window:
        """Return the window about a mask, with room for it to move; ``size`` is (height, width)."""
        ends = []
        for axis, step in enumerate(plane_steps(size, blocks.shape)):
            there = np.flatnonzero(blocks.any(axis=1 - axis))
            low, high = int(there[0]) * step, (int(there[-1]) + 1) * step
            room = high - low
            ends.append((max(0, low - room) // _GRID * _GRID, min(size[axis], -(-(high + room) // _GRID) * _GRID)))
        return cls(ends[0][0], ends[1][0], ends[0][1], ends[1][1])

    def slices(self, shape: tuple[int, ...], size: tuple[int, int]) -> tuple[slice, slice]:
        """Return the window in a plane of ``shape``, in a picture of ``size``."""
        whole = slice(self.top, self.bottom), slice(self.left, self.right)
        return coarser_window(whole, plane_steps(size, shape))

    def holds(self, blocks: Blocks, size: tuple[int, int]) -> bool:
        """Tell whether all of a mask lies in the window."""
        return int(blocks[self.slices(blocks.shape, size)].sum()) == int(blocks.sum())


class FilmWriter:
    """Takes frames in order and returns the film as bytes; nothing of it touches the disk."""

    def __init__(self, first: int, window: Window, pixel_format: str, size: tuple[int, int]) -> None:
        self.window = window
        self.first, self._size = first, size
        self._format = pixel_format
        encoder, self._decoder_name, options = _encoder(pixel_format)
        self._frame_size = _coded_size(window)
        self._encoder = _codec(encoder, "w")
        self._encoder.width, self._encoder.height = self._frame_size
        self._encoder.pix_fmt = pixel_format
        self._encoder.time_base, self._encoder.options = Fraction(1, 25), options
        self._held: Planes | None = None
        self._mask: Blocks | None = None
        self._changes: list[bytes] = []
        self._packets: list[bytes] = []
        self._decoder: VideoCodecContext | None = None
        self._pending: deque[tuple[Planes, list[Blocks]]] = deque()
        self._fixes = FixWriter()

    def add(self, planes: Planes, blocks: Blocks) -> None:
        """Add the next frame, whole, and the mask of what of it is kept; that may be nothing."""
        coarse = blocks_shape(planes)
        part = blocks[self.window.slices(coarse, self._size)]
        values = [plane[self.window.slices(plane.shape, self._size)] for plane in planes]
        frame = VideoFrame(*self._frame_size, self._format)
        if self._held is None:
            self._held = [np.zeros_like(plane) for plane in _picture(frame)]
        masks = [on_plane(part, plane.shape, part.shape) for plane in values]
        for held, plane, mask in zip(self._held, values, masks, strict=True):
            np.copyto(
                held[: plane.shape[0], : plane.shape[1]], plane, where=mask if plane.ndim == 2 else mask[..., None]
            )
        for target, held in zip(_picture(frame), self._held, strict=True):
            target[...] = held
        self._changes.append(np.packbits(part if self._mask is None else part ^ self._mask).tobytes())
        self._mask = part.copy()
        self._pending.append(([plane.copy() for plane in self._held], masks))
        frame.pts = len(self._changes) - 1
        self._encode(frame)

    def _encode(self, frame: VideoFrame | None) -> None:
        for packet in self._encoder.encode(frame):
            data = bytes(packet)
            self._packets.append(data)
            if self._decoder is None:
                self._decoder = _decoder(self._decoder_name, self._frame_size, self._format, self._encoder.extradata)
            self._compare(self._decoder.decode(Packet(data)))
        if frame is None and self._decoder is not None:
            self._compare(self._decoder.decode(None))

    def _compare(self, decoded: Sequence[VideoFrame]) -> None:
        for frame in decoded:
            wanted, masks = self._pending.popleft()
            for plane, coded, mask in zip(wanted, _decoded(frame, self._format), masks, strict=True):
                rows, columns = mask.shape
                self._fixes.add(plane[:rows, :columns][mask], coded[:rows, :columns][mask])

    def finish(self) -> bytes:
        """Return the film."""
        self._encode(None)
        if self._pending:
            raise InputError("A frame of a film for the vault could not be decoded again.")
        masks = lzma.compress(b"".join(self._changes), preset=6)
        film = b"".join(struct.pack("<I", len(data)) + data for data in self._packets)
        parts = [masks, *self._fixes.finish(), film]
        head = FilmHead(
            first=self.first,
            count=len(self._changes),
            window=(self.window.top, self.window.left, self.window.bottom, self.window.right),
            pixel_format=self._format,
            decoder=self._decoder_name,
            extradata=b64encode(self._encoder.extradata or b"").decode(),
            sizes=(len(parts[0]), len(parts[1]), len(parts[2]), len(parts[3])),
        )
        line = json.dumps(head.model_dump(mode="json"), separators=(",", ":")).encode()
        return b"".join([_MAGIC, line, b"\n", *parts])


@dataclass(frozen=True, eq=False)
class Film:
    """A film that was opened."""

    head: FilmHead
    parts: tuple[bytes, ...]  # masks, gaps between values that are off, what of them is missing, packets

    @property
    def window(self) -> Window:
        """Where in the frames it lies."""
        return Window(*self.head.window)

    @classmethod
    def read(cls, data: bytes) -> Film:
        """Read a film."""
        line, _, rest = data.removeprefix(_MAGIC).partition(b"\n")
        head = read_document(FilmHead, line, "a film of a vault")
        starts = np.cumsum([0, *head.sizes]).tolist()
        if not data.startswith(_MAGIC) or len(rest) != starts[-1]:
            raise InputError("not a film of a vault")
        return cls(head, tuple(rest[a:b] for a, b in pairwise(starts)))

    def frames(self, shapes: Sequence[tuple[int, ...]]) -> Iterator[tuple[list[NDArray[Any]], Blocks]]:
        """Yield the values in the window of each frame, and the mask of those that are meant.

        ``shapes`` are those of the planes of a whole frame, the finest first.
        """
        size, window = (shapes[0][0], shapes[0][1]), self.window
        rows, columns = window.slices(shapes[-1], size)
        coarse = (rows.stop - rows.start, columns.stop - columns.start)
        packed = np.frombuffer(lzma.decompress(self.parts[0]), np.uint8).reshape(self.head.count, -1)
        fixes = FixReader(self.parts[1], self.parts[2])
        mask = np.zeros(coarse, dtype=bool)
        for row, frame in zip(packed, self._decoded(), strict=True):
            mask = mask ^ np.unpackbits(row, count=mask.size).reshape(coarse).astype(bool)
            planes = []
            for shape, coded in zip(shapes, _decoded(frame, self.head.pixel_format), strict=True):
                part = window.slices(shape, size)
                plane = coded[: part[0].stop - part[0].start, : part[1].stop - part[1].start].copy()
                meant = on_plane(mask, plane.shape, coarse)
                plane[meant] = fixes.apply(plane[meant])
                planes.append(plane)
            yield planes, mask

    def _decoded(self) -> Iterator[VideoFrame]:
        head, packets, at = self.head, self.parts[3], 0
        size = _coded_size(self.window)
        decoder = _decoder(head.decoder, size, head.pixel_format, b64decode(head.extradata))
        while at < len(packets):
            (length,) = struct.unpack_from("<I", packets, at)
            yield from decoder.decode(Packet(packets[at + 4 : at + 4 + length]))
            at += 4 + length
        yield from decoder.decode(None)


def _coded_size(window: Window) -> tuple[int, int]:
    """Return width and height of a film: the window, and what is missing to the grid."""
    return -(-(window.right - window.left) // _GRID) * _GRID, -(-(window.bottom - window.top) // _GRID) * _GRID


def _codec(name: str, mode: Literal["r", "w"]) -> VideoCodecContext:
    context = av.CodecContext.create(name, mode)
    if not isinstance(context, VideoCodecContext):
        raise InputError(f"{name} is no codec for video.")
    context.thread_count = 1
    return context


def _decoder(name: str, size: tuple[int, int], pixel_format: str, extradata: bytes | None) -> VideoCodecContext:
    context = _codec(name, "r")
    if extradata:
        context.extradata = extradata
    if name == "ffv1":  # whose frames do not tell
        context.width, context.height = size
        context.pix_fmt = pixel_format
    return context


def _picture(frame: VideoFrame) -> Planes:
    """Return the values of a frame that was made here; packed RGB as one plane of (height, width, 3)."""
    return [plane_values(frame, channels=3)] if frame.format.name == RGB else planes_of(frame)


def _decoded(frame: VideoFrame, pixel_format: str) -> Planes:
    """Return the values of a decoded frame in a pixel format."""
    return [frame.to_ndarray(format=RGB)] if pixel_format == RGB else planes_of(frame)
