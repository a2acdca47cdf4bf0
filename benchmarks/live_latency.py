"""A clip played as if live: frames per second, latency, faces replaced; alone, and beside a busy process.

Before that, what the parts of a frame cost at their quickest.

python -m benchmarks.live_latency CLIP
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from ksame.heads.drawing import Invention
from ksame.heads.head import Head, expression_of, neutral_shape
from ksame.heads.invention import finish, taken_away
from ksame.heads.surrogate import ORDINARY, draw_surrogate
from ksame.live import LiveConfig, Statistics, open_sink, open_source, run_live
from ksame.models.finisher import Finisher
from ksame.scene.media import open_media
from ksame.scene.memory import one_opencv_thread
from ksame.scene.observe import DetectorConfig
from ksame.scene.observe.mesh import FaceMesher

BUSY = "while True: pass"
ROUNDS = 15


def quickest(work: Callable[[], object]) -> str:
    """Return the milliseconds that something takes at its quickest: others may use the machine too."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return f"{1000 * min(times):.1f} ms"


def costs(clip: str) -> None:
    """Print what the parts of a frame cost: the search, the mesh of a face, and a head."""
    pixels = next(frame.pixels for frame in open_media(Path(clip)).frames() if frame.index == 60)
    mesher, network = FaceMesher(DetectorConfig()), Finisher("cpu")
    with one_opencv_thread():
        for smallest in (24, 48):
            took = quickest(lambda smallest=smallest: mesher.detector.detect(pixels, score=0.3, min_face=smallest))
            print(f"search {pixels.shape[1]}x{pixels.shape[0]} for faces from {smallest} pixels on: {took}")
        face = mesher.fit(pixels, mesher.detector.detect(pixels)[0])
        print(f"mesh: {quickest(lambda: mesher.see(pixels, face, np.array(face.box), None, 0.3))}")
        head = Head.of(face.mesh.points)
        neutral = neutral_shape(head.aligned, expression_of(face.mesh.blendshapes))
        surrogate = draw_surrogate(True, 1970.0, ORDINARY, np.random.default_rng(0))
        invention = Invention.of(surrogate.looks, head, neutral)
        hidden = taken_away(pixels.shape, [invention.region.outline])
        for size in (128, 256):
            print(f"head of {size} pixels: {quickest(lambda s=size: finish(pixels, hidden, invention, network, s))}")


def main(clip: str, busy: bool) -> Statistics:
    """Run a clip once into file segments, and print what came of it."""
    statistics = Statistics()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if busy:
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(process.kill)
        config, source = LiveConfig(), open_source(clip, statistics)
        load = os.getloadavg()[0]
        run_live(source, open_sink(folder, config.segment), config, seed=1, statistics=statistics)
    told = statistics.for_machines()
    latency = {name: f"{value:.0f} ms" for name, value in told["latency_ms"].items() if value is not None}
    print(f"{Path(clip).name}, {'beside a busy process' if busy else 'alone'}; load of the machine before: {load:.1f}")
    print(f"  {told['fps']} frames per second, latency {json.dumps(latency)}")
    print(f"  frames {json.dumps(told['frames'])}")
    print(f"  faces {json.dumps(told['faces'])}")
    print(f"  people {json.dumps(told['people'])}")
    return statistics


if __name__ == "__main__":
    costs(sys.argv[1])
    for beside in (False, True):
        main(sys.argv[1], beside)
