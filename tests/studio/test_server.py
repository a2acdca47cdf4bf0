"""The command itself: its help is quick, and nothing outlives the server."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from studio.conftest import SAMPLES, Api

httpx = pytest.importorskip("httpx")


def children(process: int) -> set[int]:
    """The processes that a process started, and those that they did."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if words[0] != "Z":
            parents[int(status.parent.name)] = int(words[1])
    found, more = set(), {process}
    while more:
        more = {child for child, parent in parents.items() if parent in more}
        found |= more
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_the_server_and_the_job_can_be_resumed(tmp_path, end):
    film = tmp_path / "film.mp4"
    film.write_bytes((SAMPLES / "two-people.mp4").read_bytes())
    words = [sys.executable, "-m", "ksame", "studio", str(tmp_path / "projects"), "--no-open"]

    def begin():
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        home, token = re.search(r"(http://\S+)/\?token=(\S+)", process.stderr.readline()).groups()
        client = httpx.Client(base_url=home, headers={"authorization": f"Bearer {token}"}, timeout=120)
        return process, Api(client)

    process, api = begin()
    with process:
        trial = api.begin("scene")
        trial.add(film)
        job = trial.start("find")
        assert job["state"] == "running"
        started = children(process.pid)
        assert len(started) >= 2, "one looks at uploads, one works"
        process.send_signal(end)
        process.communicate(timeout=60)
        limit = time.monotonic() + 60
        while time.monotonic() < limit and any(Path(f"/proc/{child}/exe").exists() for child in started):
            time.sleep(0.1)
        left = [child for child in started if os.path.exists(f"/proc/{child}/exe")]  # noqa: PTH110
        assert not left
    api.http.close()

    process, api = begin()
    with process, api.http:
        trial.http = api.http
        job = trial("GET", f"/jobs/{job['number']}")
        assert job["state"] == "interrupted"
        assert trial.ended(trial("POST", f"/jobs/{job['number']}/resume"))["state"] == "done"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "Traceback" not in said
