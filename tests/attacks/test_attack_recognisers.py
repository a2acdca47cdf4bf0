"""What every recogniser must do, and what each does by hand."""

import numpy as np
import pytest

from drawn import drawn_faces
from ksame.attacks import (
    AttackData,
    Coder,
    Eigenfaces,
    Embedding,
    Mahalanobis,
    ModelNeighbour,
    Posterior,
    Recogniser,
    run_attack,
)
from ksame.errors import InputError
from ksame.faces.faceset import FaceSet
from ksame.spaces import AamSpace, PixelSpace


class Blocks:
    """A network that answers with the signs of an 8 x 8 picture, and counts how often it was asked."""

    name = "blocks"
    threshold = 0.5

    def __init__(self):
        self.asked = 0
        self.points = []

    def embed(self, image, points):
        self.asked += 1
        self.points.append(np.asarray(points))
        rows = np.array_split(np.asarray(image, dtype=float).mean(axis=2), 8)
        small = np.array([[part.mean() for part in np.array_split(row, 8, axis=1)] for row in rows])
        vector = (small - small.mean()).ravel() + 1e-6
        return vector / np.linalg.norm(vector)


def recognisers():
    return [
        Eigenfaces(),
        Mahalanobis(),
        Posterior(),
        Posterior(PixelSpace()),
        ModelNeighbour(),
        ModelNeighbour(AamSpace(zero_first_texture=True, width=48)),
        Embedding(Blocks()),
    ]


@pytest.mark.parametrize("recogniser", recognisers(), ids=lambda r: f"{r.name}-{r.params().get('coding', '')}")
def test_contract(meshed, recogniser):
    assert isinstance(recogniser, Recogniser)
    assert isinstance(recogniser, Coder) == hasattr(recogniser, "encode")
    before = meshed.images.copy()
    trained = recogniser.fit(meshed)
    assert trained is not recogniser
    assert trained.name == recogniser.name
    distances = trained.distances(meshed.take([3, 1]), meshed)
    assert distances.shape == (2, 13)
    assert np.isfinite(distances).all()
    assert (distances >= 0).all()
    assert distances.argmin(axis=1).tolist() == [3, 1]
    assert np.array_equal(distances, trained.distances(meshed.take([3, 1]), meshed))
    assert np.array_equal(meshed.images, before)
    assert isinstance(trained.params(), dict)
    assert run_attack("naive", recogniser, AttackData(meshed, meshed)).rank1 == 1.0


@pytest.mark.parametrize("recogniser", recognisers()[:6], ids=lambda r: f"{r.name}-{r.params().get('coding', '')}")
def test_unfitted_recognisers_say_so(meshed, recogniser):
    with pytest.raises(RuntimeError, match="not fitted"):
        recogniser.distances(meshed, meshed)


def test_mahalanobis_by_hand():
    """Spread 4 in one direction, 1 in the other: a step of 2 here is a step of 1/2 there."""
    corners = np.array([[0.1, 0.4], [0.9, 0.4], [0.5, 0.3], [0.5, 0.5]])
    faces = FaceSet(corners.reshape(4, 1, 2, 1), list("abcd"))
    trained = Mahalanobis(None).fit(faces)
    probe = FaceSet(np.array([[0.5, 0.4]]).reshape(1, 1, 2, 1), ["a"])
    expected = 0.4 / np.sqrt(0.32 / 3)
    assert trained.distances(probe, faces)[0] == pytest.approx([expected] * 4, rel=1e-5)
    assert trained.params() == {"n_components": None, "components": 2}


def test_posterior_by_hand():
    """Two people at 0 and 1, one of them with two images; scale from their spread."""
    values = np.array([0.0, 0.2, 1.0])
    faces = FaceSet(values.reshape(3, 1, 1, 1), ["ann", "ann", "bob"])
    trained = Posterior(PixelSpace()).fit(faces)
    assert trained.scale_ == pytest.approx(np.sqrt(0.02), rel=1e-5)
    probe = FaceSet(np.array(0.4).reshape(1, 1, 1, 1), ["ann"])
    log, who = trained.posteriors(probe, faces)
    weights = np.exp(-0.5 * np.array([0.3, 0.6]) ** 2 / 0.02)
    assert who.tolist() == ["ann", "bob"]
    assert np.exp(log[0]) == pytest.approx(weights / weights.sum(), rel=1e-4)
    assert trained.distances(probe, faces)[0, 0] == trained.distances(probe, faces)[0, 1]


def test_posterior_of_a_set_multiplies(family):
    """Pooling adds squares, that is, multiplies posteriors."""
    trained = Posterior().fit(family)
    log, who = trained.posteriors(family, family)
    mine = family.subjects == who[0]
    pooled = run_attack("pooled", Posterior(), AttackData(family, family))
    column = np.flatnonzero(family.subjects == who[3])[0]
    assert pooled.distances[0, column] ** 2 == pytest.approx(-2 * log[mine][:, 3].mean(), rel=1e-6)


def test_model_neighbours_need_landmarks(faces):
    with pytest.raises(InputError, match="mesh of 478 points"):
        ModelNeighbour().fit(faces)


def test_nothing_is_embedded_twice(faces, monkeypatch):
    monkeypatch.setattr("ksame.attacks.embedding.detect", lambda image: [])
    network = Blocks()
    recogniser = Embedding(network)
    data = AttackData(faces, faces)
    for scenario in ("naive", "reverse", "parrot", "pooled"):
        run_attack(scenario, recogniser, data)
    assert network.asked == len(faces)


def test_points_come_from_the_mesh_the_detector_or_the_usual_place(meshed, faces, monkeypatch):
    from ksame.models import Face, five_points

    network = Blocks()
    trained = Embedding(network).fit(meshed)
    trained.vectors(meshed.take([0]))
    assert np.allclose(network.points[-1], five_points(meshed.landmarks[0]))
    found = np.array([[8.0, 10.0], [16.0, 10.0], [12.0, 16.0], [9.0, 22.0], [15.0, 22.0]])
    seen = [Face((0, 0, 5, 5), found - 1, 0.99), Face((2, 2, 20, 24), found, 0.9)]
    monkeypatch.setattr("ksame.attacks.embedding.detect", lambda image: seen if image.std() > 1 else [])
    trained = Embedding(network).fit(faces)
    trained.vectors(faces.take([2]))
    assert np.array_equal(network.points[-1], found)  # the largest face
    black = FaceSet(np.zeros((2, 32, 24, 3)), ["a", "b"])
    trained.vectors(black)
    assert np.allclose(network.points[-1], found)  # where faces of the training set are
    assert trained.remarks(black) == ("no face found in 2 of 2 pictures; it was taken to be where faces usually are",)
    assert trained.remarks(faces) == ()
    Embedding(network).fit(black).vectors(black)
    assert (network.points[-1] < [24, 32]).all()


def test_remarks_reach_the_result(faces, monkeypatch):
    monkeypatch.setattr("ksame.attacks.embedding.detect", lambda image: [])
    result = run_attack("naive", Embedding(Blocks()), AttackData(faces, faces))
    assert any(note.startswith("no face found in 31 of 31") for note in result.notes)
    assert result.params == {"threshold": 0.5}


def test_arithmetic_attacks_fall_back_to_eigenfaces(faces, monkeypatch):
    monkeypatch.setattr("ksame.attacks.embedding.detect", lambda image: [])
    for scenario in ("difference", "insider"):
        assert run_attack(scenario, Embedding(Blocks()), AttackData(faces, faces)).recogniser == "eigenfaces"


def test_sface_attacks_synthetic_people(meshed):
    """A real network names people who do not exist, but not once they share faces."""
    from ksame import deidentify, recipe
    from ksame.models import SFace, State, Store

    store = Store()
    if store.offline and store.state("sface") is not State.READY:
        pytest.skip("KSAME_OFFLINE is set and the model sface is not there")
    recogniser = Embedding(SFace(store))
    assert run_attack("naive", recogniser, AttackData(meshed, meshed)).rank1 == 1.0
    release, linkage = deidentify(meshed, recipe("k-same-pixel", k=4), seed=1)
    shared = FaceSet(release.faces, [face.subject for face in linkage.faces])
    for scenario in ("naive", "reverse", "parrot"):
        assert run_attack(scenario, recogniser, AttackData(meshed, shared)).rank1 <= 1 / 4


def test_drawn_people_of_other_sizes_are_refused(faces):
    with pytest.raises(InputError, match="Expected faces of shape"):
        Eigenfaces().fit(faces).distances(drawn_faces(2, seed=1, width=12, height=16), faces)
