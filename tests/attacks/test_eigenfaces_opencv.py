"""Our Eigenfaces against OpenCV's, which needs an environment of its own."""

import pytest

from ksame.bench import TINY
from ksame.bench.base import Settings
from ksame.bench.face_sets import eigenfaces


@pytest.mark.slow
def test_the_same_neighbours_as_opencv(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    settings = Settings(faces=120, height=50, width=40, rounds=TINY.rounds, install=True)
    (found,) = (row for row in eigenfaces(settings) if row.yardstick == "OpenCV")
    if found.skipped:
        pytest.skip(found.skipped)
    assert found.figures["same neighbour"] == 1.0
    assert found.figures["largest difference"] < 1e-3
