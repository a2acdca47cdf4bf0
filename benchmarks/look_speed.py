"""Pass 1 over a clip: milliseconds a frame, processor time, and the most memory the process took.

python -m benchmarks.look_speed CLIP
"""

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np

from ksame.scene.looking import look


@dataclass(frozen=True)
class Picture:
    """A frame."""

    index: int
    time: float
    pixels: np.ndarray


def frames(clip: Path) -> Iterator[Picture]:
    with av.open(str(clip)) as container:
        for index, frame in enumerate(container.decode(video=0)):
            yield Picture(index, float(frame.time or 0.0), frame.to_ndarray(format="rgb24"))


def main(clip: str | None = None) -> float:
    """Print the figures and return the milliseconds a frame."""
    path = Path(clip or sys.argv[-1])
    with av.open(str(path)) as container:
        size = (container.streams.video[0].width, container.streams.video[0].height)
    with tempfile.TemporaryDirectory() as work:
        wall, cpu = time.perf_counter(), time.process_time()
        cast = look(frames(path), size, Path(work))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    each = 1000 / max(cast.n_frames, 1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = f"{len(cast.tracks)} tracks, {len(cast.people)} people"
    print(f"{path.name}, {size[0]}x{size[1]}, {cast.n_frames} frames, {found}")
    print(f"{wall * each:.1f} ms a frame, {cpu * each:.1f} ms of processor time a frame, at most {memory:.0f} MB")
    return wall * each


if __name__ == "__main__":
    main()
