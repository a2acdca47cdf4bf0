"""Who becomes whom: who shares a face, what the recogniser may see, what every method plans."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import ksame
from ksame.errors import UsageError
from ksame.heads.head import Head, expression_of, neutral_shape
from ksame.heads.surrogate import ORDINARY, draw_surrogate, modelled
from ksame.models import SFace, detect, five_points
from ksame.models.finisher import finisher
from ksame.models.mesh import FaceMesh
from ksame.recipes import METHODS, InScenes
from ksame.scene.config import JobConfig
from ksame.scene.decide import Judge, Piece, Subject, Treatment, View, choose_surrogates, decide, make_plan
from ksame.scene.decide.dealing import SEARCH, deal
from ksame.scene.decide.reading import read
from ksame.scene.decide.surrogates import _blocks
from ksame.scene.track import People
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.labels import genders


@pytest.fixture(scope="module")
def recogniser():
    return SFace()


@pytest.fixture(scope="module")
def judge(recogniser):
    return Judge(recogniser, finisher("cpu"))


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
        embedding = recogniser.embed(pixels, five_points(points))
        reading = read(pixels, mesh, embedding)
        view = View(Piece(pixels, points, neutral), embedding, *reading)
        woman = bool(faces.attribute("gender")[i] == "F")
        subjects.append(Subject(f"P{i + 1}", woman, 1970.0, reading.skin, reading.code, (view,), confirmed=True))
    return subjects


def planned(wishes, people, judge, seed, **options):
    with ThreadPoolExecutor(2) as pool:
        return make_plan(wishes, people, judge, np.random.default_rng(seed), JobConfig(**options), pool)


@pytest.mark.parametrize("woman", [True, False])
def test_mixes_of_two_read_as_their_gender(woman):
    model, rng = face_model(), np.random.default_rng(1)
    drawn = [draw_surrogate(woman, float(born), ORDINARY, rng).looks for born in np.linspace(1935, 1985, 40)]
    codes = [model.encode(each.shape, (each.texture[model.warp.mask] / 255).astype(np.float32)) for each in drawn]
    assert (genders(model, np.array(codes)) == ("F" if woman else "M")).mean() > 0.97


def test_people_are_dealt_out_in_equal_shares():
    rng = np.random.default_rng(0)
    chosen, owner = deal(rng.random((23, 9)), 4, rng)
    assert len(set(chosen.tolist())) == 4
    assert np.bincount(owner).min() >= 23 // 4


@pytest.mark.parametrize("n", [1, 9, 19, 20, 95, 700])
def test_blocks_hold_everyone_once_and_never_fewer_than_a_group(n):
    rng = np.random.default_rng(n)
    subjects = [
        Subject(f"P{i}", bool(i % 2), float(rng.uniform(1940, 2000)), ORDINARY, np.empty(0), ()) for i in range(2 * n)
    ]
    blocks = _blocks(subjects, 10)
    assert sorted(i for block in blocks for i in block) == list(range(2 * n))
    assert all(len({subjects[i].woman for i in block}) == 1 for block in blocks)
    assert all(len(block) >= min(n, 10) for block in blocks)
    assert max(len(block) for block in blocks) < 20 * SEARCH.block  # the cost grows with people only


def test_members_share_one_face_and_nobody_is_left_out(people, judge):
    with ThreadPoolExecutor(2) as pool:
        groups = choose_surrogates(people, 3, judge, np.random.default_rng(1), pool)
    assert sorted(i for group in groups for i in group.likeness) == list(range(len(people)))
    for group in groups:
        assert len({people[i].woman for i in group.likeness}) == 1


def test_the_choice_does_not_depend_on_the_number_of_workers(people, judge):
    def choose(threads):
        with ThreadPoolExecutor(threads) as pool:
            return choose_surrogates(people, 2, judge, np.random.default_rng(1), pool)

    one, two = choose(1), choose(3)
    assert [list(group.likeness) for group in one] == [list(group.likeness) for group in two]
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.surrogate.looks.texture, b.surrogate.looks.texture)
        assert a.likeness == b.likeness


def faces_of(plan):
    return {name: d.surrogate.looks.texture.tobytes() for name, d in plan.decisions.items() if d.surrogate}


def groups_of(plan):
    return {name: decision.group for name, decision in plan.decisions.items()}


def test_another_face_for_somebody_is_another_for_their_group_and_for_nobody_else(people, judge):
    wishes = {person.name: Treatment.REPLACE for person in people}
    first, second, third, same = (
        planned(wishes, people, judge, 3, k=2, another=names) for names in ((), ("P1",), ("P1", "P1"), ("P1",))
    )
    sharing = [name for name in wishes if groups_of(first)[name] == groups_of(first)["P1"]]
    assert len(sharing) >= 2
    assert groups_of(first) == groups_of(second) == groups_of(third), "who shares a face with whom stays"
    for name, face in faces_of(first).items():
        assert (faces_of(second).get(name) == face) is (name not in sharing)
    assert len({faces_of(plan)[sharing[0]] for plan in (first, second, third)}) == 3
    assert faces_of(second) == faces_of(same)
    for plan in (second, third):
        assert len({faces_of(plan)[name] for name in sharing if name in faces_of(plan)}) == 1
        assert all(value <= judge.limit for value in plan.likeness.values()), "the judge has the last word here too"


def test_another_face_is_asked_of_the_other_half_of_a_group_as_well(people, judge):
    """Two who share a face ask for another in turn: each time there is one."""
    wishes = {person.name: Treatment.REPLACE for person in people}
    plan = planned(wishes, people, judge, 3, k=2, judged=False)
    sharing = [name for name in wishes if groups_of(plan)[name] == groups_of(plan)["P1"]][:2]
    once, twice = (planned(wishes, people, judge, 3, k=2, judged=False, another=sharing[:n]) for n in (1, 2))
    assert len({faces_of(each)["P1"] for each in (plan, once, twice)}) == 3


@pytest.mark.parametrize("name", ["P2", "P7"])
def test_another_face_is_refused_where_there_is_none(name):
    everyone, config = People({(0, "P1"): "P1", (0, "P2"): "P2"}), JobConfig(keep=("P2",), another=("P1", name))
    with pytest.raises(UsageError, match=f"{name}: there is no new face.*: P1"):
        decide((), everyone, config, 1, recogniser=None, executor=None)


@pytest.mark.parametrize("method", ["blackout", "k-same-m"])
def test_another_face_is_refused_where_none_is_drawn(method):
    with pytest.raises(UsageError, match="draws none"):
        JobConfig(method=method, another=("P1",))


def test_the_recogniser_no_longer_knows_them(people, judge):
    wishes = {person.name: Treatment.REPLACE for person in people}
    plan = planned(wishes, people, judge, 3, k=3)
    for person in people:
        decision = plan.decisions[person.name]
        if decision.treatment is Treatment.REPLACE:
            assert plan.likeness[person.name] <= judge.limit
            assert judge.likeness(person, decision.surrogate) == pytest.approx(plan.likeness[person.name], abs=1e-4)
        else:
            assert decision.masked_instead


@pytest.mark.parametrize("n_bad", [1, 999])
def test_other_faces_are_tried_before_somebody_is_masked(people, judge, monkeypatch, n_bad):
    men = [person for person in people if not person.woman]
    tried = []

    def known(_, person, surrogate):  # the last of them, in the first faces that are tried
        if not any(surrogate is face for face in tried):
            tried.append(surrogate)
        bad = any(surrogate is face for face in tried[:n_bad])
        return 0.9 if bad and person is men[-1] else 0.1

    monkeypatch.setattr(Judge, "likeness", known)
    wishes = {person.name: Treatment.REPLACE for person in men}
    plan = planned(wishes, men, judge, 3, k=len(men))
    masked = [name for name, decision in plan.decisions.items() if decision.masked_instead]
    if n_bad == 1:
        assert masked == []
        assert all(decision.surrogate is tried[1] for decision in plan.decisions.values())
    else:
        assert masked == [men[-1].name]
        assert plan.k_real() == len(men) - 1


def grouped(people, judge, monkeypatch, likeness, k):
    """Return groups of people of one gender, and the faces in the order in which they were first judged.

    ``likeness(person, face, others)`` stands for the judge: number of the person, number of the face, and which other
    people were judged in that face before.
    """
    faces, seen = [], []

    def judged(_, person, surrogate):
        number = next((i for i, face in enumerate(faces) if face is surrogate), len(faces))
        if number == len(faces):
            faces.append(surrogate)
            seen.append(set())
        who = int(person.name[1:]) - 1
        seen[number].add(who)
        return likeness(who, number, seen[number] - {who})

    monkeypatch.setattr(Judge, "likeness", judged)
    monkeypatch.setattr(Judge, "embed", lambda _, view, surrogate: view.embedding)
    men = [replace(person, woman=False) for person in people]
    with ThreadPoolExecutor(1) as pool:
        return choose_surrogates(men, k, judge, np.random.default_rng(3), pool), faces


@pytest.mark.parametrize("draws", [1, 2, SEARCH.draws - 1])
def test_more_faces_are_drawn_before_somebody_is_masked(people, judge, monkeypatch, draws):
    bad = draws * SEARCH.candidates
    (group,), faces = grouped(people, judge, monkeypatch, lambda _, face, __: 0.9 if face < bad else 0.1, len(people))
    assert group.surrogate is faces[bad], "the first of those drawn afterwards"
    assert sorted(group.likeness) == list(range(len(people)))


def test_the_face_is_taken_in_which_the_fewest_are_recognised(people, judge, monkeypatch):
    """A face that fails for everybody by a little is worse than one that fails for one person by much."""
    (group,), faces = grouped(
        people, judge, monkeypatch, lambda who, face, _: 0.5 if face != 2 else 0.9 if who == 0 else 0.1, len(people)
    )
    assert group.surrogate is faces[2]


def test_a_face_that_is_less_like_its_people_is_taken(people, judge, monkeypatch):
    """Nobody is recognised in any face; in the third they are further from it."""
    near, far = judge.limit - 0.5 * SEARCH.distance, judge.limit - 1.5 * SEARCH.distance
    (group,), faces = grouped(people, judge, monkeypatch, lambda _, face, __: far if face == 2 else near, len(people))
    assert group.surrogate is faces[2]


def test_faces_are_not_drawn_again_for_being_alike(people, judge, monkeypatch):
    """Nobody is recognised, and nothing better is among the first faces drawn: that is good enough."""
    near = judge.limit - 0.5 * SEARCH.distance
    (group,), faces = grouped(people, judge, monkeypatch, lambda *_: near, len(people))
    assert group.surrogate is faces[0]
    assert len(faces) <= SEARCH.candidates
    assert sorted(group.likeness) == list(range(len(people)))


def test_to_be_recognised_is_worse_than_to_be_alike(people, judge, monkeypatch):
    """In the second face one person is recognised and nobody else is alike; in the first, all are only alike."""
    near = judge.limit - 0.5 * SEARCH.distance
    (group,), faces = grouped(
        people,
        judge,
        monkeypatch,
        lambda who, face, _: near if face == 0 else 0.9 if who == 0 else 0.0,
        len(people),
    )
    assert group.surrogate is faces[0]


def test_a_face_that_does_not_help_the_recognised_is_judged_no_further(people, judge, monkeypatch):
    """One person is recognised everywhere; the others are judged in the first face only."""
    judged = []
    (group,), faces = grouped(
        people, judge, monkeypatch, lambda who, face, _: judged.append((who, face)) or (0.9 if who == 0 else 0.1), 6
    )
    assert group.surrogate is faces[0]
    assert {face for who, face in judged if who != 0} == {0}


@pytest.mark.parametrize("others_can", [True, False])
def test_whoever_is_recognised_in_their_groups_face_gets_that_of_another(people, judge, monkeypatch, others_can):
    """The first person is recognised in every face that is tried for their own group, but not in the other group's."""

    def likeness(who, _, others):
        if who == 0:
            return 0.1 if len(others) == 3 else 0.9
        return 0.1 if len(others) < 3 or others_can else 0.9  # whether somebody can take their place

    groups, _ = grouped(people, judge, monkeypatch, likeness, 3)
    assert sorted(i for group in groups for i in group.likeness) == list(range(len(people)))
    assert {value for group in groups for value in group.likeness.values()} == {0.1}, "nobody is masked"
    sizes = sorted(len(group.likeness) for group in groups)
    assert sizes == ([3, 3] if others_can else [2, 4]), "masked, the person would be missing in their group as well"


@pytest.mark.parametrize("method", [entry.name for entry in METHODS.values() if entry.scenes.works])
def test_every_method_has_a_plan_for_everyone(people, judge, method):
    wishes = {person.name: Treatment.REPLACE for person in people} | {"P9": Treatment.REPLACE, "P8": Treatment.KEEP}
    plan = planned(wishes, people, judge, 0, method=method, k=2, judged=False)
    assert set(plan.decisions) == set(wishes)
    assert plan.decisions["P8"].treatment is Treatment.KEEP
    assert plan.decisions["P9"].treatment is Treatment.MASK  # nobody knows what they look like
    treated = {plan.decisions[person.name].treatment for person in people}
    assert treated == ({Treatment.MASK} if METHODS[method].masks else {Treatment.REPLACE})


def test_k_same_m_gives_a_group_its_mean(people, judge):
    men = [person for person in people if not person.woman]
    wishes = {person.name: Treatment.REPLACE for person in men}
    k = len(men)
    plan = planned(wishes, men, judge, 0, method="k-same-m", k=k, judged=False)
    looks = {plan.decisions[name].surrogate.looks.texture.tobytes() for name in wishes}
    mean = modelled(np.mean([person.code for person in men], axis=0))
    assert looks == {mean.looks.texture.tobytes()}
    assert plan.k_real() == k


def test_one_line_lets_a_method_of_face_sets_replace_people(people, judge):
    line = replace(METHODS["k-same-furthest"], name="far-away", scenes=InScenes(shares="a mean of others"))
    METHODS.add(line)
    try:
        wishes = {person.name: Treatment.REPLACE for person in people}
        plan = planned(wishes, people, judge, 0, method="far-away", k=2, judged=False)
    finally:
        METHODS.remove("far-away")
    faces: dict[int, set[int]] = {}
    for decision in plan.decisions.values():
        assert decision.treatment is Treatment.REPLACE or decision.masked_instead
        if decision.treatment is Treatment.REPLACE:
            faces.setdefault(decision.group, set()).add(id(decision.surrogate))
    assert len(faces) > 1
    assert all(len(shared) == 1 for shared in faces.values())
    assert plan.k_real() is not None
