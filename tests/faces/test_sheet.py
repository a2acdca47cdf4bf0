import numpy as np
import pytest

from drawn import drawn_faces
from ksame.faces.faceset import quantise
from ksame.faces.sheet import MAX_FACES, contact_sheet


def test_a_sheet_shows_every_face_in_rows():
    faces = np.arange(5, dtype=np.uint8)[:, None, None, None] * np.ones((1, 3, 2, 1), dtype=np.uint8)
    sheet = contact_sheet(faces, columns=2, gap=1)
    assert sheet.shape == (3 * 4 + 1, 2 * 3 + 1, 1)
    assert sheet[1:4, 1:3, 0].tolist() == [[0, 0]] * 3
    assert sheet[1:4, 4:6, 0].tolist() == [[1, 1]] * 3
    assert sheet[9:12, 1:3, 0].tolist() == [[4, 4]] * 3
    assert (sheet[9:12, 3:] == 255).all()
    assert (sheet[0] == 255).all()


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_sheets_are_about_as_wide_as_high(n):
    high, wide, _ = contact_sheet(quantise(drawn_faces(n, width=24, height=32).images)).shape
    assert 0.3 < wide / high < 3
    assert high * wide >= n * 24 * 32


def test_a_sheet_shows_at_most_so_many():
    many = np.zeros((MAX_FACES + 50, 2, 2, 3), dtype=np.uint8)
    assert contact_sheet(many, columns=10, gap=0).shape == (MAX_FACES // 10 * 2, 20, 3)
