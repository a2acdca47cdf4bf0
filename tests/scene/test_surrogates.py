"""Who becomes whom: who shares a face, what the recogniser may see, what every method plans."""

from dataclasses import replace

import numpy as np
import pytest

import ksame
from ksame.heads.head import Head, expression_of, neutral_shape
from ksame.heads.surrogate import modelled
from ksame.models import SFace, detect, five_points
from ksame.models.finisher import finisher
from ksame.models.mesh import FaceMesh
from ksame.recipes import METHODS, InScenes
from ksame.scene.choosing import make_plans
from ksame.scene.composing import Treatment
from ksame.scene.identities import _BLOCK, Loop, Subject, View, _blocks, choose, deal
from ksame.scene.preparing import read


@pytest.fixture(scope="module")
def recogniser():
    return SFace()


@pytest.fixture(scope="module")
def loop(recogniser):
    return Loop(recogniser, finisher("cpu"))


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
        neutral = neutral_shape(Head.of(points).aligned, expression_of(mesh.blendshapes))
        view = View(pixels, points, neutral, recogniser.embed(pixels, five_points(points)))
        reading = read(pixels, points, mesh.blendshapes)
        woman = bool(faces.attribute("gender")[i] == "F")
        subjects.append(Subject(f"P{i + 1}", woman, 1970.0, reading.tone, reading.code, (view,), confirmed=True))
    return subjects


def test_people_are_dealt_out_in_equal_shares():
    rng = np.random.default_rng(0)
    chosen, owner = deal(rng.random((23, 9)), 4, rng)
    assert len(set(chosen.tolist())) == 4
    assert np.bincount(owner).min() >= 23 // 4


@pytest.mark.parametrize("n", [1, 9, 19, 20, 95, 700])
def test_blocks_hold_everyone_once_and_never_fewer_than_a_group(n):
    rng = np.random.default_rng(n)
    subjects = [
        Subject(f"P{i}", bool(i % 2), float(rng.uniform(1940, 2000)), -0.5, np.empty(0), ()) for i in range(2 * n)
    ]
    blocks = _blocks(subjects, 10)
    assert sorted(i for block in blocks for i in block) == list(range(2 * n))
    assert all(len({subjects[i].woman for i in block}) == 1 for block in blocks)
    assert all(len(block) >= min(n, 10) for block in blocks)
    assert max(len(block) for block in blocks) < 20 * _BLOCK  # so that the cost grows with the number of people only


def test_members_share_one_face_and_nobody_is_left_out(people, loop):
    groups = choose(people, 3, loop, np.random.default_rng(1))
    assert sorted(i for group in groups for i in group.members) == list(range(len(people)))
    for group in groups:
        assert all(face is group.surrogates[0] for face in group.surrogates)
        assert len({people[i].woman for i in group.members}) == 1


def test_the_choice_does_not_depend_on_the_number_of_workers(people, loop):
    one, two = (choose(people, 2, loop, np.random.default_rng(1), workers=workers) for workers in (1, 2))
    assert [group.members for group in one] == [group.members for group in two]
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.surrogates[0].looks.texture, b.surrogates[0].looks.texture)
        assert a.likeness == b.likeness


def test_the_recogniser_no_longer_knows_them(people, loop):
    wishes = {person.name: Treatment.REPLACE for person in people}
    choice = make_plans(wishes, people, loop, np.random.default_rng(3), k=3)
    for person in people:
        plan = choice.plans[person.name]
        if plan.treatment is Treatment.REPLACE:
            assert choice.likeness[person.name] <= loop.limit
            assert loop.likeness(person, plan.surrogate) == pytest.approx(choice.likeness[person.name], abs=1e-4)
        else:
            assert plan.stands_in


@pytest.mark.parametrize("n_bad", [1, 99])
def test_other_faces_are_tried_before_somebody_is_masked(people, loop, monkeypatch, n_bad):
    men = [person for person in people if not person.woman]
    tried = []

    def known(_, person, surrogate):  # the last of them, in the first faces that are tried
        if not any(surrogate is face for face in tried):
            tried.append(surrogate)
        bad = any(surrogate is face for face in tried[:n_bad])
        return 0.9 if bad and person is men[-1] else 0.1

    monkeypatch.setattr(Loop, "likeness", known)
    wishes = {person.name: Treatment.REPLACE for person in men}
    choice = make_plans(wishes, men, loop, np.random.default_rng(3), k=len(men))
    masked = [name for name, plan in choice.plans.items() if plan.stands_in]
    if n_bad == 1:
        assert masked == []
        assert all(plan.surrogate is tried[1] for plan in choice.plans.values())
    else:
        assert masked == [men[-1].name]
        assert choice.k_real() == len(men) - 1


@pytest.mark.parametrize("method", [entry.name for entry in METHODS.values() if entry.scenes.works])
def test_every_method_has_a_plan_for_everyone(people, loop, method):
    wishes = {person.name: Treatment.REPLACE for person in people} | {"P9": Treatment.REPLACE, "P8": Treatment.KEEP}
    choice = make_plans(wishes, people, loop, np.random.default_rng(0), method=method, k=2, judged=False)
    assert set(choice.plans) == set(wishes)
    assert choice.plans["P8"].treatment is Treatment.KEEP
    assert choice.plans["P9"].treatment is Treatment.MASK  # nobody knows what they look like
    treated = {choice.plans[person.name].treatment for person in people}
    assert treated == ({Treatment.MASK} if METHODS[method].masks else {Treatment.REPLACE})


def test_k_same_m_gives_a_group_its_mean(people, loop):
    men = [person for person in people if not person.woman]
    wishes = {person.name: Treatment.REPLACE for person in men}
    k = len(men)
    choice = make_plans(wishes, men, loop, np.random.default_rng(0), method="k-same-m", k=k, judged=False)
    looks = {choice.plans[name].surrogate.looks.texture.tobytes() for name in wishes}
    mean = modelled(np.mean([person.code for person in men], axis=0))
    assert looks == {mean.looks.texture.tobytes()}
    assert choice.k_real() == k


def test_one_line_lets_a_method_of_face_sets_replace_people(people, loop):
    line = replace(METHODS["k-same-furthest"], name="far-away", scenes=InScenes(shares="a mean of others"))
    METHODS.add(line)
    try:
        wishes = {person.name: Treatment.REPLACE for person in people}
        choice = make_plans(wishes, people, loop, np.random.default_rng(0), method="far-away", k=2, judged=False)
    finally:
        METHODS.remove("far-away")
    faces: dict[int, set[int]] = {}
    for name, plan in choice.plans.items():
        assert plan.treatment is Treatment.REPLACE or plan.stands_in
        if plan.treatment is Treatment.REPLACE:
            faces.setdefault(choice.groups[name], set()).add(id(plan.surrogate))
    assert len(faces) > 1
    assert all(len(shared) == 1 for shared in faces.values())
    assert choice.k_real() is not None
