"""A clip played as if live: frames per second, latency, faces replaced; alone, and beside a busy process.

python -m benchmarks.live_latency CLIP
"""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from ksame.live import LiveConfig, Statistics, open_sink, open_source, run_live

BUSY = "while True: pass"


def main(clip: str, busy: bool) -> Statistics:
    """Run a clip once into file segments, and print what came of it."""
    statistics = Statistics()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if busy:
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(process.kill)
        config = LiveConfig()
        load = os.getloadavg()[0]
        run_live(
            open_source(clip, statistics), open_sink(folder, config.segment), config, seed=1, statistics=statistics
        )
    told = statistics.for_machines()
    latency = {name: f"{value:.0f} ms" for name, value in told["latency_ms"].items() if value is not None}
    print(f"{Path(clip).name}, {'beside a busy process' if busy else 'alone'}; load of the machine before: {load:.1f}")
    print(f"  {told['fps']} frames per second, latency {json.dumps(latency)}")
    print(f"  frames {json.dumps(told['frames'])}")
    print(f"  faces {json.dumps(told['faces'])}")
    print(f"  people {json.dumps(told['people'])}")
    return statistics


if __name__ == "__main__":
    for beside in (False, True):
        main(sys.argv[1], beside)
