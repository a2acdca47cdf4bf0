"""Networks in ONNX files: where they run, and what is said when they cannot."""

import numpy as np
import pytest

from ksame.errors import ModelError, UsageError
from ksame.models.finisher import SIZES, Finisher
from ksame.models.runtime import session


def test_an_unknown_device_is_refused():
    with pytest.raises(UsageError, match="Unknown device 'tpu'. Choose one of: auto, cpu, cuda"):
        Finisher("tpu")


def test_a_gpu_that_is_not_there_is_said_so():
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("there is a GPU")
    with pytest.raises(UsageError, match="finds no GPU. Install onnxruntime-gpu"):
        Finisher("cuda")


def test_a_network_that_is_not_there_or_is_none(tmp_path):
    with pytest.raises(ModelError, match="no such file"):
        session(tmp_path / "nothing.onnx")
    (tmp_path / "text.onnx").write_text("no network")
    with pytest.raises(ModelError, match="cannot load this network"):
        session(tmp_path / "text.onnx")


@pytest.mark.parametrize("size", [*SIZES, 96])
def test_the_finisher_takes_squares_of_many_sizes_and_repeats_itself(size):
    rng = np.random.default_rng(size)
    drawing, around = rng.random((size, size, 6), np.float32), rng.random((size, size, 3), np.float32)
    known = np.zeros((size, size), np.float32)
    network = Finisher("cpu")
    made = network.finish(drawing, around * known[..., None], known)
    assert made.shape == (size, size, 3)
    assert made.dtype == np.uint8
    assert np.array_equal(made, network.finish(drawing, around * known[..., None], known))
