"""Releases as whole heads: who shares a face shares a head, to the bit."""

import numpy as np
import pytest

import ksame
from ksame.errors import UsageError
from ksame.heads.portrait import SIZE
from ksame.models import detect
from ksame.recipes import recipe


@pytest.fixture(scope="module")
def released():
    faces = ksame.synthetic(6, seed=3)
    return (faces, *ksame.deidentify(faces, recipe("k-same-m", k=3, coding="portrait"), seed=1))


def test_a_group_has_one_head_and_everyone_one_of_k(released):
    _, release, linkage = released
    assert release.faces.shape == (6, SIZE, SIZE, 3)
    shown: dict[bytes, set[str]] = {}
    for face, linked in zip(release.faces, linkage.faces, strict=True):
        shown.setdefault(face.tobytes(), set()).add(linked.subject)
    assert all(len(people) >= 3 for people in shown.values())
    assert release.certificate.promise.bound == pytest.approx(1 / 3)
    assert release.certificate.method.coding == "portrait"


def test_every_portrait_shows_one_face_on_a_plain_background(released):
    for picture in np.unique(released[1].faces, axis=0):
        assert len(detect(picture)) == 1
        assert np.ptp(picture[:12, :12].reshape(-1, 3), axis=0).max() <= 2


def test_other_methods_have_no_portraits():
    with pytest.raises(UsageError, match="coding"):
        recipe("k-same-pixel", k=3, coding="portrait")
