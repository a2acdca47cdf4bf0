"""The ledger: a second release of the same people is noticed, whatever size and crop, by Python users too."""

import json
import warnings

import cv2
import numpy as np
import pytest

import ksame
from drawn import drawn_faces
from ksame import FaceSet, Template, recipe
from ksame.errors import InputError, OutputError, PrivacyWarning
from ksame.faces.landmarks import eyes_and_nose
from ksame.faces.registration import register
from ksame.privacy import ledger as ledger_module
from ksame.privacy.ledger import Ledger

EARLIER = "of 30 pictures are part of an earlier release"


@pytest.fixture(scope="module")
def people():
    return ksame.synthetic(30, size=(112, 88), seed=5)


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def publish(faces, folder, **params):
    release, linkage = ksame.deidentify(faces, recipe("k-same-pixel", **{"k": 3, **params}))
    ksame.write_release(release, folder)
    return release, linkage


def resized(faces, width, height):
    """The same pictures smaller, as registered faces without landmarks."""
    smaller = [cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA) for image in faces.images]
    return FaceSet(np.stack(smaller).clip(0, 1), faces.subjects)


def registered(faces, width, height):
    """The same pictures cut out by eyes and nose, as ``--size`` does."""
    template = Template.eyes_and_nose(width, height)
    cut = [register(i, p, template) for i, p in zip(faces.images, eyes_and_nose(faces.landmarks), strict=True)]
    points = [move.apply(p) for (_, move), p in zip(cut, eyes_and_nose(faces.landmarks), strict=True)]
    return FaceSet(np.stack([image for image, _ in cut]), faces.subjects, np.stack(points))


def grey(faces):
    return FaceSet(faces.images.mean(axis=3, keepdims=True), faces.subjects, faces.landmarks)


@pytest.mark.parametrize(
    "again",
    [
        lambda faces: registered(faces, 99, 134),
        lambda faces: registered(faces, 40, 54),
        lambda faces: registered(faces, 64, 64),
        grey,
        lambda faces: faces.take(np.arange(len(faces))[::-1]),
    ],
    ids=["99x134", "40x54", "64x64", "grey", "reversed"],
)
def test_the_same_pictures_are_known_at_another_size_crop_and_colour(people, tmp_path, again):
    publish(people, tmp_path / "1")
    with pytest.warns(PrivacyWarning, match=f"(2[89]|30) {EARLIER}"):
        release, _ = publish(again(people), tmp_path / "2", k=4)
    assert "earlier release" in release.certificate.warnings[-1]


def test_registered_faces_without_landmarks_are_known_at_another_size(people, tmp_path):
    faces = registered(people, 99, 134)
    publish(FaceSet(faces.images, faces.subjects), tmp_path / "1")
    with pytest.warns(PrivacyWarning, match=f"30 {EARLIER}"):
        publish(resized(faces, 50, 67), tmp_path / "2", k=4)


def test_other_people_are_not_taken_for_them(people, tmp_path):
    publish(people, tmp_path / "1")
    others = ksame.synthetic(90, size=(112, 88), seed=5).take(np.arange(30, 90))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        publish(others, tmp_path / "2", k=4)


def test_one_trial_after_the_other_is_no_release(people):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in (3, 4, 5):
            ksame.deidentify(people, recipe("k-same-pixel", k=k))


def test_the_same_release_again_and_one_that_continues_it_do_not_warn(people, tmp_path):
    release, linkage = publish(people, tmp_path / "1")
    ksame.write_release(release, tmp_path / "copy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ksame.deidentify(people, recipe("k-same-pixel", k=3), after=linkage)
        ksame.deidentify(people, recipe("k-same-pixel", k=3), seed=linkage.seed)


def test_without_the_key_the_ledger_says_nothing_of_a_picture(people, tmp_path, state):
    publish(people, tmp_path / "1")
    assert {p.name: p.stat().st_mode & 0o777 for p in state.iterdir()} == {"key": 0o600, "released.jsonl": 0o600}
    (line,) = (state / "released.jsonl").read_text().splitlines()
    assert set(json.loads(line)) == {"release", "faces"}
    other = Ledger(tmp_path / "elsewhere")
    other.prints(people.take([0]))  # makes another key
    (tmp_path / "elsewhere" / "released.jsonl").write_text(line + "\n")
    assert other.earlier(other.prints(people), "") == 0


def test_what_ksame_0_1_remembered_is_known_at_its_own_size(people, tmp_path, state):
    publish(people, tmp_path / "1")
    record = json.loads((state / "released.jsonl").read_text())
    old = {"release": record["release"], "faces": [face[-32:] for face in record["faces"]]}
    (state / "released.jsonl").write_text(json.dumps(old) + "\n")
    with pytest.warns(PrivacyWarning, match=f"30 {EARLIER}"):
        ksame.deidentify(people, recipe("k-same-pixel", k=4))


def test_a_key_that_others_can_read_is_closed_again(people, state):
    ledger = Ledger()
    first = ledger.prints(people.take([0]))
    (state / "key").chmod(0o644)
    assert ledger.prints(people.take([0])) == first
    assert (state / "key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "line",
    [
        *("no json", "[]", "{}", '{"release": 1, "faces": 7}', "\x00", '{"release": "a", "faces"'),
        json.dumps({"release": "a", "faces": ["g" * 32]}),
    ],
)
def test_a_damaged_line_is_named_and_nothing_is_released(people, tmp_path, state, line):
    publish(people, tmp_path / "1")
    with (state / "released.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match=r"released.jsonl, line 2: the memory of earlier releases cannot be read"):
        ksame.deidentify(people, recipe("k-same-pixel", k=4))


def test_a_lost_key_and_a_closed_ledger_are_errors_too(people, tmp_path, state):
    publish(people, tmp_path / "1")
    key = (state / "key").read_bytes()
    (state / "key").unlink()
    with pytest.raises(InputError, match="the key is gone"):
        ksame.deidentify(people, recipe("k-same-pixel", k=4))
    (state / "key").write_bytes(key)
    (state / "released.jsonl").unlink()
    (state / "released.jsonl").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        ksame.deidentify(people, recipe("k-same-pixel", k=4))


def test_a_key_that_cannot_be_read_is_an_error_where_there_is_a_ledger(people, tmp_path, state):
    publish(people, tmp_path / "1")
    (state / "key").unlink()
    (state / "key").mkdir()
    with pytest.raises(InputError, match="nothing is released"):
        ksame.deidentify(people, recipe("k-same-pixel", k=4))


def test_trials_ask_and_remember_nothing(people, tmp_path, state):
    release, _ = ksame.deidentify(people, recipe("k-same-pixel", k=3), remember=False)
    ksame.write_release(release, tmp_path / "out")
    assert not state.exists()


def test_tiny_and_flat_pictures_have_prints():
    faces = FaceSet(np.linspace(0, 1, 2 * 9 * 9).reshape(2, 9, 9, 1), ["a", "b"], np.zeros((2, 3, 2)))
    assert len(Ledger().prints(faces)) == 2
    assert len(Ledger().prints(drawn_faces(2, width=24, height=32))) == 2


def test_who_waits_in_a_series_was_not_released_and_is_not_remembered(people, tmp_path):
    _, first = publish(people.take(np.arange(20)), tmp_path / "1")
    release, second = ksame.deidentify(people.take(np.arange(22)), recipe("k-same-pixel", k=3), after=first)
    ksame.write_release(release, tmp_path / "2")
    assert len(second.withheld) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ksame.deidentify(people, recipe("k-same-pixel", k=3), after=second)


def test_newcomers_of_a_series_who_are_in_another_release_are_warned_of(people, tmp_path):
    _, first = publish(people.take(np.arange(20)), tmp_path / "1")
    publish(people.take(np.arange(20, 30)), tmp_path / "2")
    with pytest.warns(PrivacyWarning, match=f"10 {EARLIER}"):
        ksame.deidentify(people, recipe("k-same-pixel", k=3), after=first)


@pytest.fixture
def two():
    return drawn_faces(2, width=24, height=32)


def test_a_ledger_is_for_its_owner_only(two, tmp_path):
    ledger = Ledger(tmp_path / "new" / "folder")
    ledger.record(ledger.prints(two), "first")
    modes = [path.stat().st_mode & 0o777 for path in (ledger.folder, ledger.folder / "key", ledger.file)]
    assert modes == [0o700, 0o600, 0o600]


def test_what_cannot_be_asked_is_no_no(two, tmp_path):
    ledger = Ledger(tmp_path)
    prints = ledger.prints(two)
    ledger.file.mkdir()
    with pytest.raises(InputError):
        ledger.earlier(prints, "")
    (tmp_path / "key").unlink()
    with pytest.raises(InputError):
        ledger.prints(two)


def test_old_and_new_lines_are_known_side_by_side(two, tmp_path):
    ledger = Ledger(tmp_path)
    first, second = ledger.prints(two)
    ledger.record([first[-32:]], "0.1")
    ledger.record([second], "later")
    assert ledger.earlier([first, second], "") == 2
    assert ledger.earlier([first, second], "later") == 1


def test_of_two_processes_that_make_a_key_the_faster_wins(two, tmp_path, monkeypatch):
    def slower(path, data, **how):
        path.write_bytes(b"k" * 32)
        raise OutputError("exists")

    monkeypatch.setattr(ledger_module, "write_atomic", slower)
    raced = Ledger(tmp_path / "raced").prints(two)
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "key").write_bytes(b"k" * 32)
    assert raced == Ledger(tmp_path / "given").prints(two)


def test_a_key_that_cannot_be_made_is_no_key(two, tmp_path, monkeypatch):
    def full(path, data, **how):
        raise OutputError("the disk is full")

    monkeypatch.setattr(ledger_module, "write_atomic", full)
    with pytest.raises(OSError, match="full"):
        Ledger(tmp_path).prints(two)


@pytest.mark.parametrize("light", [0.3, np.linspace(0, 0.1, 24)[None, :, None]], ids=["brighter", "from one side"])
def test_pictures_are_known_in_another_light(two, tmp_path, light):
    (tmp_path / "key").write_bytes(b"k" * 32)
    ledger = Ledger(tmp_path)
    ledger.record(ledger.prints(two), "first")
    lit = ledger.prints(FaceSet(two.images / 2 + light, two.subjects, two.landmarks))
    assert ledger.earlier(lit, "") == 2
