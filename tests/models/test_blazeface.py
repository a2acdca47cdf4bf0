import cv2
import numpy as np
import pytest

from ksame.models import BlazeFace
from ksame.models.blazeface import SIDE


def square(picture, face, reach):
    """A square about a face, as many of its sides wide, in the size that the network takes."""
    x, y, width, height = face.box
    scale = SIDE / (reach * face.side)
    matrix = np.array([[scale, 0, SIDE / 2 - scale * (x + width / 2)], [0, scale, SIDE / 2 - scale * (y + height / 2)]])
    return cv2.warpAffine(picture, matrix, (SIDE, SIDE))


@pytest.mark.parametrize("reach", [2.0, 3.0])
def test_the_surest_box_is_about_the_face(astronaut, face, reach):
    boxes, logits = BlazeFace().detect(square(astronaut, face, reach))
    assert (boxes.shape, logits.shape) == ((896, 4), (896,))
    best = boxes[logits.argmax()]
    assert logits.max() > 2
    assert np.abs(best[:2] + best[2:] / 2 - SIDE / 2).max() < 0.15 * SIDE / reach * 2
    assert best[2:].mean() == pytest.approx(SIDE / reach, rel=0.35)


def test_a_picture_without_faces_has_none():
    soft = cv2.GaussianBlur(np.random.default_rng(2).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8), (0, 0), 4)
    assert BlazeFace().detect(soft)[1].max() < 1
