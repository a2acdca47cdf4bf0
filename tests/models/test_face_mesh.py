import zipfile
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest

from ksame.errors import InputError, ModelError
from ksame.models import BLENDSHAPES, Face, Store, five_points
from ksame.models.landmarker import canonical_head, read_landmarker
from ksame.models.pose import Pose, estimate_pose, rotation


def between_eyes(mesh):
    eyes = five_points(mesh)[:2]
    return float(np.hypot(*(eyes[1] - eyes[0])))


def test_the_tables_have_the_networks_sizes():
    assert len(BLENDSHAPES) == len(set(BLENDSHAPES)) == 52
    assert BLENDSHAPES[0] == "_neutral"
    points = canonical_head().blendshape_points
    assert list(points) == sorted(set(points))
    assert len(points) == 146
    assert points[-1] == 477


def test_the_canonical_head_is_the_one_in_the_networks_file(face_mesh):
    from tools.canonical_head import BLENDSHAPE_POINTS, geometry

    with zipfile.ZipFile(Store().path("face-landmarker")) as archive:
        points, triangles, weights = geometry(archive.read("geometry_pipeline_metadata_landmarks.binarypb"))
    head = canonical_head()
    np.testing.assert_array_equal(head.points, points)
    np.testing.assert_array_equal(head.triangles, triangles)
    np.testing.assert_array_equal(head.weights, weights)
    assert tuple(head.blendshape_points) == BLENDSHAPE_POINTS


def test_points_lie_on_the_face(mesh, face):
    assert mesh.points.shape == (478, 3)
    assert mesh.presence > 0.99
    x, y, width, height = face.box
    inside = (mesh.points[:, :2] > [x - 0.2 * width, y - 0.2 * height]) & (
        mesh.points[:, :2] < [x + 1.2 * width, y + 1.2 * height]
    )
    assert inside.all()
    assert np.abs(five_points(mesh) - face.landmarks).max() < 0.2 * between_eyes(mesh)
    assert mesh.points[4, 2] < mesh.points[[234, 454], 2].min(), "the nose is nearer than the ears"


def weight(mesh, name):
    """Return an expression weight by its name."""
    return mesh.blendshapes[BLENDSHAPES.index(name)]


def test_a_smile_is_seen(mesh):
    assert mesh.blendshapes.shape == (52,)
    assert ((mesh.blendshapes >= 0) & (mesh.blendshapes <= 1)).all()
    assert min(weight(mesh, "mouthSmileLeft"), weight(mesh, "mouthSmileRight")) > 0.5
    assert weight(mesh, "mouthSmileLeft") > weight(mesh, "_neutral")
    assert max(weight(mesh, "jawOpen"), weight(mesh, "eyeBlinkLeft")) < 0.3


def test_somebody_who_looks_at_the_camera_is_frontal(mesh):
    assert abs(mesh.pose.yaw) < 8
    assert abs(mesh.pose.pitch) < 15
    assert abs(mesh.pose.roll) < 8


@pytest.mark.parametrize("angle", [-40, 25, 180])
def test_a_turned_picture_turns_the_points_and_the_roll(angle, astronaut, mesh, detector, face_mesh):
    middle = tuple(five_points(mesh)[2])
    turn = cv2.getRotationMatrix2D(middle, -angle, 1.0)  # OpenCV counts counter-clockwise
    picture = cv2.warpAffine(astronaut, turn, (512, 512))
    found = detector.detect(picture, rotations=(90, 180, 270))[0]
    turned = face_mesh.fit(picture, found)
    expected = mesh.points[:, :2] @ turn[:, :2].T + turn[:, 2]
    assert np.abs(turned.points[:, :2] - expected).mean() < 0.04 * between_eyes(mesh)
    off = (turned.pose.roll - mesh.pose.roll - angle + 180) % 360 - 180
    assert abs(off) < 4
    assert turned.pose.yaw == pytest.approx(mesh.pose.yaw, abs=5)


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_a_scaled_picture_scales_the_points(scale, astronaut, mesh, detector, face_mesh):
    picture = cv2.resize(astronaut, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    scaled = face_mesh.fit(picture, detector.detect(picture)[0])
    back = (scaled.points[:, :2] + 0.5) / scale - 0.5
    assert np.abs(back - mesh.points[:, :2]).mean() < 0.03 * between_eyes(mesh)
    assert scaled.points[:, 2] / scale == pytest.approx(mesh.points[:, 2], abs=0.15 * between_eyes(mesh))


def test_a_mirrored_picture_mirrors_yaw_roll_and_expression(astronaut, mesh, detector, face_mesh):
    picture = np.ascontiguousarray(astronaut[:, ::-1])
    mirrored = face_mesh.fit(picture, detector.detect(picture)[0])
    assert mirrored.pose.yaw == pytest.approx(-mesh.pose.yaw, abs=4)
    assert mirrored.pose.roll == pytest.approx(-mesh.pose.roll, abs=4)
    assert weight(mirrored, "mouthSmileLeft") == pytest.approx(weight(mesh, "mouthSmileRight"), abs=0.15)


def test_follows_a_face_that_moved_a_little(astronaut, mesh, face_mesh):
    shift = np.array([0.15 * between_eyes(mesh), -0.1 * between_eyes(mesh)])
    moved = cv2.warpAffine(astronaut, np.column_stack([np.eye(2), shift]), (512, 512))
    followed = face_mesh.follow(moved, mesh)
    assert followed.presence > 0.99
    assert np.abs(followed.points[:, :2] - mesh.points[:, :2] - shift).mean() < 0.03 * between_eyes(mesh)


def test_where_there_is_no_face_presence_is_low(face_mesh):
    points = np.array([[40.0, 40], [60, 40], [50, 50], [42, 60], [58, 60]])
    nothing = face_mesh.fit(np.full((100, 100, 3), 90, np.uint8), Face((25, 25, 50, 50), points, 1.0))
    assert nothing.presence < 0.5
    assert np.isfinite(nothing.points).all()


def test_a_face_at_the_edge_of_the_picture(astronaut, face, face_mesh, detector):
    picture = astronaut[: round(face.landmarks[2, 1]) + 25, round(face.landmarks[0, 0]) - 15 :]
    found = detector.detect(picture)
    assert len(found) == 1
    assert face_mesh.fit(picture, found[0]).presence > 0.9


def test_threads_agree_with_one_another(astronaut, face, mesh, face_mesh):
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: face_mesh.fit(astronaut, face).points, range(12)))
    assert all(np.array_equal(points, mesh.points) for points in results)


@pytest.mark.parametrize("pose", [Pose(0, 0, 0), Pose(30, 0, 0), Pose(0, 25, 0), Pose(0, 0, -60), Pose(-40, 15, 110)])
def test_a_known_turn_of_the_canonical_head_is_found(pose):
    head = canonical_head()
    seen = 55 * (head.points @ rotation(pose).T) * [1, -1, -1] + [300, 200, 0]
    found = estimate_pose(seen, head.points, head.weights)
    assert [found.yaw, found.pitch, found.roll] == pytest.approx([pose.yaw, pose.pitch, pose.roll], abs=1e-6)


def test_the_signs_of_a_turn():
    head = canonical_head().points

    def nose(**turn):
        """Where the nose goes, seen from the middle of the head: x to the right of the picture, y down."""
        turned = (head - head.mean(axis=0)) @ rotation(Pose(**{"yaw": 0, "pitch": 0, "roll": 0, **turn})).T
        return turned[4, 0], -turned[4, 1]

    straight = nose()
    assert nose(yaw=20)[0] > straight[0] + 1, "towards the right of the picture"
    assert nose(pitch=20)[1] < straight[1] - 1, "up"
    eye_line = (head[263] - head[33]) @ rotation(Pose(0, 0, 20)).T
    assert np.degrees(np.arctan2(-eye_line[1], eye_line[0])) == pytest.approx(20), "clockwise in the picture"


def test_the_surface_is_made_of_the_meshs_points(face_mesh):
    triangles = face_mesh.triangles
    assert triangles.shape == (898, 3)
    assert set(triangles.ravel()) == set(range(468))


def test_five_points_refuses_other_shapes():
    with pytest.raises(InputError, match=r"\(478, 2 or 3\). Got \(68, 2\)"):
        five_points(np.zeros((68, 2)))


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "face_landmarker.task").write_bytes(b"no zip")
    with pytest.raises(ModelError, match=r"face_landmarker\.task: expected the parts"):
        read_landmarker(tmp_path / "face_landmarker.task")


@pytest.mark.shared
def test_portraits_have_a_mesh_and_yaw_follows_the_nose(shared, detector, face_mesh):
    yaws, offsets = [], []
    for file in sorted((shared / "faces" / "portraits").glob("*.jpg"))[::6]:
        picture = cv2.imread(str(file))[..., ::-1]
        mesh = face_mesh.fit(picture, detector.detect(picture)[0])
        assert mesh.presence > 0.99, file.name
        left, right, nose = five_points(mesh)[:3]
        across = (right - left) / np.hypot(*(right - left))
        yaws.append(mesh.pose.yaw)
        offsets.append((nose - (left + right) / 2) @ across / np.hypot(*(right - left)))
    assert np.corrcoef(yaws, offsets)[0, 1] > 0.9
    assert np.median(np.abs(yaws)) < 10
