"""Rectangles that are filled always, or for a time, and move."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksame.app.places import parse_region
from ksame.errors import UsageError
from ksame.scene.media import EncoderConfig, Frame, check_requests, open_media
from ksame.scene.media.regions import MovingRegion, boxes_at
from ksame.scene.render import Renderer
from ksame.scene.track.tracks import Tracks
from scene.clips import drawn_frame, make_clip

NOISE = np.random.default_rng(2).integers(0, 256, (80, 96, 3), dtype=np.uint8)
MOVING = MovingRegion((1.0, 2.0, 3.0), ((0, 0, 20, 20), (40, 0, 20, 20), (40, 40, 20, 20)))


def changed_at(time, region):
    renderer = Renderer(Tracks((96, 80), 100, (), ()), {}, regions=[region])
    made = renderer.render(Frame(int(time * 25), time, NOISE))
    return (made != NOISE).any(axis=2)


@pytest.mark.parametrize(("time", "x", "y"), [(1.0, 0, 0), (1.5, 20, 0), (2.0, 40, 0), (2.5, 40, 20), (3.0, 40, 40)])
def test_a_region_moves_straight_between_its_places(time, x, y):
    changed = changed_at(time, MOVING)
    assert changed[y + 1 : y + 19, x + 1 : x + 19].mean() > 0.95
    changed[max(0, y - 3) : y + 23, max(0, x - 3) : x + 23] = False
    assert not changed.any()


@pytest.mark.parametrize("time", [0.0, 0.99, 3.01, 50.0])
def test_before_and_after_nothing_is_filled(time):
    assert not changed_at(time, MOVING).any()


@given(st.floats(0, 100, allow_nan=False))
def test_it_is_where_its_times_say(time):
    found = boxes_at([(1, 2, 3, 4), MOVING], time)
    assert found[0] == (1, 2, 3, 4)
    assert (len(found) == 2) == (1.0 <= time <= 3.0)


def test_as_it_is_written():
    assert parse_region("0:05@20,40,200,120..0:12@60,44,200,120") == MovingRegion(
        (5.0, 12.0), ((20.0, 40.0, 200.0, 120.0), (60.0, 44.0, 200.0, 120.0))
    )
    assert parse_region("1.5@2,3,4,5..2.5") == MovingRegion((1.5, 2.5), ((2.0, 3.0, 4.0, 5.0),) * 2)


@pytest.mark.parametrize(
    "text",
    [
        *("1@1,2,3,4", "@1,2,3,4..2", "5..6@1,2,3,4", "1@1,2,3..2", "1@1,2,3,4..", "2@1,2,3,4..1", "1@1,2,3,4..1"),
        *("1@1,2,3,4..x@1,2,3,4", "1@1,2,0,4..2", "1@nan,2,3,4..2", "1@1,2,3,4>2@1,2,3,4", "@", "..", "1@..2@"),
    ],
)
def test_what_is_not_understood_is_refused(text):
    with pytest.raises(UsageError, match="region|time"):
        parse_region(text)


def test_what_would_have_no_effect_is_refused(tmp_path):
    from PIL import Image

    clip = open_media(make_clip(tmp_path / "clip.mp4"))
    with pytest.raises(UsageError, match="when the recording is over"):
        check_requests([clip], EncoderConfig(), [MovingRegion((500, 600), ((0, 0, 9, 9),) * 2)])
    with pytest.raises(UsageError, match="outside its picture"):
        check_requests([clip], EncoderConfig(), [MovingRegion((0, 1), ((900, 0, 9, 9),) * 2)])
    check_requests([clip], EncoderConfig(), [MovingRegion((0, 1), ((900, 0, 9, 9), (1, 1, 9, 9)))])
    Image.fromarray(drawn_frame(1)).save(tmp_path / "photo.png")
    with pytest.raises(UsageError, match="a photograph has no times"):
        check_requests([open_media(tmp_path / "photo.png")], EncoderConfig(), [MOVING])
