"""Bits that the composer never sees come from the source only where it answers for nothing."""

import numpy as np
import pytest

from ksame.heads.invention import taken_away
from ksame.heads.surrogate import draw_surrogate
from ksame.scene.composing import Composer, Plan, Treatment
from ksame.scene.masking import Mask
from ksame.scene.media import Frame
from ksame.scene.touched import Touched
from ksame.scene.track import find_tracks
from ksame.scene.track.tracks import Person, Track, Tracks
from scene.walkers import background, clip, paste


def face_at(points=None):
    n = 1
    mesh = np.full((n, 478, 3), np.nan, dtype=np.float32) if points is None else points
    boxes = np.array([[30, 20, 24, 30]], dtype=np.float32)
    rest = np.zeros((n, 52), dtype=np.float32), np.zeros((n, 3), dtype=np.float32), np.zeros(n, dtype=np.uint8)
    return Tracks((96, 80), 1, (Person("P1", None),), (Track(1, "P1", 0, boxes, mesh, *rest),))


@pytest.mark.parametrize("method", ["fill", "blackout", "pixelate", "blur"])
def test_a_flat_face_is_touched_although_nothing_changes(method):
    composer = Composer(face_at(), {"P1": Plan(Treatment.MASK)}, Mask(method))
    flat = Frame(0, 0.0, np.zeros((80, 96, 3), dtype=np.uint8))
    composed = composer.compose(flat)
    touched = Touched(composer).of(flat, composed)
    np.testing.assert_array_equal(composed, flat.pixels)
    assert touched[20:50, 30:54].all()
    assert not touched[:, :8].any()


def test_whatever_changes_is_touched_and_whoever_is_kept_is_not():
    noise = Frame(0, 0.0, np.random.default_rng(1).integers(0, 256, (80, 96, 3), dtype=np.uint8))
    corners = np.array([[5, 60], [15, 60], [15, 70], [5, 70]], dtype=float)
    composer = Composer(face_at(), {"P1": Plan(Treatment.KEEP)}, regions=[corners])
    composed = composer.compose(noise)
    touched = Touched(composer).of(noise, composed)
    assert touched[(composed != noise.pixels).any(axis=2)].all()
    assert touched[61:70, 6:15].all()
    assert not touched[20:50, 30:54].any()
    late = Composer(face_at(), {"P1": Plan(Treatment.MASK)}, span=(1.0, 2.0))
    assert not Touched(late).of(noise, late.compose(noise)).any()


def test_the_whole_region_of_an_invented_head_is_touched():
    picture = background((420, 260))
    paste(picture, 1, (200, 130), 180)
    cast = find_tracks(lambda start: clip([picture]), (420, 260))
    frame = Frame(0, 0.0, picture)
    (person,) = cast.people
    plan = Plan(Treatment.REPLACE, draw_surrogate(False, 1970.0, -0.5, np.random.default_rng(0)))
    composer = Composer(cast, {person.name: plan})
    composed = composer.compose(frame)
    touched = Touched(composer).of(frame, composed)
    assert (composed != frame.pixels).any()
    (face,) = cast.at(0)
    assert touched[taken_away(picture.shape, [composer._invention(face).invention.region.outline])].all()
    assert touched.mean() < 0.7
