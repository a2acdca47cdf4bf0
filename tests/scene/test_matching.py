"""What the network paints lies where it was drawn."""

import numpy as np
import pytest

import ksame
from ksame.heads.bend import bent
from ksame.heads.drawing import Invention
from ksame.heads.head import Head, expression_of, neutral_shape
from ksame.heads.invention import finish, taken_away
from ksame.heads.matching import MATCHED_FROM, matched
from ksame.heads.surrogate import ORDINARY, draw_surrogate
from ksame.models import FaceMesh, detect
from ksame.models.finisher import finisher
from ksame.spaces.facemodel.geometry import BROWS


@pytest.fixture(scope="module")
def finished():
    """A finished head, large enough to be matched."""
    pixels = (ksame.synthetic(1, seed=8, size=(320, 260)).images[0] * 255 + 0.5).astype(np.uint8)
    mesh = FaceMesh().fit(pixels, detect(pixels)[0])
    head = Head.of(np.asarray(mesh.points, dtype=np.float64))
    looks = draw_surrogate(False, 1970.0, ORDINARY, np.random.default_rng(0)).looks
    invention = Invention.of(looks, head, neutral_shape(head.aligned, expression_of(mesh.blendshapes)))
    hidden = taken_away(pixels.shape, [invention.region.outline])
    made = finish(pixels, hidden, invention, finisher(), size=MATCHED_FROM)
    assert made is not None
    return made


def brows_of(square, points):
    found, presence = FaceMesh().locate(square, len(square) * points - 0.5)
    assert presence > 0.5
    return found[list(BROWS), 1] + 0.5


def test_brows_that_were_painted_too_high_are_moved_to_where_they_were_drawn(finished):
    raised = finished.points.copy()
    raised[list(BROWS), 1] -= 0.024
    (wrong,) = bent([finished.square], [finished.points], raised)
    drawn = MATCHED_FROM * finished.points[list(BROWS), 1]
    off = [
        np.abs((brows_of(square, finished.points) - drawn).mean())
        for square in (wrong, matched(wrong, finished.points))
    ]
    assert off[0] > 2
    assert off[1] < off[0] / 2


def test_where_no_face_is_nothing_is_moved(finished):
    plain = np.full_like(finished.square, 128)
    assert matched(plain, finished.points) is plain


def test_points_that_are_where_they_should_be_move_nothing(finished):
    (same,) = bent([finished.square], [finished.points], finished.points)
    assert same is finished.square
