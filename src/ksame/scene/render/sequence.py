"""Render the frames of a recording in order: keyframes by the network, what lies between by interpolation."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Executor, Future

from ksame.arrays import ByteArray
from ksame.scene.media import Frame
from ksame.scene.render.renderer import Keyframe, Renderer

STEP = 3
"""One frame of so many is a keyframe: at six, blinks were less the person's own (tests/scene/test_use_kept.py)."""
_PREFETCH = 2  # keyframes that are begun before the frames between the first two are, by choice
_MAX_BYTES = 120 << 20  # that waiting frames may take, by choice: beyond, every frame is a keyframe


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
    waiting: deque[tuple[list[Frame], Future[Keyframe]]] = deque()
    begun: deque[list[tuple[Frame, Future[ByteArray]]]] = deque()

    def begin_block() -> None:
        """Begin the frames after the first keyframe that waits."""
        (first, *others), key = waiting.popleft()
        before = key.result()
        if waiting:
            after = waiting[0][1].result()
            tasks = [executor.submit(renderer.in_between, frame, before, after) for frame in others]
        else:
            tasks = [executor.submit(renderer.render, frame) for frame in others]
        begun.append(list(zip([first, *others], [_done(before.pixels), *tasks], strict=True)))

    def finish_block() -> Iterator[tuple[Frame, ByteArray]]:
        for frame, task in begun.popleft():
            yield frame, task.result()

    try:
        for block in _blocks(frames):
            waiting.append((block, executor.submit(renderer.keyframe, block[0])))
            if len(waiting) > _PREFETCH:
                begin_block()
            if len(begun) > 1:
                yield from finish_block()
        while waiting:
            begin_block()
        while begun:
            yield from finish_block()
    finally:
        for _, key in waiting:
            key.cancel()
        for block_begun in begun:
            for _, task in block_begun:
                task.cancel()


def _blocks(frames: Iterable[Frame]) -> Iterator[list[Frame]]:
    """Yield frames in blocks that begin with a keyframe; one by one where they are too large to wait."""
    block: list[Frame] = []
    for frame in frames:
        large = frame.pixels.nbytes * 2 * STEP * (_PREFETCH + 1) > _MAX_BYTES
        if block and (large or frame.index % STEP == 0):
            yield block
            block = []
        block.append(frame)
    if block:
        yield block


def _done(pixels: ByteArray) -> Future[ByteArray]:
    future: Future[ByteArray] = Future()
    future.set_result(pixels)
    return future
