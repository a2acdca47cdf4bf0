import csv
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import pytest

from ksame.errors import InputError, ModelError, UsageError
from ksame.models import DlibResNet, OnnxRecogniser, Recogniser, Store, five_points


def check_recogniser(recogniser: Recogniser, picture, points) -> None:
    """What every recogniser must do."""
    assert isinstance(recogniser, Recogniser)
    assert recogniser.name
    assert -1 < recogniser.threshold < 1
    before = picture.copy()
    vector = recogniser.embed(picture, points)
    assert vector.ndim == 1
    assert vector.dtype == np.float64
    assert np.linalg.norm(vector) == pytest.approx(1)
    assert np.array_equal(vector, recogniser.embed(picture, points))
    assert recogniser.embed(picture / 255.0, points) @ vector > 0.999
    assert recogniser.embed(picture[..., :1], points).shape == vector.shape
    assert np.array_equal(picture, before)
    for bad in (np.zeros((5, 3)), np.zeros((4, 2)), np.full((5, 2), np.nan)):
        with pytest.raises(InputError, match=r"five finite points of shape \(5, 2\)"):
            recogniser.embed(picture, bad)


def copies(picture, points):
    """The same person, mirrored and brightened."""
    mirrored = np.ascontiguousarray(picture[:, ::-1])
    order = [1, 0, 2, 4, 3]
    flipped = np.column_stack([picture.shape[1] - 1 - points[order, 0], points[order, 1]])
    bright = (picture.astype(np.float64) * 1.25 + 10).clip(0, 255).astype(np.uint8)
    return [(mirrored, flipped), (bright, points)]


def test_sface_contract(sface, astronaut, mesh):
    check_recogniser(sface, astronaut, five_points(mesh))


def test_sface_sees_what_opencv_sees_in_the_same_file(sface, astronaut, mesh, face):
    network = cv2.FaceRecognizerSF.create(str(Store().path("sface")), "")
    picture = np.ascontiguousarray(astronaut[..., ::-1])
    for points in (five_points(mesh), face.landmarks, face.landmarks + np.array([40, 25])):
        row = np.zeros((1, 15), dtype=np.float32)
        row[0, 4:14] = np.ravel(points)
        vector = network.feature(network.alignCrop(picture, row))[0]
        assert sface.embed(astronaut, points) @ vector / np.linalg.norm(vector) > 0.999


def test_sface_serves_several_threads_and_may_be_forgotten_meanwhile(sface, astronaut, face):
    expected = sface.embed(astronaut, face.landmarks)

    def embed(number):
        if number % 5 == 0:
            sface.forget()
        return sface.embed(astronaut, face.landmarks)

    with ThreadPoolExecutor(3) as pool:
        assert all(np.array_equal(expected, vector) for vector in pool.map(embed, range(12)))


def test_sface_knows_a_mirrored_and_a_brightened_copy(sface, astronaut, mesh, face):
    for points in (five_points(mesh), face.landmarks):
        own = sface.embed(astronaut, points)
        for picture, moved in copies(astronaut, points):
            assert own @ sface.embed(picture, moved) > sface.threshold


def write_onnx(file: Path, shape=("n", 3, 112, 112)) -> None:
    """A network that averages its input over blocks of 8 x 8 pixels."""
    onnx = pytest.importorskip("onnx", reason="needs the extra dev")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("AveragePool", ["x"], ["small"], kernel_shape=[8, 8], strides=[8, 8]),
            helper.make_node("Flatten", ["small"], ["y"]),
        ],
        "toy",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    file.write_bytes(model.SerializeToString())


def test_onnx_contract(tmp_path, astronaut, mesh):
    write_onnx(tmp_path / "mine.onnx")
    recogniser = OnnxRecogniser(tmp_path / "mine.onnx", threshold=0.25)
    assert (recogniser.name, recogniser.threshold) == ("mine", 0.25)
    check_recogniser(recogniser, astronaut, five_points(mesh))


def test_onnx_input_is_the_aligned_face_in_rgb(tmp_path, astronaut, mesh):
    write_onnx(tmp_path / "mine.onnx")
    red = np.zeros_like(astronaut)
    red[..., 0] = 255
    vector = OnnxRecogniser(tmp_path / "mine.onnx").embed(red, five_points(mesh)).reshape(3, -1)
    assert (vector[0] > 0).all()
    assert (vector[1:] < 0).all()


def test_onnx_refuses_a_network_of_another_shape(tmp_path):
    write_onnx(tmp_path / "mine.onnx", ("n", 3, 160, 160))
    with pytest.raises(ModelError, match=r"mine\.onnx.*\(n, 3, 112, 112\), got \('n', 3, 160, 160\)"):
        OnnxRecogniser(tmp_path / "mine.onnx")


def test_onnx_refuses_what_is_no_network(tmp_path):
    with pytest.raises(ModelError, match=r"absent\.onnx: there is no such file"):
        OnnxRecogniser(tmp_path / "absent.onnx")
    (tmp_path / "text.onnx").write_text("hello")
    with pytest.raises(ModelError, match=r"text\.onnx: onnxruntime cannot load"):
        OnnxRecogniser(tmp_path / "text.onnx")
    with pytest.raises(UsageError, match="'threshold' parameter of OnnxRecogniser"):
        OnnxRecogniser(tmp_path / "text.onnx", threshold=2)


def test_a_missing_extra_is_named_with_the_command(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "dlib", None)
    with pytest.raises(ModelError, match=r"pip install 'ksame\[dlib\]'"):
        DlibResNet(Store(tmp_path, offline=True))


@pytest.mark.slow
def test_dlib_contract_and_copies(astronaut, mesh):
    pytest.importorskip("dlib", reason="needs the extra dlib")
    recogniser = DlibResNet()
    points = five_points(mesh)
    check_recogniser(recogniser, astronaut, points)
    own = recogniser.descriptor(astronaut, points)
    for picture, moved in copies(astronaut, points):
        assert np.linalg.norm(own - recogniser.descriptor(picture, moved)) < 0.6
        assert recogniser.embed(astronaut, points) @ recogniser.embed(picture, moved) > recogniser.threshold


@pytest.mark.shared
def test_sface_knows_people_in_another_photograph(shared, sface, detector, face_mesh):
    with (shared / "faces" / "labels.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    probes = [row for row in rows if row["file"].startswith("second/")]
    wanted = {row["subject"] for row in probes}
    gallery = [row for row in rows if row["file"].startswith("portraits/") and row["subject"] in wanted]

    def vectors(chosen):
        for row in chosen:
            picture = cv2.imread(str(shared / "faces" / row["file"]))[..., ::-1]
            yield sface.embed(picture, five_points(face_mesh.fit(picture, detector.detect(picture)[0])))

    likeness = np.array(list(vectors(probes))) @ np.array(list(vectors(gallery))).T
    same = np.array([[probe["subject"] == known["subject"] for known in gallery] for probe in probes])
    assert len(probes) == 46
    assert len(gallery) == 40
    assert (likeness[same] > sface.threshold).mean() >= 0.95
    assert (likeness[~same] > sface.threshold).mean() <= 0.02
    assert same[np.arange(len(probes)), likeness.argmax(axis=1)].mean() >= 0.95
