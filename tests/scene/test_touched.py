"""Bits that the renderer never sees come from the source only where it answers for nothing."""

import numpy as np
import pytest

from ksame.heads.invention import taken_away
from ksame.heads.surrogate import ORDINARY, draw_surrogate
from ksame.scene.decide import Decision, Treatment
from ksame.scene.media import Frame
from ksame.scene.render import Mask, Renderer, changed_region
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
    renderer = Renderer(face_at(), {"P1": Decision(Treatment.MASK)}, Mask(method))
    flat = Frame(0, 0.0, np.zeros((80, 96, 3), dtype=np.uint8))
    rendered = renderer.render(flat)
    touched = changed_region(renderer, flat, rendered)
    np.testing.assert_array_equal(rendered, flat.pixels)
    assert touched[20:50, 30:54].all()
    assert not touched[:, :8].any()


def test_whatever_changes_is_touched_and_whoever_is_kept_is_not():
    noise = Frame(0, 0.0, np.random.default_rng(1).integers(0, 256, (80, 96, 3), dtype=np.uint8))
    renderer = Renderer(face_at(), {"P1": Decision(Treatment.KEEP)}, regions=[(5, 60, 10, 10)])
    rendered = renderer.render(noise)
    touched = changed_region(renderer, noise, rendered)
    assert touched[(rendered != noise.pixels).any(axis=2)].all()
    assert touched[61:70, 6:15].all()
    assert not touched[20:50, 30:54].any()
    late = Renderer(face_at(), {"P1": Decision(Treatment.MASK)}, span=(1.0, 2.0))
    assert not changed_region(late, noise, late.render(noise)).any()


def test_the_whole_region_of_an_invented_head_is_touched():
    picture = background((420, 260))
    paste(picture, 1, (200, 130), 180)
    cast = find_tracks(lambda start: clip([picture]), (420, 260))
    frame = Frame(0, 0.0, picture)
    (person,) = cast.people
    decision = Decision(Treatment.REPLACE, draw_surrogate(False, 1970.0, ORDINARY, np.random.default_rng(0)))
    renderer = Renderer(cast, {person.name: decision})
    rendered = renderer.render(frame)
    touched = changed_region(renderer, frame, rendered)
    assert (rendered != frame.pixels).any()
    (head,) = renderer.plan(0, 0.0).heads.values()
    assert touched[taken_away(picture.shape, [head.region.outline])].all()
    assert touched.mean() < 0.7
