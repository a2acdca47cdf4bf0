"""Frames rendered: kept, replaced, masked, filled, within a span; people over a batch."""

import numpy as np
import pytest

from ksame.errors import UsageError
from ksame.heads.surrogate import ORDINARY, draw_surrogate
from ksame.scene.decide import Decision, Treatment, treatments
from ksame.scene.render import Renderer
from ksame.scene.track import find_tracks, join_files
from ksame.scene.track.tracks import Person, Tracks
from scene.walkers import background, clip, paste


@pytest.fixture(scope="module")
def scene():
    """Six frames in which one person moves to the right, and who is where in them."""
    pictures = []
    for i in range(6):
        frame = background((320, 240))
        paste(frame, 1, (130 + 4 * i, 120), 190)
        pictures.append(frame)
    frames = list(clip(pictures))
    return frames, find_tracks(lambda start: frames, (320, 240))


def renderer(scene, decision, **options):
    _, cast = scene
    return Renderer(cast, {person.name: decision for person in cast.people}, **options)


def replace(seed=0):
    return Decision(Treatment.REPLACE, draw_surrogate(False, 1970.0, ORDINARY, np.random.default_rng(seed)))


def test_whoever_is_kept_is_kept_to_the_bit(scene):
    assert np.array_equal(renderer(scene, Decision(Treatment.KEEP)).render(scene[0][2]), scene[0][2].pixels)


def test_everyone_is_replaced_in_every_frame_and_the_frames_stay_as_they_were(scene):
    frames = scene[0]
    before = [frame.pixels.copy() for frame in frames]
    new = renderer(scene, replace())
    for frame, old in zip(frames, before, strict=True):
        made = new.render(frame)
        assert (made != old).any(axis=2).mean() > 0.03
        assert np.array_equal(frame.pixels, old)
        assert new.masked_instead(frame.index, frame.time) == []


def test_frames_do_not_depend_on_those_before(scene):
    frames = scene[0]
    whole = renderer(scene, replace())
    made = [whole.render(frame) for frame in frames]
    assert np.array_equal(renderer(scene, replace()).render(frames[4]), made[4])


def test_a_new_face_does_not_flicker(scene):
    frames = scene[0]
    new = renderer(scene, replace())
    made = [new.render(frame).astype(float).mean() for frame in frames]
    old = [frame.pixels.astype(float).mean() for frame in frames]
    assert np.abs(np.diff(np.subtract(made, old))).max() < 0.5  # from frame to frame; what surrounds it changes too


def test_only_frames_within_the_span_change(scene):
    frames = scene[0]
    new = renderer(scene, replace(), span=(0.07, 0.13))
    changed = [not np.array_equal(new.render(frame), frame.pixels) for frame in frames]
    assert changed == [False, False, True, True, False, False]


def test_a_region_is_filled_where_nobody_is(scene):
    frame = scene[0][0]
    made = renderer(scene, Decision(Treatment.KEEP), regions=[(5, 5, 30, 20)]).render(frame)
    assert not np.array_equal(made[5:25, 5:35], frame.pixels[5:25, 5:35])
    assert np.array_equal(made[60:, 60:], frame.pixels[60:, 60:])


def test_whoever_cannot_be_replaced_is_masked_and_named(scene):
    frame = scene[0][1]
    new = renderer(scene, Decision(Treatment.MASK, masked_instead=True))
    made = new.render(frame)
    face = scene[1].at(frame.index)[0]
    x, y, width, height = (round(side) for side in face.box)
    middle = np.s_[y + height // 4 : y + height * 3 // 4, x + width // 4 : x + width * 3 // 4]
    assert made[middle].astype(float).std(axis=(0, 1)).max() < frame.pixels[middle].astype(float).std(axis=(0, 1)).max()
    (masked,) = new.masked_instead(frame.index, frame.time)
    assert (masked.frame, masked.person) == (1, face.person)
    assert "recogniser" in masked.reason


def person(name, vector):
    return Person(name, None if vector is None else np.array(vector, dtype=float))


def cast_of(*people):
    return Tracks((10, 10), 1, people, ())


def test_the_same_person_has_one_name_in_all_files():
    a, b = [1.0, 0, 0], [0, 1.0, 0]
    people = join_files(
        [cast_of(person("P1", a), person("P2", b)), cast_of(person("P1", b)), cast_of(person("P1", a))], 0.45
    )
    assert people.names[0, "P1"] == people.names[2, "P1"]
    assert people.names[0, "P2"] == people.names[1, "P1"]
    assert len(people.ordered) == 2


def test_a_group_does_not_grow_because_its_mean_is_near_to_everybody():
    # the first two are one person (0.5); the third is at 0.4 from both, but at 0.46 from their mean
    vectors = ([1.0, 0, 0], [0.5, 0.866, 0], [0.4, 0.231, 0.887])
    people = join_files([cast_of(person("P1", vector)) for vector in vectors], 0.45)
    assert people.names[0, "P1"] == people.names[1, "P1"]
    assert len(people.ordered) == 2


def test_two_people_of_one_picture_are_two_however_alike():
    people = join_files([cast_of(person("P1", [1.0, 0]), person("P2", [1.0, 0]))], 0.45)
    assert len(people.ordered) == 2


def test_the_names_of_one_file_are_the_names_of_the_batch():
    names = ("P2", "P10", "the guest")
    people = join_files([cast_of(*(person(name, [1.0, 0] if name == "P10" else None) for name in names))], 0.45)
    assert people.names == {(0, name): name for name in names}
    assert people.ordered == names
    assert people.unmatched == {"P2", "the guest"}


def test_nobody_without_an_embedding_is_joined():
    people = join_files([cast_of(person("P1", None)), cast_of(person("P1", None))], 0.45)
    assert len(people.ordered) == 2


def test_only_means_everyone_else_is_kept():
    wishes = treatments(("P1", "P2"), only=("P2",))
    assert wishes == {"P1": Treatment.KEEP, "P2": Treatment.REPLACE}


def test_only_does_not_keep_whoever_may_be_one_of_them():
    people = join_files([cast_of(person("P1", [1.0, 0]), person("P2", [0, 1.0]), person("P3", None))], 0.45)
    wishes = treatments(people.ordered, only=("P1",), unmatched=people.unmatched)
    kept = {name for name, wish in wishes.items() if wish is Treatment.KEEP}
    assert len(people.unmatched) == 1
    assert kept == set(people.ordered) - {"P1"} - people.unmatched


def test_unknown_people_are_refused_and_named():
    with pytest.raises(UsageError, match="no P7 here. People found: P1, P2"):
        treatments(("P1", "P2"), keep=("P7",))
    with pytest.raises(UsageError, match="one of"):
        treatments(("P1", "P2"), keep=("P1",), mask=("P1",))
