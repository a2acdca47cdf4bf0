import cv2
import numpy as np
import pytest

from ksame.errors import InputError, UsageError
from ksame.models import detect
from ksame.models.pictures import as_rgb8


def head(astronaut, face, side):
    """The astronaut's head with its surroundings, scaled so that the face is ``side`` pixels wide."""
    x, y, width, height = (round(value) for value in face.box)
    crop = astronaut[y - height // 2 : y + 3 * height // 2, x - width // 2 : x + 3 * width // 2]
    scale = side / width
    return cv2.resize(crop, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)


def meadow(height, width):
    """A picture without faces: soft coloured noise."""
    noise = np.random.default_rng(5).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return cv2.GaussianBlur(noise, (0, 0), 5)


def paste(picture, patch, left, top):
    picture[top : top + patch.shape[0], left : left + patch.shape[1]] = patch
    return left + patch.shape[1] / 2, top + patch.shape[0] / 2


def centre(detection):
    x, y, width, height = detection.box
    return x + width / 2, y + height / 2


def test_finds_the_one_face_and_its_points(face, detector, astronaut):
    assert len(detector.detect(astronaut)) == 1
    assert face.score > 0.9
    assert centre(face) == pytest.approx((223, 118), abs=6)
    (left_eye, right_eye, nose, left_mouth, right_mouth) = face.landmarks
    assert left_eye[0] < nose[0] < right_eye[0]
    assert left_mouth[0] < nose[0] < right_mouth[0]
    assert max(left_eye[1], right_eye[1]) < nose[1] < min(left_mouth[1], right_mouth[1])


@pytest.mark.parametrize("kind", ["float", "grey", "grey with a channel", "odd size", "view"])
def test_takes_every_kind_of_picture(kind, detector, astronaut, face):
    grey = astronaut.mean(axis=2).astype(np.uint8)
    picture = {
        "float": astronaut / 255.0,
        "grey": grey,
        "grey with a channel": grey[..., None],
        "odd size": astronaut[:333, :401],
        "view": np.asfortranarray(astronaut),
    }[kind]
    before = picture.copy()
    found = detector.detect(picture)
    assert len(found) == 1
    assert centre(found[0]) == pytest.approx(centre(face), abs=6)
    assert np.array_equal(picture, before)


@pytest.mark.parametrize("shape", [(1, 1), (3, 500), (500, 3), (32, 400), (17, 33, 3), (64, 64, 1)])
def test_a_picture_without_a_face_gives_an_empty_list(shape, detector):
    assert detector.detect(np.zeros(shape), rotations=(90, 180, 270), min_face=12) == []


@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_a_turned_picture_gives_the_same_face_turned(quarter, detector, astronaut, face):
    found = detector.detect(np.rot90(astronaut, quarter), rotations=(90, 180, 270))
    assert len(found) == 1
    last = len(astronaut) - 1
    x, y = face.landmarks.T
    expected = {1: (y, last - x), 2: (last - x, last - y), 3: (last - y, x)}[quarter]
    assert found[0].landmarks == pytest.approx(np.column_stack(expected), abs=1e-3)


@pytest.mark.parametrize("side", [12, 14])
def test_tiny_faces_in_a_large_frame(side, detector, astronaut, face):
    frame = meadow(1080, 1920)
    where = [paste(frame, head(astronaut, face, side), left, top) for left, top in [(37, 900), (1500, 60)]]
    found = sorted(centre(detection) for detection in detector.detect(frame, tiny=True))
    assert len(found) == 2
    assert np.array(found) == pytest.approx(np.array(where), abs=side / 2)


@pytest.mark.parametrize("side", [40, 100, 200, 500])
def test_one_face_across_the_edge_of_two_tiles_is_one_face(side, detector, astronaut, face):
    picture = meadow(1500, 3000)
    patch = head(astronaut, face, side)
    where = paste(picture, patch, 1500 - patch.shape[1] // 2, 100)
    found = detector.detect(picture)
    assert len(found) == 1
    assert centre(found[0]) == pytest.approx(where, abs=side / 4)
    assert found[0].box[2] == pytest.approx(side, rel=0.25)


def seen(box, score):
    """A row as the network gives it, with all five points in the middle of the box."""
    x, y, width, height = box
    return np.array([[*box, *[x + width / 2, y + height / 2] * 5, score]], dtype=np.float64)


def test_a_box_cut_by_a_tile_gives_way_to_the_whole_face(detector, monkeypatch):
    def network(tile, score):
        if tile.shape[1] == 1164:  # either of the two tiles: surer of the part it sees than of the whole
            return seen((1050, 100, 114, 240), 0.99)
        return seen((285, 25, 60, 60), 0.7) if tile.shape[1] == 550 else np.empty((0, 15))

    monkeypatch.setattr(detector._network, "detect", network)
    found = detector.detect(np.zeros((300, 2200, 3), np.uint8))
    lefts = [detection.box[0] for detection in found]
    assert lefts == pytest.approx([1036 + 1050, 285 * 4 + 1.5]), "the right tile's own edge is the picture's"


def test_a_face_too_large_for_the_network_is_taken_from_the_reduced_copy(detector, monkeypatch):
    def network(tile, score):
        if tile.shape[1] == 1000:
            return seen((200, 300, 600, 330), 0.99)
        return seen((50, 50, 150, 190), 0.7) if tile.shape[1] == 250 else np.empty((0, 15))

    monkeypatch.setattr(detector._network, "detect", network)
    found = detector.detect(np.zeros((1000, 1000, 3), np.uint8))
    assert [detection.box[2:] for detection in found] == [(600, 760)]


def test_min_face_leaves_small_faces_out(detector, astronaut, face):
    assert len(detector.detect(astronaut, min_face=40)) == 1
    assert detector.detect(astronaut, min_face=400) == []


def test_the_module_has_a_detector_of_its_own(astronaut, face):
    assert detect(astronaut)[0].box == face.box


def test_points_are_read_only(face):
    with pytest.raises(ValueError, match="read-only"):
        face.landmarks[0, 0] = 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_face": 0}, "'min_face' parameter of detect must be a number of at least 1. Got 0"),
        ({"score": 0}, "'score' parameter of detect must be a number in .0, 1.. Got 0"),
        ({"score": 1.5}, "'score' parameter"),
        ({"rotations": (45,)}, r"quarter turns out of 90, 180 and 270. Got \(45,\)"),
    ],
)
def test_bad_parameters(options, message, detector, astronaut):
    with pytest.raises(UsageError, match=message):
        detector.detect(astronaut, **options)


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        (np.zeros((4, 4, 4), np.uint8), r"Got \(4, 4, 4\)"),
        (np.zeros((0, 4, 3), np.uint8), r"Got \(0, 4, 3\)"),
        (np.zeros((4, 4), np.int32), "Got int32"),
        (np.full((4, 4), 200.0), "from 200 to 200"),
        (np.full((4, 4), np.nan), "from nan to nan"),
    ],
)
def test_bad_pictures(picture, message):
    with pytest.raises(InputError, match=message):
        as_rgb8(picture)


@pytest.mark.shared
@pytest.mark.slow
def test_finds_the_face_of_every_portrait(shared, detector):
    files = sorted((shared / "faces" / "portraits").glob("*.jpg"))
    counts = [len(detector.detect(cv2.imread(str(file))[..., ::-1])) for file in files]
    assert len(counts) == 600
    assert np.mean(np.array(counts) == 1) >= 0.995
