from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from drawn import drawn_faces
from ksame import FaceSet
from ksame.faces.faceset import quantise


@pytest.fixture(scope="session")
def twelve() -> FaceSet:
    """Twelve small drawn people."""
    return drawn_faces(12, width=24, height=32)


@pytest.fixture
def write_picture(tmp_path: Path) -> Callable[..., Path]:
    """Write one picture below the test's folder: the n-th of a few that differ, unless a size or array is given."""
    pictures = quantise(drawn_faces(6, width=24, height=32, seed=7).images)

    def write(name: str, n: int = 0, *, size: tuple[int, int] | None = None, array: np.ndarray | None = None) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = Image.fromarray(pictures[n % len(pictures)] if array is None else array)
        (picture if size is None else picture.resize(size)).save(path)
        return path

    return write
