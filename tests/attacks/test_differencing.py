"""Two releases of the same people, one subtracted from the other: by hand in the plane, and as a scenario."""

import numpy as np
import pytest

from drawn import drawn_faces
from ksame.attacks import AttackData, Eigenfaces, run_attack
from ksame.attacks.differencing import DistinctFaces, differences
from ksame.errors import InputError
from ksame.faces.faceset import FaceSet

ANN, BOB, EVE, DAN = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [9.0, 9.0]])
ORIGINALS = np.stack([ANN, BOB, EVE, DAN])


def shared(*people: str) -> DistinctFaces:
    """Return the one face that these people share: their mean."""
    known = dict(zip(("ann", "bob", "eve", "dan"), ORIGINALS, strict=True))
    mean = np.mean([known[person] for person in people], axis=0)
    return DistinctFaces(mean[None], np.array([len(people)]), (frozenset(people),))


@pytest.mark.parametrize(
    ("gone", "new", "who"),
    [
        (("ann", "bob", "eve"), ("ann", "bob"), "eve"),  # 3 (2, 2) - 2 (3, 0) = (0, 6)
        (("ann", "bob"), ("ann", "bob", "eve"), "eve"),  # who joined is found in the same way
        (("ann", "bob", "eve"), ("ann", "bob", "dan"), "eve"),  # exchanged: eve less dan
    ],
)
def test_who_makes_the_difference_is_found(gone, new, who):
    (found,) = differences(shared(*gone), shared(*new), ORIGINALS)
    assert found.people == {who}
    assert ("ann", "bob", "eve", "dan")[int(found.distances.argmin())] == who
    assert found.distances.min() == pytest.approx(0.0, abs=1e-9)


def test_the_difference_that_lies_on_an_original_is_believed():
    pair = DistinctFaces(np.array([[2.0, 2.0], [40.0, 40.0]]), np.array([3, 2]), (frozenset("abc"), frozenset("xy")))
    found = differences(pair, shared("ann", "bob"), ORIGINALS)
    assert [difference.distances.argmin() for difference in found] == [2]


def test_nothing_gone_or_nothing_new_is_no_difference():
    nobody = DistinctFaces(np.empty((0, 2)), np.empty(0, dtype=np.intp), ())
    assert differences(nobody, shared("ann"), ORIGINALS) == []
    assert differences(shared("ann"), nobody, ORIGINALS) == []


def means(faces: FaceSet, *groups: tuple[int, ...]) -> FaceSet:
    """Return a release in which each group shows its mean."""
    rows = [i for group in groups for i in group]
    images = np.concatenate([np.repeat(faces.images[list(g)].mean(axis=0)[None], len(g), axis=0) for g in groups])
    return FaceSet(images, faces.subjects[rows])


def test_somebody_who_left_between_two_releases_is_named():
    faces = drawn_faces(7)
    earlier, later = means(faces, (0, 1, 2), (3, 4, 5, 6)), means(faces, (0, 1), (3, 4, 5, 6))
    result = run_attack("differencing", Eigenfaces(), AttackData(faces, later, earlier=earlier))
    assert result.subjects.tolist() == [faces.subjects[2]]
    assert result.rank1 == 1.0
    assert "1 people left or joined" in result.notes[0]


def test_releases_that_share_all_faces_have_nothing_to_subtract():
    faces = drawn_faces(7)
    release = means(faces, (0, 1, 2), (3, 4, 5, 6))
    result = run_attack("differencing", Eigenfaces(), AttackData(faces, release, earlier=release))
    assert "nothing to subtract" in result.notes[0]
    assert result.rank1 <= 1 / 3 + 1e-9


def test_without_an_earlier_release():
    faces = drawn_faces(5)
    with pytest.raises(InputError, match="an earlier release of the same people is needed; give it with --earlier"):
        run_attack("differencing", Eigenfaces(), AttackData(faces, faces))
