"""YuNet as ONNX Runtime runs it: the same faces as OpenCV finds with the same file, in less time."""

from concurrent.futures import ThreadPoolExecutor
from time import process_time

import cv2
import numpy as np
import pytest

from ksame.models.blocked import mended
from ksame.models.yunet import yunet


@pytest.fixture(scope="module")
def file(detector):
    from ksame.models import path

    return path("yunet")


@pytest.fixture(scope="module")
def crowd(astronaut):
    """Faces of many sizes, upright, tilted, mirrored and blurred."""
    picture = np.zeros((700, 1100, 3), np.uint8)
    head = astronaut[20:260, 100:340]
    x = 0
    for side, turn, blur in [(40, 0, 0), (60, 15, 0), (90, -30, 1), (130, 0, 3), (200, 10, 0), (300, -10, 2)]:
        matrix = cv2.getRotationMatrix2D((120, 120), turn, 1)
        one = cv2.resize(cv2.warpAffine(head, matrix, (240, 240)), (side, side), interpolation=cv2.INTER_AREA)
        picture[50 : 50 + side, x : x + side] = cv2.GaussianBlur(one, (0, 0), blur) if blur else one
        picture[400 : 400 + side, x : x + side] = one[:, ::-1] // 3
        x += side + 20
    return picture


def by_opencv(file, rgb, score):
    network = cv2.FaceDetectorYN.create(str(file), "", rgb.shape[1::-1], score, 0.3, 5000)
    found = network.detect(np.ascontiguousarray(rgb[..., ::-1]))[1]
    return np.empty((0, 15)) if found is None else found


@pytest.mark.parametrize("score", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("size", [(1100, 700), (640, 480), (333, 97), (192, 192), (65, 64)])
def test_finds_what_opencv_finds(file, crowd, size, score):
    picture = cv2.resize(crowd, size, interpolation=cv2.INTER_AREA)
    expected, found = by_opencv(file, picture, score), yunet(file).detect(picture, score)
    assert found.shape == expected.shape
    assert found[:, :14] == pytest.approx(expected[:, :14], abs=0.01)
    assert found[:, 14] == pytest.approx(expected[:, 14], abs=1e-4)


def test_takes_pictures_smaller_than_its_coarsest_grid(file, crowd):
    for shape in [(1, 1), (31, 5), (33, 64)]:
        assert yunet(file).detect(np.zeros((*shape, 3), np.uint8), 0.3).shape == (0, 15)


def test_one_network_serves_all_threads_and_sizes(file, crowd):
    pictures = [crowd, crowd[:300, :500], crowd[30:, 200:]] * 4
    alone = [yunet(file).detect(picture, 0.3) for picture in pictures]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda picture: yunet(file).detect(picture, 0.3), pictures))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))
    assert yunet(file) is yunet(file)


def test_takes_less_time_than_opencv(file, crowd):
    def least(work):
        work()
        times = []
        for _ in range(5):
            start = process_time()
            work()
            times.append(process_time() - start)
        return min(times)

    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        network = cv2.FaceDetectorYN.create(str(file), "", crowd.shape[1::-1], 0.6, 0.3, 5000)
        opencv = least(lambda: network.detect(crowd))
    finally:
        cv2.setNumThreads(threads)
    assert least(lambda: yunet(file).detect(crowd, 0.6)) < 0.8 * opencv


def test_mending_changes_sizes_and_blocks_and_no_weight(file):
    onnx = pytest.importorskip("onnx")
    before = file.read_bytes()
    old, new = (onnx.load_from_string(content).graph for content in (before, mended(before, any_size=True)))
    assert list(old.initializer) == list(new.initializer)
    assert [dim.dim_param or dim.dim_value for dim in new.input[0].type.tensor_type.shape.dim] == [1, 3, "a", "b"]
    changed = [a.input[0] for a, b in zip(old.node, new.node, strict=True) if a != b]
    quantised = [tensor for tensor in old.initializer if tensor.data_type == onnx.TensorProto.INT8]
    assert set(changed) <= {tensor.name for tensor in quantised if len(tensor.dims) == 1}
    assert len(changed) == 20
