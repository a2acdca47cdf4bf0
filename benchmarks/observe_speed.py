"""Finding tracks in a clip: milliseconds per frame, processor time, and the most memory the process took.

python -m benchmarks.observe_speed CLIP [THREADS]
"""

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np

from ksame.scene.memory import one_opencv_thread
from ksame.scene.track import find_tracks


@dataclass(frozen=True)
class Picture:
    """A frame."""

    index: int
    time: float
    pixels: np.ndarray


def frames(clip: Path, start: int) -> Iterator[Picture]:
    with av.open(str(clip)) as container:
        for index, frame in enumerate(container.decode(video=0)):
            if index >= start:
                yield Picture(index, float(frame.time or 0.0), frame.to_ndarray(format="rgb24"))


def main(clip: str | None = None, threads: int = 2) -> float:
    """Print the figures and return the milliseconds per frame."""
    path = Path(clip or sys.argv[1])
    with av.open(str(path)) as container:
        size = (container.streams.video[0].width, container.streams.video[0].height)
    with tempfile.TemporaryDirectory() as work, one_opencv_thread(), ThreadPoolExecutor(threads) as pool:
        wall, cpu = time.perf_counter(), time.process_time()
        tracks = find_tracks(lambda start: frames(path, start), size, Path(work), map=pool.map)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    each = 1000 / max(tracks.n_frames, 1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{path.name}, {size[0]}x{size[1]}, {tracks.n_frames} frames")
    print(f"{len(tracks.tracks)} tracks, {len(tracks.people)} people")
    print(f"{wall * each:.1f} ms per frame, {cpu * each:.1f} ms of processor time, at most {memory:.0f} MB")
    return wall * each


if __name__ == "__main__":
    main(threads=int(sys.argv[2]) if len(sys.argv) > 2 else 2)
