"""Masks: they cover all of a face, and the plain fill keeps nothing of it."""

import numpy as np
import pytest

from ksame.errors import UsageError
from ksame.models import Face, Mesh, Pose
from ksame.recipes import METHODS
from ksame.scene.render import FILL, Mask, fill, outline_of, rectangle
from ksame.scene.render.filling import inside_outline
from scene.walkers import background, paste

MASKS = [entry.name for entry in METHODS.values() if entry.masks]
BOX = (110.0, 60.0, 50.0, 60.0)


def tracked(points=None):
    mesh = None if points is None else Mesh(points, 1.0, np.zeros(52), Pose(0, 0, 0))
    return Face(BOX, mesh=mesh, confirmed=True)


@pytest.fixture
def picture():
    frame = background((280, 200))
    paste(frame, 0, (135, 95), 110)
    return frame


def test_the_fill_depends_on_nothing_that_it_covers(picture):
    outline, _ = outline_of(tracked())
    inside = inside_outline(picture.shape[:2], outline) > 0
    other = picture.copy()
    other[inside] = np.random.default_rng(0).integers(0, 256, (int(inside.sum()), 3))
    fill(picture, outline)
    fill(other, outline)
    assert np.array_equal(picture, other)


def test_the_fill_leaves_the_rest_alone(picture):
    before = picture.copy()
    outline, _ = outline_of(tracked())
    fill(picture, outline)
    near = inside_outline(picture.shape[:2], outline_of(tracked())[0])
    grown = np.pad(near > 0, 2)
    grown = np.any([np.roll(grown, (y, x), (0, 1)) for y in (-2, 0, 2) for x in (-2, 0, 2)], axis=0)[2:-2, 2:-2]
    assert np.array_equal(picture[~grown], before[~grown])


def test_a_mask_reaches_well_beyond_the_box():
    outline, height = outline_of(tracked())
    x, y, width, tall = BOX
    assert outline[:, 0].min() < x - 0.15 * width
    assert outline[:, 0].max() > x + 1.15 * width
    assert outline[:, 1].min() < y - 0.15 * tall
    assert height == tall


@pytest.mark.parametrize("name", [name for name in MASKS if not METHODS[name].scenes.needs_mesh])
def test_every_mask_changes_the_face_and_nothing_else(picture, name):
    before = picture.copy()
    Mask(name).apply(picture, tracked(), np.random.default_rng(0))
    assert (picture[75:105, 120:150] != before[75:105, 120:150]).any(axis=2).mean() > 0.4
    assert np.array_equal(picture[:, :60], before[:, :60])


def test_blackout_is_black(picture):
    Mask("blackout").apply(picture, tracked(), np.random.default_rng(0))
    assert not picture[80:100, 125:145].any()


def test_levels_grow_with_the_face():
    frame = np.random.default_rng(0).integers(0, 256, (600, 600, 3)).astype(np.uint8)
    large = Face((100.0, 100.0, 300.0, 402.0), confirmed=True)
    Mask("pixelate", 10).apply(frame, large, np.random.default_rng(0))
    middle = frame[300, 250:280]
    assert len(np.unique(middle, axis=0)) <= 3  # blocks of 30 pixels


def test_a_whole_picture_can_be_filled():
    frame = np.full((40, 50, 3), 200, dtype=np.uint8)
    fill(frame, rectangle(-10, -10, 100, 100))
    assert (frame == 128).all()


def test_a_face_outside_the_picture_changes_nothing(picture):
    before = picture.copy()
    gone = Face((900.0, 900.0, 30.0, 30.0), confirmed=True)
    for name in MASKS[:4]:
        Mask(name).apply(picture, gone, np.random.default_rng(0))
    assert np.array_equal(picture, before)


def test_unknown_masks_and_levels_are_refused():
    with pytest.raises(UsageError, match="Unknown method 'smile'"):
        Mask("smile")
    with pytest.raises(UsageError, match="no level"):
        Mask(FILL, 3)


def test_a_mask_on_a_turned_head_covers_its_nose():
    """Of a head turned by 50 degrees the nose lies beyond the rim of the face."""
    from ksame.models.landmarker import canonical_head

    yaw = np.radians(50)
    turn = np.array([[np.cos(yaw), 0, np.sin(yaw)], [0, 1, 0], [-np.sin(yaw), 0, np.cos(yaw)]])
    points = np.zeros((478, 3))
    points[:468] = canonical_head().points @ turn.T * [4, -4, -4] + [140, 100, 0]
    points[468:] = points[33]
    outline, _ = outline_of(tracked(points))
    inside = inside_outline((200, 280), outline) > 0.5
    for x, y in points[:, :2]:
        assert inside[round(y), round(x)]
