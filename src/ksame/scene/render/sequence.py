"""Render the frames of a recording in order: some heads by the network, those between by interpolation."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from itertools import pairwise

from ksame.arrays import ByteArray
from ksame.heads.between import between, keyframes
from ksame.heads.invention import FinishedHead
from ksame.scene.media import Frame
from ksame.scene.render.renderer import Renderer

STEP = 16
"""In the first of so many frames, the network makes every head; within them, as few as :func:`keyframes` chooses."""
_MAX_GAP = 0.085  # seconds between frames, at most, for heads to be interpolated: 12 frames per second, with room
_MAX_BYTES = 160 << 20  # that frames on their way may take, by choice: blocks of large frames are shorter
_ON_THEIR_WAY = 5  # blocks, counting old and new frames


@dataclass(frozen=True, eq=False)
class _Block:
    """Frames that are rendered together.

    Attributes
    ----------
    frames : list of Frame
    keys : mapping of track to list of int
        Which of its heads the network makes, by their place in the block; that after the last is the next block's.
    finished : mapping of int to Future
        The heads that the network makes, of each frame that has some.
    """

    frames: list[Frame]
    keys: Mapping[int, list[int]]
    finished: Mapping[int, Future[dict[int, FinishedHead]]]


def first_needed(index: int) -> int:
    """Return the frame from which on :func:`render_frames` must be given frames to render the one of ``index``."""
    return index - index % STEP


def render_frames(
    frames: Iterable[Frame], renderer: Renderer, executor: Executor
) -> Generator[tuple[Frame, ByteArray], None, None]:
    """Yield all frames of a recording and what becomes of them, (height, width, 3), in order.

    Parameters
    ----------
    frames : iterable of Frame
        Without gaps; the first has an index that :func:`first_needed` returns. A frame comes out the same wherever
        they begin, and with any number of threads.
    renderer : Renderer
    executor : Executor
        Renders several frames at a time. Its tasks wait for nothing, so that several recordings may share it.
    """
    waiting: deque[_Block] = deque()
    begun: deque[tuple[Frame, Future[ByteArray]]] = deque()

    def compose_block() -> None:
        """Begin to compose the frames of the first block that waits."""
        block = waiting.popleft()
        made = {place: future.result() for place, future in block.finished.items()}
        if waiting and 0 in waiting[0].finished:
            made[len(block.frames)] = waiting[0].finished[0].result()
        for place, frame in enumerate(block.frames):
            neighbours = _neighbours(block.keys, made, place)
            begun.append((frame, executor.submit(_compose, renderer, frame, neighbours)))

    def next_composed() -> tuple[Frame, ByteArray]:
        """Return the first frame that was begun; nothing here holds it any more."""
        frame, task = begun.popleft()
        return frame, task.result()

    try:
        width, height = renderer.tracks.size
        for block, after in _blocks(frames, _length(3 * width * height)):
            keys = _keys(renderer, block, after)
            finished = {
                place: executor.submit(renderer.finish, frame, tracks)
                for place, frame in enumerate(block)
                if (tracks := [track for track, places in keys.items() if place in places])
            }
            waiting.append(_Block(block, keys, finished))
            if len(waiting) > 1:
                compose_block()
            while len(begun) > len(block):
                yield next_composed()
        while waiting:
            compose_block()
        while begun:
            yield next_composed()
    finally:
        for left in waiting:
            for heads in left.finished.values():
                heads.cancel()
        for _, task in begun:
            task.cancel()


def _keys(renderer: Renderer, block: Sequence[Frame], after: Frame | None) -> dict[int, list[int]]:
    """Choose which heads of a block the network makes; ``after`` is the first frame of the next block."""
    frames = [*block, after] if after is not None else block
    heads = [renderer.plan(frame.index, frame.time).heads for frame in frames]
    close = all(b.time - a.time <= _MAX_GAP for a, b in pairwise(frames))
    keys: dict[int, list[int]] = {}
    for track in dict.fromkeys(track for in_frame in heads for track in in_frame):
        for run in _runs([place for place, in_frame in enumerate(heads) if track in in_frame]):
            placed = [heads[place][track] for place in run]
            chosen = keyframes([head.points for head in placed], placed[0].region.side) if close else range(len(run))
            keys.setdefault(track, []).extend(run[i] for i in chosen)
    return keys


def _runs(places: Sequence[int]) -> list[list[int]]:
    """Cut rising numbers into runs of consecutive ones.

    Examples
    --------
    >>> _runs([0, 1, 2, 4, 5])
    [[0, 1, 2], [4, 5]]
    """
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _neighbours(
    keys: Mapping[int, Sequence[int]], made: Mapping[int, Mapping[int, FinishedHead]], place: int
) -> dict[int, tuple[FinishedHead, FinishedHead, float]]:
    """Return, for each track, the finished heads before and after a place, and how far it is between them."""
    neighbours = {}
    for track, places in keys.items():
        first = max((key for key in places if key <= place), default=None)
        last = min((key for key in places if key >= place), default=None)
        if first is not None and last is not None:
            start, end = made.get(first, {}).get(track), made.get(last, {}).get(track)
            if start is not None and end is not None:
                neighbours[track] = (start, end, (place - first) / max(1, last - first))
    return neighbours


def _compose(
    renderer: Renderer, frame: Frame, neighbours: Mapping[int, tuple[FinishedHead, FinishedHead, float]]
) -> ByteArray:
    """Compose a frame of heads that the network made, or that lie between two such."""
    heads = renderer.plan(frame.index, frame.time).heads
    finished = {
        track: head
        for track, (first, last, share) in neighbours.items()
        if track in heads and (head := between(first, heads[track].points, last, share)) is not None
    }
    return renderer.compose(frame, finished)


def _blocks(frames: Iterable[Frame], length: int) -> Iterator[tuple[list[Frame], Frame | None]]:
    """Yield frames in blocks, each with the first frame after it; the last block may be shorter."""
    block: list[Frame] = []
    for frame in frames:
        if block and frame.index % length == 0:
            yield block, frame
            block = []
        block.append(frame)
    if block:
        yield block, None


def _length(n_bytes: int) -> int:
    """Return how many frames of a size make a block; ``STEP`` is a multiple of it.

    Examples
    --------
    >>> [_length(3 * width * height) for width, height in ((640, 480), (1920, 1080), (2560, 1440), (3840, 2160))]
    [16, 4, 2, 1]
    """
    return next((n for n in (STEP, STEP // 2, STEP // 4, STEP // 8) if n * _ON_THEIR_WAY * n_bytes <= _MAX_BYTES), 1)
