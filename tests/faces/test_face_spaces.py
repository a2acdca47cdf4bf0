import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import decomposition
from sklearn.utils.extmath import randomized_svd

from drawn import drawn_faces
from ksame.errors import InputError, UsageError
from ksame.faces.faceset import quantise
from ksame.spaces import EigenSpace, FaceModels, FaceSpace, PixelSpace, fit_pca, pca
from ksame.spaces.reference import cross_squared_distances

SPACES = [PixelSpace(), EigenSpace(None), EigenSpace(4), EigenSpace(0.9)]


def some_rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, min(n, d))) @ (rng.normal(size=(min(n, d), d)) * 0.7 ** np.arange(d)) + 3.0


@pytest.mark.parametrize(("n", "d"), [(10, 40), (40, 10), (12, 12), (2, 5), (50, 2)])
def test_components_and_variances_are_those_of_scikit_learn(n, d):
    rows = some_rows(n, d)
    most = min(n - 1, d)
    mine, theirs = fit_pca(rows), decomposition.PCA(most).fit(rows)
    assert mine.components.shape == (most, d)
    assert np.allclose(mine.mean, theirs.mean_)
    assert np.allclose(mine.variances, theirs.explained_variance_, rtol=1e-6, atol=1e-9 * mine.total_variance)
    assert np.allclose(np.abs((mine.components * theirs.components_).sum(axis=1)), 1.0, atol=1e-5)
    assert mine.total_variance == pytest.approx(rows.var(axis=0, ddof=1).sum())


@settings(max_examples=40)
@given(st.integers(3, 15), st.integers(1, 15), st.integers(0, 2**32 - 1))
def test_components_are_orthonormal_sorted_and_signed(n, d, seed):
    found = fit_pca(np.random.default_rng(seed).normal(size=(n, d)))
    count = len(found.components)
    assert np.allclose(found.components @ found.components.T, np.eye(count), atol=1e-6)
    assert (np.diff(found.variances) <= 1e-12).all()
    assert (found.components[np.arange(count), np.abs(found.components).argmax(axis=1)] > 0).all()


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9, 0.99, 1.0])
def test_a_share_of_variance_is_reached_by_as_few_components_as_possible(share):
    rows = some_rows(20, 30)
    found = fit_pca(rows, share)
    assert found.variances.sum() >= share * found.total_variance * (1 - 1e-9)
    assert found.variances[:-1].sum() < share * found.total_variance
    if share < 1:
        assert len(found.components) == decomposition.PCA(share, svd_solver="full").fit(rows).n_components_


def test_a_number_of_components_is_the_beginning_of_all():
    rows = some_rows(12, 30)
    few, every = fit_pca(rows, 3), fit_pca(rows)
    assert np.allclose(few.components, every.truncated(3).components, atol=1e-7)
    assert few.total_variance == pytest.approx(every.total_variance)


@pytest.mark.parametrize("wanted", [0, -1, 12, 0.0, 1.5, -0.2])
def test_impossible_numbers_of_components_are_refused(wanted):
    with pytest.raises(UsageError, match="The 'n_components' parameter of PCA must be an integer"):
        fit_pca(some_rows(12, 30), wanted)


def test_equal_rows_have_no_variance_and_stay_where_they_are():
    rows = np.ones((4, 6))
    found = fit_pca(rows)
    assert found.total_variance == 0
    assert np.allclose(found.reconstruct(found.project(rows)), rows)


def test_the_randomised_path_agrees_with_the_exact_one(monkeypatch):
    rows = some_rows(80, 120, seed=4)
    exact = fit_pca(rows, 4)
    called = []
    original = pca._randomised
    monkeypatch.setattr(pca, "RANDOMISED_ABOVE", 20)
    monkeypatch.setattr(pca, "_randomised", lambda *a: called.append(a) or original(*a))
    quick, again = fit_pca(rows, 4), fit_pca(rows, 4)
    assert len(called) == 2
    assert np.allclose(quick.variances, exact.variances, rtol=1e-6)
    assert np.allclose(quick.components, exact.components, atol=1e-4)
    assert np.array_equal(quick.components, again.components)
    assert np.allclose(quick.components @ quick.components.T, np.eye(4), atol=1e-6)


@pytest.mark.parametrize("shape", [(80, 120), (120, 80)])
def test_randomised_components_are_those_of_scikit_learn(shape):
    rows = some_rows(*shape)
    components, squares = pca._randomised(rows, 4, 3)
    _, values, expected = randomized_svd(rows, n_components=4, n_iter=5, random_state=3)
    signs = np.sign((components * expected).sum(axis=1))
    assert np.allclose(components * signs[:, None], expected, rtol=0, atol=1e-12)
    assert np.allclose(squares, values**2)


@pytest.mark.parametrize("wanted", [None, 0.9, 40])
def test_shares_and_many_components_are_never_randomised(monkeypatch, wanted):
    monkeypatch.setattr(pca, "RANDOMISED_ABOVE", 20)
    monkeypatch.setattr(pca, "_randomised", lambda *_: pytest.fail("randomised"))
    fit_pca(some_rows(80, 120), wanted)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_the_contract_of_a_space(space, twelve):
    assert isinstance(space, FaceSpace)
    before = twelve.images.copy()
    fitted = space.fit(twelve)
    codes = fitted.encode(twelve)
    assert codes.dtype == np.float64
    assert len(codes) == 12
    assert fitted.decode(codes).shape == twelve.shape
    assert np.allclose(fitted.encode(twelve.with_images(fitted.decode(codes).clip(0, 1))), codes, atol=0.5)
    assert np.array_equal(codes, space.fit(twelve).encode(twelve))
    assert np.array_equal(twelve.images, before)
    assert fitted.params() == space.params()
    with pytest.raises(RuntimeError, match="not fitted"):
        space.encode(twelve)
    with pytest.raises(RuntimeError, match="not fitted"):
        space.decode(codes)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_faces_of_another_size_are_refused(space, twelve):
    with pytest.raises(InputError, match=r"Expected faces of shape \(32, 24, 3\).*Got \(16, 16, 3\)"):
        space.fit(twelve).encode(drawn_faces(2, width=16, height=16))


@pytest.mark.parametrize("grey", [False, True])
def test_eigenfaces_of_full_rank_give_every_pixel_back(grey):
    faces = drawn_faces(9, width=24, height=32, grey=grey)
    eigen, pixel = EigenSpace(None).fit(faces), PixelSpace().fit(faces)
    assert eigen.encode(faces).shape == (9, 8)
    assert np.allclose(eigen.decode(eigen.encode(faces)), pixel.decode(pixel.encode(faces)), atol=1e-6)
    assert np.array_equal(quantise(eigen.decode(eigen.encode(faces))), quantise(faces.images))
    mine, theirs = (FaceModels(s.encode(faces), faces.subjects).distances(s.encode(faces)) for s in (eigen, pixel))
    assert np.allclose(mine, theirs, atol=1e-5)


def test_distances_by_hand():
    a, b = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    assert np.allclose(cross_squared_distances(a, b), [[0, 1, 9], [25, 18, 16]])


def test_distances_are_never_negative_far_from_the_origin():
    rows = np.random.default_rng(0).normal(1e6, 1e-3, (30, 5))
    assert (cross_squared_distances(rows, rows) >= 0).all()


def test_models_are_named_and_averaged_by_subject():
    models = FaceModels(np.array([[0.0], [2.0], [10.0]]), np.array(["ann", "ann", "bob"]))
    assert models.keys == ("ann#1", "ann#2", "bob")
    assert models.means().codes.ravel().tolist() == [1.0, 10.0]
    assert models.means().keys == ("ann", "bob")
    assert models.scale() == pytest.approx(8.0 / 4)


def test_the_scale_of_one_person_alone_is_zero():
    assert FaceModels(np.zeros((2, 1)), np.array(["ann", "ann"])).scale() == 0.0
