import numpy as np
import pytest
from scipy.optimize import minimize

import ksame
from drawn import drawn_faces
from ksame import deidentify, recipe
from ksame.attacks import AttackData, Eigenfaces, run_attack
from ksame.errors import InputError, PrivacyWarning, UsageError
from ksame.faces.faceset import FaceSet
from ksame.methods import EpsilonKMap, EpsilonMap, Pixelate, Problem, Threshold, WrongMap
from ksame.methods.maps import as_written, equalise, gaps, nearest_people
from ksame.privacy.maps import EpsilonMap as EpsilonMapPromise
from ksame.privacy.maps import WrongMap as WrongMapPromise
from ksame.spaces.reference import FaceModels


def problem(codes, subjects=None, **more):
    names = [f"s{i}" for i in range(len(codes))] if subjects is None else subjects
    return Problem(codes, np.array(names), **more)


def objective(delta, image, models, lam):
    """Eq. 2 of Gross and Sweeney (2007), literally."""
    squares = ((image + delta - models) ** 2).sum(axis=1)
    pairs = sum((squares[i] - squares[j]) ** 2 for i in range(len(models)) for j in range(i))
    return pairs + lam * (delta**2).sum()


@pytest.mark.parametrize("lam", [0.3, 5.0, 100.0])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_small_system_minimises_equation_2(lam, k):
    rng = np.random.default_rng(k)
    models, image = rng.normal(size=(k, 6)), rng.normal(size=6)
    ours = equalise(image[None], models, np.arange(k)[None], lam)[0] - image
    brute = minimize(objective, np.zeros(6), args=(image, models, lam), method="BFGS", options={"gtol": 1e-10})
    assert objective(ours, image, models, lam) <= brute.fun * (1 + 1e-8)
    assert np.allclose(ours, brute.x, atol=1e-4)


def test_without_a_price_all_k_are_equally_far():
    rng = np.random.default_rng(0)
    codes, models = rng.random((30, 500)), rng.random((25, 500))
    neighbours = nearest_people(codes, np.array(["?"] * 30), FaceModels(models, np.arange(25).astype(str)), 10)
    moved = equalise(codes, models, neighbours, 0.0)
    distances = np.linalg.norm(moved[:, None] - models[neighbours], axis=2)
    gap = (distances.max(axis=1) - distances.min(axis=1)) / distances.mean(axis=1)
    assert gap.max() < 1e-6


def test_without_a_price_the_change_is_the_smallest():
    """It is orthogonal to the set of equidistant points: it lies in the span of differences of models."""
    rng = np.random.default_rng(1)
    models, image = rng.normal(size=(4, 9)), rng.normal(size=9)
    delta = equalise(image[None], models, np.arange(4)[None], 0.0)[0] - image
    span = (models[1:] - models[0]).T
    residual = delta - span @ np.linalg.lstsq(span, delta, rcond=None)[0]
    assert np.linalg.norm(residual) < 1e-10 * np.linalg.norm(delta)


@pytest.mark.parametrize("models", [np.ones((4, 3)), np.array([[0.0], [1.0], [2.0]]), np.eye(3)[[0, 1, 2, 0, 1]]])
def test_dependent_models_give_a_finite_answer(models):
    neighbours = np.arange(len(models))[None]
    assert np.isfinite(equalise(np.zeros((1, models.shape[1])), models, neighbours, 0.0)).all()


def test_the_true_person_is_always_among_the_neighbours():
    codes = np.array([[0.0], [1.0], [2.0], [50.0]])
    people = FaceModels(codes[::-1].copy(), np.array(["a", "b", "c", "d"]))
    chosen = nearest_people(codes, np.array(["a", "b", "c", "d"]), people, 2)
    assert all(i in row for i, row in enumerate(chosen))
    near = FaceModels(np.array([[0.3], [0.1], [0.2]]), np.array(["a", "b", "c"]))
    assert nearest_people(np.array([[0.0]]), np.array(["a"]), near, 2).tolist() == [[0, 1]]


def test_a_person_with_several_models_counts_once():
    models = FaceModels(np.array([[0.0], [0.1], [0.2], [5.0], [9.0]]), np.array(["a", "a", "a", "b", "c"]))
    chosen = nearest_people(np.array([[0.0]]), np.array(["a"]), models, 3)
    assert [models.subjects[i] for i in chosen[0]] == ["a", "b", "c"]


def test_memory_stays_small_and_no_square_of_the_pixels_is_formed():
    import tracemalloc

    rng = np.random.default_rng(0)
    codes = rng.random((80, 13_266))
    tracemalloc.start()
    EpsilonKMap(10).run(problem(codes), rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 15 * codes.nbytes < 13_266**2 * 8


@pytest.mark.parametrize("models", ["mean", "images"])
def test_office_building_and_street_corner(family, models):
    reference = drawn_faces(10, 2, seed=99, width=24, height=32)
    others = FaceSet(reference.images, np.char.add("other-", reference.subjects))
    for given in (None, others):
        release, linkage = deidentify(family, recipe("epsilon-k-map", k=3, models=models), seed=0, reference=given)
        assert len(release.faces) == len(family)
        assert release.certificate.promise.bound is None
        assert release.certificate.figures["largest_relative_gap"] < 0.3
        assert all(len(face.figures["neighbours"]) == 3 for face in linkage.faces)
        assert ("other" in linkage.faces[0].figures["neighbours"][0]) == (given is not None)


def test_a_single_face_works_against_a_reference(faces):
    others = FaceSet(faces.images[1:], faces.subjects[1:])
    release, _ = deidentify(faces.take([0]), recipe("epsilon-k-map", k=4), seed=0, reference=others)
    assert len(release.faces) == 1


def test_an_epsilon_that_cannot_be_met_withholds(faces):
    with pytest.raises(ksame.errors.GuaranteeError, match="Every face breaks the promise"):
        deidentify(faces, recipe("epsilon-k-map", k=4, epsilon=1e-30), seed=0)


def test_wrong_map_makes_somebody_else_nearer_by_the_smallest_change(faces):
    release, linkage = deidentify(faces, recipe("wrong-map"), seed=0)
    named = FaceSet(release.faces, np.array([face.subject for face in linkage.faces]))
    assert run_attack("naive", Eigenfaces(), AttackData(faces, named)).rank1 == 0.0
    assert release.certificate.figures["smallest_margin"] > 0
    assert "rank 2" in " ".join(release.certificate.promise.not_promised)


@pytest.fixture
def one_of_many_pictures() -> FaceSet:
    """Twenty-one people, of whom one has twelve images and the others one."""
    full = drawn_faces(21, 12, seed=4, width=24, height=32)
    image, person = np.arange(len(full)) % 12, np.arange(len(full)) // 12
    return full.take((image == 0) | (person == 7))


@pytest.mark.parametrize("name", ["epsilon-k-map", "wrong-map"])
def test_the_number_of_faces_names_nobody(one_of_many_pictures, name):
    """Whoever guessed the person with twelve images was right in more than a third of all faces."""
    faces = one_of_many_pictures
    release, linkage = deidentify(faces, recipe(name), seed=0)
    who, counts = np.unique([face.subject for face in linkage.faces], return_counts=True)
    assert counts.max() == 1
    assert len(who) + len({w.subject for w in linkage.withheld}) == 21
    assert release.certificate.counts.merged == 11
    sources = [s for face in linkage.faces for s in face.sources] + [w.source for w in linkage.withheld]
    assert sorted(sources) == sorted(faces.names)


def test_equal_counts_stay_as_they_are(family):
    release, _ = deidentify(family, recipe("epsilon-k-map", k=3), seed=0)
    assert len(release.faces) == len(family)


def test_epsilon_map_warns_of_uneven_counts(one_of_many_pictures):
    with pytest.warns(PrivacyWarning, match="people have 1 to 12 faces each"):
        release, _ = deidentify(one_of_many_pictures, recipe("epsilon-map"), seed=0)
    assert any("how many a person has may tell" in warning for warning in release.certificate.warnings)


def test_wrong_map_by_hand():
    """Half way to the other and a tenth of the way more; the third is on its way to the first, 5 + 1."""
    codes = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 10.0]])
    outcome = WrongMap(margin=0.1).run(problem(codes), np.random.default_rng(0))
    assert np.allclose(outcome.surrogates, [[1.2, 0.0], [0.8, 0.0], [0.0, 4.0]])
    assert list(outcome.secrets["towards"]) == ["s1", "s0", "s0"]
    assert outcome.figures == {"mean_change": pytest.approx((1.2 + 1.2 + 6.0) / 3)}
    assert (outcome.rows.tolist(), outcome.sources) == ([0, 1, 2], [(0,), (1,), (2,)])
    assert (outcome.promise, WrongMap().min_subjects) == (WrongMapPromise(), 2)


def test_wrong_map_leaves_a_face_that_is_somebody_else_already():
    """The image of s0 at 9 lies nearer to s1: only the margin is missing, or nothing."""
    codes = np.array([[0.0], [9.0], [8.0], [12.0]])
    people = ["s0", "s0", "s1", "s1"]  # models at 4.5 and 10
    outcome = WrongMap(margin=0.1).run(problem(codes, people), np.random.default_rng(0))
    assert np.allclose(outcome.surrogates[:2], [[7.8], [9.0]])  # 7.25 + 0.55


def test_wrong_map_passes_over_models_in_the_same_place():
    codes = np.array([[0.0], [0.0], [4.0]])
    outcome = WrongMap(margin=0.25).run(problem(codes), np.random.default_rng(0))
    assert outcome.surrogates.tolist() == [[3.0], [3.0], [1.0]]
    with pytest.raises(
        InputError, match="^wrong-map: all models coincide, so nobody can be made to look like somebody"
    ):
        WrongMap().run(problem(np.ones((3, 2))), np.random.default_rng(0))


def test_epsilon_k_map_by_hand():
    """Of two models 0 and 4, the face at 1 goes to 2; the neighbours of the one at 9 are itself and the nearest."""
    codes = np.array([[0.0, 1.0], [4.0, 1.0], [9.0, 1.0]])
    outcome = EpsilonKMap(2).run(problem(codes), np.random.default_rng(0))
    assert np.allclose(outcome.surrogates, [[2.0, 1.0], [2.0, 1.0], [6.5, 1.0]])
    assert outcome.secrets == {"neighbours": [["s0", "s1"], ["s0", "s1"], ["s1", "s2"]]}
    assert outcome.figures == {"mean_change": pytest.approx((2 + 2 + 2.5) / 3)}
    assert (outcome.promise.k, outcome.promise.even, outcome.promise.sigma) == (2, True, 1.0)
    assert EpsilonKMap(2, sigma=3.0).run(problem(codes), np.random.default_rng(0)).promise.sigma == 3.0
    dear = EpsilonKMap(2, lam=1e6).run(problem(codes), np.random.default_rng(0))
    assert np.allclose(dear.surrogates, codes, atol=1e-3)
    assert not dear.promise.even
    assert EpsilonKMap().min_subjects == 1


def test_codes_are_equalised_as_they_are_written():
    """Whole numbers can be written, and nothing above 6: the face between 0 and 9 must not stay at 4.5."""
    calls = []

    def written(codes):
        calls.append(len(codes))
        return np.rint(codes).clip(0.0, 6.0)

    models = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
    neighbours = np.array([[0, 1], [0, 2]])
    start = np.array([[4.4, 1.0], [1.0, 3.2]])
    best = as_written(start, models, neighbours, written)
    assert gaps(written(best), models, neighbours).max() <= gaps(written(start), models, neighbours).max()
    assert gaps(written(best), models, neighbours).tolist() == [0.0, 0.0]
    assert calls[0] == 2
    assert sum(calls) < 2 * 40, "what is settled is left alone"
    assert start.tolist() == [[4.4, 1.0], [1.0, 3.2]]


def test_gaps_by_hand():
    models = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 9.0]])
    assert gaps(np.array([[1.0, 0.0], [2.0, 0.0]]), models, np.array([[0, 1], [0, 1]])) == pytest.approx([1.0, 0.0])
    assert gaps(np.zeros((1, 2)), np.zeros((2, 2)), np.array([[0, 1]])).tolist() == [0.0]


@pytest.mark.parametrize(("sigma", "people"), [(None, 2), (1.0, 1)])
def test_people_that_epsilon_map_needs(sigma, people):
    assert EpsilonMap(sigma=sigma).min_subjects == people


def test_epsilon_map_says_what_it_needs():
    with pytest.raises(InputError, match=r"^epsilon-map works on pixels; use --coding pixel\.$"):
        EpsilonMap().run(problem(np.zeros((2, 4))), np.random.default_rng(0))
    same = problem(np.ones((2, 4)), shape=(2, 2, 1))
    with pytest.raises(
        InputError, match=r"^The reference models coincide, so no scale can be estimated\. Give --sigma\.$"
    ):
        EpsilonMap().run(same, np.random.default_rng(0))
    with pytest.raises(
        UsageError, match="'over' parameter of epsilon-map must be a method with levels. Got 'threshold'"
    ):
        EpsilonMap(Threshold())


def test_epsilon_map_by_hand():
    """Two faces of two pixels: their means, at level 2, are unlike the originals; noise is that of the generator."""
    codes = np.array([[0.0, 1.0], [1.0, 0.0]])
    outcome = EpsilonMap(epsilon=0.5, sigma=0.4).run(problem(codes, shape=(1, 2, 1)), np.random.default_rng(3))
    noise = np.random.default_rng(3).standard_normal((2, 1, 2, 1)) * 10 ** (-41 / 20)
    assert np.allclose(outcome.surrogates, np.rint((0.5 + noise.reshape(2, 2)) * 255) / 255)
    assert outcome.secrets == {"level": [2.0, 2.0]}
    assert outcome.figures == {"mean_level": 2.0, "weak_faces": 0}
    assert outcome.promise == EpsilonMapPromise(0.5, 0.4, 0)
    assert outcome.warnings == ()
    weak = EpsilonMap(epsilon=0.5, sigma=9.0).run(problem(codes, shape=(1, 2, 1)), np.random.default_rng(3))
    assert weak.promise.exceptions == weak.figures["weak_faces"] == 2
    assert weak.warnings == (
        "epsilon-map: 2 of 2 faces stay above epsilon = 0.5 even at the strongest level of pixelate, which was used "
        "for them.",
    )


def test_epsilon_map_goes_up_to_one_block_for_a_tall_picture():
    codes = np.array([np.linspace(0, 1, 8), np.linspace(1, 0, 8)])
    outcome = EpsilonMap(epsilon=0.5, sigma=9.0).run(problem(codes, shape=(8, 1, 1)), np.random.default_rng(3))
    assert outcome.secrets == {"level": [8.0, 8.0]}


def test_wrong_map_beats_any_random_change_of_the_same_size():
    rng = np.random.default_rng(2)
    codes = rng.normal(size=(8, 5))
    outcome = WrongMap(margin=1e-6).run(problem(codes), rng)
    for i in range(8):
        step = np.linalg.norm(outcome.surrogates[i] - codes[i])
        directions = rng.normal(size=(2000, 5))
        tried = codes[i] + 0.98 * step * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        distances = np.linalg.norm(tried[:, None] - codes[None], axis=2)
        assert (distances.argmin(axis=1) == i).all()


def test_wrong_map_needs_a_model_of_everyone(faces):
    with pytest.raises(InputError, match="needs a model of every person"):
        deidentify(faces.take([0]), recipe("wrong-map"), seed=0, reference=faces.take([1, 2]))


def test_epsilon_map_uses_the_weakest_level_that_suffices(faces):
    method = EpsilonMap(Pixelate(), epsilon=1e-3)
    posed = problem(faces.images.reshape(len(faces), -1).astype(float), shape=faces.shape[1:])
    outcome = method.run(posed, np.random.default_rng(0))
    promise, models = outcome.promise, posed.models
    assert isinstance(promise, EpsilonMapPromise)
    met = promise.likelihoods(outcome.surrogates, models) < 1e-3
    assert met.sum() == len(faces) - promise.exceptions
    levels = np.array(outcome.secrets["level"])
    images = posed.codes.reshape(len(posed), *posed.shape)
    for i in np.flatnonzero(met & (levels > 2))[:5]:
        weaker = Pixelate(int(levels[i]) - 1).apply(images[[i]], np.random.default_rng(0)).reshape(1, -1)
        assert promise.likelihoods(weaker, models)[0] >= 1e-3 * 0.5


def test_epsilon_map_perturbs_invisibly(faces):
    method = EpsilonMap(Pixelate(), epsilon=0.9, sigma=1e-9)
    posed = problem(faces.images.reshape(len(faces), -1).astype(float), shape=faces.shape[1:])
    outcome = method.run(posed, np.random.default_rng(0))
    plain = Pixelate(2).apply(posed.codes.reshape(len(posed), *posed.shape), np.random.default_rng(0))
    error = ((outcome.surrogates.reshape(plain.shape) - plain) ** 2).mean()
    assert 10 * np.log10(1 / error) >= 40
    blocks = outcome.surrogates.reshape(plain.shape)[:, :32:2, :24:2]
    assert (blocks != outcome.surrogates.reshape(plain.shape)[:, 1:32:2, :24:2]).mean() > 0.5, "runs are broken up"


@pytest.mark.parametrize("over", ["pixelate", "blur", "noise"])
def test_faces_that_stay_too_likely_are_counted_and_said(faces, over):
    with pytest.warns(PrivacyWarning, match="stay above epsilon"):
        release, _ = deidentify(faces, recipe("epsilon-map", over=over, epsilon=1e-7, sigma=50.0), seed=0)
    assert release.certificate.promise.params["exceptions"] == len(faces)
    assert release.certificate.figures["weak_faces"] == len(faces)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: EpsilonMap(epsilon=0.0), "'epsilon' parameter of epsilon-map must be a number in \\(0, 1\\)"),
        (lambda: EpsilonMap(sigma=-1.0), "'sigma' parameter"),
        (lambda: recipe("epsilon-map", over="t-mask"), "'over' parameter of epsilon-map must be one of pixelate"),
        (lambda: EpsilonKMap(k=1), "'k' parameter of epsilon-k-map must be an integer of at least 2. Got 1"),
        (lambda: EpsilonKMap(lam=-1), "'lam' parameter"),
        (lambda: EpsilonKMap(models="all"), "'models' parameter"),
        (lambda: WrongMap(margin=0), "'margin' parameter"),
    ],
)
def test_bad_parameters_are_named(build, message):
    with pytest.raises(UsageError, match=message):
        build()


def test_k_beyond_the_reference_is_refused(faces):
    with pytest.raises(UsageError, match="people in the reference = 31"):
        deidentify(faces, recipe("epsilon-k-map", k=32), seed=0)


@pytest.mark.slow
def test_800_images_of_13266_pixels_stay_below_one_and_a_half_gigabytes():
    import subprocess
    import sys

    code = (
        "import resource, numpy as np\n"
        "from ksame.methods import EpsilonKMap, Problem\n"
        "rng = np.random.default_rng(0)\n"
        "codes = rng.random((800, 13266))\n"
        "outcome = EpsilonKMap(10).run(Problem(codes, np.arange(800).astype(str)), rng)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    gigabytes = float(done.stdout)
    print(f"peak {gigabytes:.2f} GB")
    assert gigabytes < 1.5
