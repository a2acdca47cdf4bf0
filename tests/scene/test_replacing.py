"""Painting surrogates: what changes, what stays, who shares a face."""

import cv2
import numpy as np
import pytest

import ksame
from ksame.models import BLENDSHAPES, SFace, detect, five_points
from ksame.models.mesh import FaceMesh
from ksame.scene.choosing import METHODS, make_plans
from ksame.scene.composing import Treatment
from ksame.scene.masking import MASKS
from ksame.scene.replacing.canvas import canvas, coarse_mesh, keep_openings
from ksame.scene.replacing.face import fit_surrogate, make_reference, paint
from ksame.scene.replacing.identities import Loop, Subject, View, choose, deal
from ksame.scene.replacing.light import Contrast, logarithm, matched_contrast
from ksame.scene.replacing.rim import Cover, polygon, ring_window
from ksame.scene.replacing.surrogate import draw, expression_of, without_expression
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.geometry import INNER_LIPS, OUTLINE, with_forehead

LABELS = {"woman": 0.0, "born": 1970.0, "tone": -0.5}


@pytest.fixture(scope="module")
def recogniser():
    return SFace()


@pytest.fixture(scope="module")
def people(recogniser):
    """Six people who do not exist, as subjects with one view each."""
    faces = ksame.synthetic(6, seed=8, size=(280, 220))
    mesher = FaceMesh()
    subjects = []
    for i, image in enumerate(faces.images):
        pixels = (image * 255 + 0.5).astype(np.uint8)
        mesh = mesher.fit(pixels, detect(pixels)[0])
        points = np.array(mesh.points)
        reference = make_reference(pixels, points, np.array(mesh.blendshapes))
        view = View(pixels, points, reference, recogniser.embed(pixels, five_points(points)))
        model = face_model()
        code = model.encode(reference.shape, model.texture_of(image, points))
        woman = bool(faces.attribute("gender")[i] == "F")
        subjects.append(Subject(f"P{i + 1}", woman, 1970.0, -0.5, code, (view,)))
    return subjects


def surrogate(seed=0):
    return draw(LABELS, np.random.default_rng(seed))


def painted(view, face, cover=Cover.FACE):
    out = view.pixels.copy()
    paint(view.pixels, view.points, fit_surrogate(face, view.reference, cover), out, cover)
    return out


def test_the_coarse_mesh_covers_what_the_model_covers():
    places = canvas()
    assert np.array_equal(places.warp.mask, places.model.warp.mask)
    assert set(OUTLINE) <= set(places.picks.tolist())


def test_nothing_outside_the_outline_changes_when_only_the_face_is_covered(people):
    view = people[0].views[0]
    changed = (painted(view, surrogate()) != view.pixels).any(axis=2)
    inside = polygon(changed.shape, with_forehead(view.points[:, :2])[list(OUTLINE)]) > 0
    assert not changed[~inside].any()
    assert changed[inside].mean() > 0.8


@pytest.mark.parametrize("cover", [Cover.SOFT, Cover.HEAD])
def test_the_ring_changes_too_and_nothing_beyond_it(people, cover):
    view = people[1].views[0]
    changed = (painted(view, surrogate(), cover) != view.pixels).any(axis=2)
    rows, columns = ring_window(with_forehead(view.points[:, :2]), view.pixels.shape)
    beyond = changed.copy()
    beyond[rows, columns] = False
    assert not beyond.any()
    face_only = (painted(view, surrogate()) != view.pixels).any(axis=2)
    assert changed.sum() > 1.2 * face_only.sum()


def test_what_is_painted_onto_does_not_decide_what_is_read(people):
    view = people[0].views[0]
    black = np.zeros_like(view.pixels)
    fitted = fit_surrogate(surrogate(), view.reference)
    paint(view.pixels, view.points, fitted, black)
    onto = view.pixels.copy()
    paint(view.pixels, view.points, fitted, onto)
    middle = tuple(np.rint(view.points[4, :2]).astype(int)[::-1])
    assert np.array_equal(black[middle], onto[middle])


@pytest.mark.parametrize("whole", [False, True])
def test_closed_lips_stay_closed(whole):
    change = np.random.default_rng(0).normal(size=(478, 3))
    kept = keep_openings(change, whole_mouth=whole)
    assert np.allclose(kept[13], kept[14])
    assert np.allclose(kept[159], kept[145])
    assert not np.allclose(kept[INNER_LIPS[0]], kept[13])


def test_a_whole_mouth_is_moved_more_than_bent():
    change = np.random.default_rng(0).normal(size=(478, 3)) + 5.0
    bent, whole = (keep_openings(change, whole_mouth=one)[list(INNER_LIPS)] for one in (False, True))
    assert np.allclose(whole.mean(axis=0), 5.0, atol=0.5)
    assert whole.std(axis=0).max() < 0.5 * bent.std(axis=0).max()


def test_a_face_beyond_the_edge_of_the_picture_is_painted_as_far_as_it_goes(people):
    view = people[2].views[0]
    cut = view.pixels[:, : view.pixels.shape[1] // 2].copy()
    out = cut.copy()
    paint(cut, view.points, fit_surrogate(surrogate(), view.reference), out, Cover.HEAD)
    assert out.shape == cut.shape
    assert (out != cut).any()


@pytest.mark.parametrize("shift", [(-900, 0), (900, 0), (0, -900), (0, 900)])
def test_a_face_outside_the_picture_changes_nothing(people, shift):
    view = people[0].views[0]
    out = view.pixels.copy()
    fitted = fit_surrogate(surrogate(), view.reference)
    paint(view.pixels, view.points + np.array([*shift, 0]), fitted, out, Cover.SOFT)
    assert np.array_equal(out, view.pixels)


@pytest.mark.parametrize("cover", list(Cover))
@pytest.mark.parametrize("shift", [(-150, -120), (150, 200)])
def test_a_face_at_the_edge_is_no_obstacle(people, shift, cover):
    view = people[0].views[0]
    out = view.pixels.copy()
    paint(view.pixels, view.points + np.array([*shift, 0]), fit_surrogate(surrogate(), view.reference), out, cover)
    assert (out != view.pixels).any()


def test_an_expression_is_put_on_and_taken_off():
    code = surrogate().code
    blends = np.zeros(len(BLENDSHAPES))
    blends[BLENDSHAPES.index("mouthSmileLeft")] = blends[BLENDSHAPES.index("mouthSmileRight")] = 0.8
    expression = expression_of(blends)
    model = face_model()
    smiling = model.moved(code[None], {"smile": 0.8})[0]
    assert np.allclose(without_expression(smiling, expression), code)
    neutral, smile = (surrogate().look(e)[0] for e in (np.zeros_like(expression), expression))
    assert smile[291, 1] < neutral[291, 1]  # the corner of the mouth goes up


def test_a_grey_photograph_gets_a_grey_face(people):
    view = people[0].views[0]
    grey = np.repeat(view.pixels.mean(axis=2, keepdims=True), 3, axis=2).astype(np.uint8)
    reference = make_reference(grey, view.points, np.zeros(len(BLENDSHAPES)))
    out = grey.copy()
    paint(grey, view.points, fit_surrogate(surrogate(), reference), out)
    assert np.ptp(out.astype(int), axis=2).max() <= 6


def hazy(view, contrast):
    return (190 + contrast * (view.pixels.astype(np.float32) - 128)).clip(0, 255).astype(np.uint8)


def test_a_hazy_photograph_gets_a_hazy_face(people):
    view = people[0].views[0]
    middle = slice(70, 220), slice(60, 160)
    spread = {}
    for contrast in (0.8, 0.2):
        pixels = hazy(view, contrast)
        reference = make_reference(pixels, view.points, np.zeros(len(BLENDSHAPES)))
        out = pixels.copy()
        paint(pixels, view.points, fit_surrogate(surrogate(), reference), out)
        spread[contrast] = pixels[middle].std(axis=(0, 1)).mean(), out[middle].std(axis=(0, 1)).mean()
    assert spread[0.2][0] < 0.3 * spread[0.8][0]
    assert spread[0.2][1] < 0.5 * spread[0.8][1]


def test_hair_in_the_forehead_does_not_colour_the_nose(people):
    view = people[0].views[0]
    places = view.points[[6, 197, 5, 4, 45, 275], :2].astype(int)

    def nose(pixels):
        reference = make_reference(pixels, view.points, np.zeros(len(BLENDSHAPES)))
        out = pixels.copy()
        paint(pixels, view.points, fit_surrogate(surrogate(), reference), out)
        return np.log([out[y - 2 : y + 3, x - 2 : x + 3].mean(axis=(0, 1)) for x, y in places])

    hair = view.pixels.copy()
    hair[: int(view.points[[105, 334], 1].min())] = (60, 62, 66)
    hair[:, : int(view.points[33, 0])] = (60, 62, 66)
    change = nose(hair) - nose(view.pixels)
    assert np.abs(change - change.mean(axis=1, keepdims=True)).max() < 0.08


def test_lines_that_slip_are_not_drawn_twice(people):
    view = people[0].views[0]
    brows = view.points[[70, 300], :2]

    def with_bar(shift):
        pixels = view.pixels.copy()
        left, right = (brows + np.array([[-8, shift - 6], [8, shift - 6]])).astype(int).tolist()
        return np.asarray(cv2.line(pixels, left, right, (20, 20, 20), 3))

    reference = make_reference(with_bar(0), view.points, np.zeros(len(BLENDSHAPES)))
    fitted = fit_surrogate(surrogate(), reference)
    outs = []
    for shift in (0, 7):
        out = with_bar(shift)
        paint(with_bar(shift), view.points, fitted, out)
        outs.append(out.astype(int).mean(axis=2))
    x, y = brows.mean(axis=0).astype(int)
    apart = np.abs(outs[1] - outs[0])[y - 14 : y + 14, x - 20 : x + 20] / outs[0][y - 14 : y + 14, x - 20 : x + 20]
    assert np.quantile(apart, 0.99) < 0.35


def test_light_that_falls_on_a_face_falls_on_the_new_one(people):
    view = people[0].views[0]
    fitted = fit_surrogate(surrogate(), view.reference)
    means = []
    for light in (1.0, 0.6):
        pixels = (view.pixels * light).astype(np.uint8)
        out = pixels.copy()
        paint(pixels, view.points, fitted, out)
        means.append(out[100:200, 70:150].mean())
    assert 0.5 < means[1] / means[0] < 0.7


def test_people_are_dealt_out_in_equal_shares():
    rng = np.random.default_rng(0)
    chosen, owner = deal(rng.random((23, 9)), 4, rng)
    assert len(set(chosen.tolist())) == 4
    assert np.bincount(owner).min() >= 23 // 4


def test_members_share_one_face_and_nobody_is_left_out(people, recogniser):
    groups = choose(people, 3, Loop(recogniser), np.random.default_rng(1), candidates=2)
    assert sorted(i for group in groups for i in group.members) == list(range(len(people)))
    for group in groups:
        assert all(face is group.surrogates[0] for face in group.surrogates)
        assert len({people[i].woman for i in group.members}) == 1


def test_the_choice_does_not_depend_on_the_number_of_workers(people, recogniser):
    one, two = (
        choose(people, 2, Loop(recogniser), np.random.default_rng(1), candidates=4, workers=workers)
        for workers in (1, 2)
    )
    assert [g.members for g in one] == [g.members for g in two]
    assert all(np.array_equal(a.surrogates[0].code, b.surrogates[0].code) for a, b in zip(one, two, strict=True))


def test_the_recogniser_no_longer_knows_them(people, recogniser):
    wishes = {person.name: Treatment.REPLACE for person in people}
    choice = make_plans(wishes, people, recogniser, np.random.default_rng(3), k=3)
    limit = recogniser.threshold
    for person in people:
        plan = choice.plans[person.name]
        if plan.treatment is Treatment.REPLACE:
            assert choice.likeness[person.name] < limit
            assert Loop(recogniser).likeness(person.views[0], plan.surrogate, plan.cover) < limit
        else:
            assert plan.stands_in


@pytest.mark.parametrize("bad_faces", [1, 99])
def test_another_face_is_tried_before_somebody_is_masked(people, recogniser, monkeypatch, bad_faces):
    men = [person for person in people if not person.woman]
    chosen = []

    def first_ones(*args, **options):
        groups = choose(*args, **options)
        chosen.append(groups[0].surrogates[0])
        return groups

    def known(_, view, surrogate, cover):  # the last of them, in the first faces that are chosen
        bad = any(surrogate is face for face in chosen[:bad_faces])
        return 0.9 if bad and view is men[-1].views[0] else 0.1

    monkeypatch.setattr("ksame.scene.choosing.choose", first_ones)
    monkeypatch.setattr(Loop, "likeness", known)
    wishes = {person.name: Treatment.REPLACE for person in men}
    choice = make_plans(wishes, men, recogniser, np.random.default_rng(3), k=len(men), candidates=2)
    masked = [name for name, plan in choice.plans.items() if plan.stands_in]
    if bad_faces == 1:
        assert masked == []
        assert len(chosen) == 2
        assert all(plan.surrogate is chosen[1] for plan in choice.plans.values())
    else:
        assert masked == [men[-1].name]
        assert len(chosen) == 2
        assert choice.k_real == len(men) - 1


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_plan_for_everyone(people, recogniser, method):
    wishes = {person.name: Treatment.REPLACE for person in people} | {"P9": Treatment.REPLACE, "P8": Treatment.KEEP}
    choice = make_plans(wishes, people, recogniser, np.random.default_rng(0), method=method, k=2, loop=False)
    assert set(choice.plans) == set(wishes)
    assert choice.plans["P8"].treatment is Treatment.KEEP
    assert choice.plans["P9"].treatment is Treatment.MASK  # nobody knows what they look like
    treated = {choice.plans[person.name].treatment for person in people}
    assert treated == ({Treatment.MASK} if method in MASKS else {Treatment.REPLACE})


def test_k_same_m_gives_a_group_its_mean(people, recogniser):
    men = [person for person in people if not person.woman]
    wishes = {person.name: Treatment.REPLACE for person in men}
    k = len(men)
    choice = make_plans(wishes, men, recogniser, np.random.default_rng(0), method="k-same-m", k=k, loop=False)
    codes = {choice.plans[name].surrogate.code.tobytes() for name in wishes}
    assert len(codes) == 1
    mean = np.mean([person.code for person in men], axis=0)
    assert np.allclose(choice.plans[men[0].name].surrogate.code, mean)
    assert choice.k_real == k


def test_the_stored_mesh_is_the_one_that_would_be_built():
    picks, triangles = coarse_mesh(face_model())
    places = canvas()
    assert np.array_equal(picks, places.picks)
    assert np.array_equal(triangles, places.warp.triangles)


@pytest.mark.parametrize("haze", [1.0, 0.3])
def test_skin_is_of_one_colour_and_lips_are_redder(haze):
    places = canvas()
    for seed in range(4):
        surrogate = draw({"woman": 1.0, "born": 1970.0, "tone": -0.5}, np.random.default_rng(seed))
        plain = logarithm(surrogate.look(expression_of(np.zeros(len(BLENDSHAPES))))[1])
        amounts = Contrast.of(places, plain).amounts * [haze, haze, haze, 1.0]
        rows = matched_contrast(places, amounts, plain)
        tint = rows - rows.mean(axis=1, keepdims=True)
        skin, lips = places.lips < 0.001, places.lips > 0.9
        assert np.ptp(tint[skin], axis=0).max() < 0.081
        redder = np.median(tint[lips][:, 0]) - np.median(tint[skin][:, 0])
        assert 0 < redder < 0.12 * haze
