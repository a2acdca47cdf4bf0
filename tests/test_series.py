"""A series of releases: what people who leave, stay, return or join give away over the years."""

import json

import numpy as np
import pytest

import ksame
from drawn import drawn_faces
from ksame.attacks import AttackData, Eigenfaces, run_attack
from ksame.errors import GuaranteeError, InputError, PrivacyWarning, UsageError
from ksame.faces.faceset import FaceSet, quantise
from ksame.privacy.linkage import Linkage
from ksame.privacy.series import Occasion, continued

RECIPE = ksame.recipe("k-same-pixel", k=3)


@pytest.fixture(scope="module")
def everyone() -> FaceSet:
    return drawn_faces(40, seed=31, width=24, height=32)


def named(faces: FaceSet, people) -> FaceSet:
    return faces.take(np.isin(faces.subjects, sorted(people)))


def released(release, linkage) -> FaceSet:
    return FaceSet(release.faces, np.array([face.subject for face in linkage.faces]))


def groups(linkage) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for face in linkage.faces:
        found.setdefault(face.group, set()).add(face.subject)
    return found


def bytes_of(linkage, release) -> dict[tuple, bytes]:
    return {(f.subject, f.sources): release.faces[i].tobytes() for i, f in enumerate(linkage.faces)}


def psnr(one, two) -> float:
    return float(-10 * np.log10(max(np.mean((one - two) ** 2), 1e-12)))


def test_whoever_leaves_cannot_be_computed_from_two_public_folders(everyone):
    """c1 * face1 - c2 * face2 was the leaving person's original, at 45 dB."""
    first = named(everyone, everyone.subjects[:31])
    one, link = ksame.deidentify(first, RECIPE, seed=1)
    large = [members for members in groups(link).values() if len(members) > 3]
    assert large, "the premise: a group that stays above k when somebody leaves"
    for leaver in sorted(large[0]):
        two, _ = ksame.deidentify(named(first, set(first.subjects) - {leaver}), RECIPE, seed=2, after=link)
        original = first.images[first.subjects == leaver][0]
        best = 0.0
        for r in {f.tobytes(): f for f in one.faces}.values():
            for s in {f.tobytes(): f for f in two.faces}.values():
                c1, c2 = ((x.faces == f).all(axis=(1, 2, 3)).sum() for x, f in ((one, r), (two, s)))
                if c1 > c2:
                    guess = (c1 * (r / 255.0) - c2 * (s / 255.0)) / (c1 - c2)
                    best = max(best, psnr(np.clip(guess, 0, 1), original))
        assert best < 25


def mean_over_who_is_left(first, link, leavers):
    """What a later release must not be: a new mean over fewer members."""
    faces, who = [], []
    for members in groups(link).values():
        there = sorted(members - leavers)
        mean = np.mean([first.images[first.subjects == s][0] for s in there], axis=0)
        faces += [quantise(mean[None])[0]] * len(there)
        who += there
    return FaceSet(np.stack(faces), np.array(who))


@pytest.mark.parametrize("exchanged", [False, True], ids=["somebody left", "somebody else joined"])
def test_the_differencing_attack_names_leavers_of_new_means_and_nobody_in_a_series(everyone, exchanged):
    first = named(everyone, everyone.subjects[:31])
    one, link = ksame.deidentify(first, RECIPE, seed=1)
    members = groups(link)
    leavers = {min(m) for m in members.values()}
    wrong = mean_over_who_is_left(first, link, leavers)
    if exchanged:
        newcomers = iter(everyone.subjects[31:])
        moved = {g: {*(m - leavers), next(newcomers)} for g, m in list(members.items())[:9]}
        faces, who = [], []
        for people in moved.values():
            mean = np.mean([everyone.images[everyone.subjects == s][0] for s in people], axis=0)
            faces += [quantise(mean[None])[0]] * len(people)
            who += sorted(people)
        wrong = FaceSet(np.stack(faces), np.array(who))
    broken = run_attack("differencing", Eigenfaces(), AttackData(everyone, wrong, earlier=released(one, link)))
    assert broken.rank1 > 0.9, "the control: it must work where it can"
    assert broken.covered
    kept = named(everyone, set(everyone.subjects) - leavers)
    series = released(*ksame.deidentify(kept, RECIPE, seed=2, after=link))
    honest = run_attack("differencing", Eigenfaces(), AttackData(everyone, series, earlier=released(one, link)))
    assert honest.rank1 <= 1 / 3 + 1e-9
    assert "nothing to subtract" in " ".join(honest.notes)


def test_differencing_needs_an_earlier_release(everyone):
    with pytest.raises(InputError, match="earlier release"):
        run_attack("differencing", Eigenfaces(), AttackData(everyone, everyone))


def test_who_left_changes_no_byte_and_no_word(everyone):
    """The next release is a function of the earlier one and of the newcomers: nothing else can be intersected."""
    _, link = ksame.deidentify(named(everyone, everyone.subjects[:20]), RECIPE, seed=1)
    new = set(everyone.subjects[20:27])
    told = set()
    for there in (everyone.subjects[:20], everyone.subjects[3:5], everyone.subjects[:0]):
        two, _ = ksame.deidentify(named(everyone, new | set(there)), RECIPE, seed=5, after=link)
        told.add((two.faces.tobytes(), two.certificate.to_json()))
    assert len(told) == 1


def test_everybody_keeps_the_face_of_the_first_time(everyone):
    one, first = ksame.deidentify(named(everyone, everyone.subjects[:20]), RECIPE, seed=1)
    two, second = ksame.deidentify(named(everyone, everyone.subjects[9:33]), RECIPE, seed=2, after=first)
    three, third = ksame.deidentify(everyone, RECIPE, seed=3, after=second)
    early, middle, late = bytes_of(first, one), bytes_of(second, two), bytes_of(third, three)
    assert early.items() <= middle.items() <= late.items()
    assert {f.subject for f in third.faces} == set(everyone.subjects)
    assert [past.number for past in third.history] == [1, 2, 3]
    assert [past.digest for past in third.history] == [r.certificate.digest for r in (one, two, three)]
    assert sorted({face.since for face in third.faces}) == [1, 2, 3]
    assert (three.certificate.series.number, three.certificate.series.repeated) == (3, len(two.faces))
    assert three.certificate.series.after == two.certificate.digest


def test_newcomers_share_faces_with_newcomers_only_and_too_few_wait(everyone):
    _, first = ksame.deidentify(named(everyone, everyone.subjects[:20]), RECIPE, seed=1)
    _, second = ksame.deidentify(named(everyone, everyone.subjects[:22]), RECIPE, seed=2, after=first)
    assert {w.subject for w in second.withheld} == set(everyone.subjects[20:22])
    assert all("fewer than the 3 people" in w.reason for w in second.withheld)
    assert second.people == first.people
    _, third = ksame.deidentify(named(everyone, everyone.subjects[:23]), RECIPE, seed=3, after=second)
    assert set(everyone.subjects[20:23]) in groups(third).values()


def test_the_eigenfaces_of_newcomers_are_their_own(everyone):
    """A coding fitted on people who left or stayed would let their presence show in the newcomers' faces."""
    recipe = ksame.recipe("k-same-eigen", k=3, components=4)
    _, link = ksame.deidentify(named(everyone, everyone.subjects[:20]), recipe, seed=1)
    alone, _ = ksame.deidentify(named(everyone, everyone.subjects[20:]), recipe, seed=2)
    two, _ = ksame.deidentify(everyone, recipe, seed=2, after=link)
    assert {f.tobytes() for f in alone.faces} <= {f.tobytes() for f in two.faces}


@pytest.mark.parametrize("name", ["k-same-pixel", "k-same-furthest", "average", "blackout"])
def test_every_k_anonymous_method_goes_on_and_the_weakest_promise_holds(everyone, name):
    recipe = ksame.recipe(name, **({"k": 3} if name.startswith("k-") else {}))
    one, first = ksame.deidentify(named(everyone, everyone.subjects[:15]), recipe, seed=1)
    two, second = ksame.deidentify(everyone, recipe, seed=2, after=first)
    k = two.certificate.promise.params["k"]
    assert k <= one.certificate.promise.params["k"]
    assert all(len(members) >= k for members in groups(second).values())
    assert not {"loss_sse", "mean_group"} & set(two.certificate.figures)


def test_average_of_two_newcomers_waits_for_as_many_as_before(everyone):
    recipe = ksame.recipe("average")
    _, first = ksame.deidentify(named(everyone, everyone.subjects[:15]), recipe, seed=1)
    two, second = ksame.deidentify(named(everyone, everyone.subjects[:17]), recipe, seed=2, after=first)
    assert len(second.withheld) == 2
    assert two.certificate.promise.params["k"] == 15


def test_a_smaller_k_weakens_the_series_and_says_so(everyone):
    _, first = ksame.deidentify(named(everyone, everyone.subjects[:20]), ksame.recipe("k-same-pixel", k=5), seed=1)
    with pytest.warns(PrivacyWarning, match="falls from 1/5 to 1/2"):
        two, _ = ksame.deidentify(everyone, ksame.recipe("k-same-pixel", k=2), seed=2, after=first)
    assert two.certificate.promise.bound == 0.5
    assert "falls from 1/5 to 1/2" in two.certificate.warnings[0]


def test_labels_that_vary_within_people_are_repeated_too(family):
    recipe = ksame.recipe("k-same-pixel", k=3, select="expression")
    one, first = ksame.deidentify(named(family, sorted(set(family.subjects))[:7]), recipe, seed=1)
    two, second = ksame.deidentify(family, recipe, seed=2, after=first)
    assert bytes_of(first, one).items() <= bytes_of(second, two).items()
    assert second.people == set(family.subjects)


def test_newer_pictures_of_people_released_before_are_withheld_and_named(everyone):
    _, first = ksame.deidentify(named(everyone, everyone.subjects[:12]), RECIPE, seed=1)
    again = drawn_faces(12, seed=32, width=24, height=32)
    newer = FaceSet(again.images, everyone.subjects[:12], names=tuple(f"new {i}" for i in range(12)))
    two, second = ksame.deidentify(newer, RECIPE, seed=2, after=first)
    assert [w.source for w in second.withheld] == list(newer.names)
    assert "newer pictures are not used" in second.withheld[0].reason
    assert two.certificate.counts.withheld == 0, "it would tell who is still there"


@pytest.mark.parametrize("damage", ["changed", "missing", "no base64"])
def test_faces_that_were_changed_in_the_link_table_are_refused(everyone, damage, tmp_path):
    _, link = ksame.deidentify(named(everyone, everyone.subjects[:12]), RECIPE, seed=1)
    link.write(tmp_path / "link.json")
    table = json.loads((tmp_path / "link.json").read_text())
    (first, other), rest = list(table["kept"])[:2], table["kept"]
    rest[first] = {"changed": rest[other], "missing": rest[first], "no base64": "?"}[damage]
    if damage == "missing":
        del rest[first]
    (tmp_path / "bad.json").write_text(json.dumps(table))
    with pytest.raises(InputError, match=r"changed or damaged|does not hold"):
        ksame.deidentify(everyone, RECIPE, seed=2, after=Linkage.read(tmp_path / "bad.json"))


def test_only_shared_faces_can_be_continued(everyone):
    _, blurred = ksame.deidentify(everyone, ksame.recipe("blur"), seed=1)
    with pytest.raises(UsageError, match="No release can follow"):
        ksame.deidentify(everyone, RECIPE, seed=2, after=blurred)
    _, link = ksame.deidentify(everyone, RECIPE, seed=1)
    with pytest.raises(UsageError, match="forms no groups that could be continued"):
        ksame.deidentify(everyone, ksame.recipe("wrong-map"), seed=2, after=link)


def test_faces_of_another_size_do_not_fit(everyone):
    _, link = ksame.deidentify(everyone, RECIPE, seed=1)
    small = drawn_faces(6, seed=3, width=20, height=28)
    with pytest.raises(InputError, match="--size"):
        ksame.deidentify(FaceSet(small.images, np.char.add("new ", small.subjects)), RECIPE, seed=2, after=link)


def test_newcomers_for_whom_nothing_can_be_kept_wait(family):
    recipe = ksame.recipe("k-same-pixel", k=3, select="expression")
    people = sorted(set(family.subjects))
    _, first = ksame.deidentify(named(family, people[:7]), recipe, seed=1)
    mine = [np.flatnonzero(family.subjects == s) for s in people[7:10]]
    alone = family.take([mine[0][0], mine[0][1], mine[1][2], mine[2][0]])
    with pytest.raises(GuaranteeError, match="No group has a label"):
        ksame.deidentify(alone, recipe, seed=2)
    _, second = ksame.deidentify(alone, recipe, seed=2, after=first)
    assert {w.subject for w in second.withheld} == set(people[7:10])


def test_groups_of_newcomers_are_counted_on(everyone):
    _, first = ksame.deidentify(named(everyone, everyone.subjects[:9]), RECIPE, seed=1)
    _, second = ksame.deidentify(named(everyone, everyone.subjects[:15]), RECIPE, seed=2, after=first)
    earlier = {face.group for face in second.faces if face.since == 1}
    assert earlier == set(groups(first)) == {0, 1, 2}
    assert {face.group for face in second.faces if face.since == 2} == {3, 4}


def occasion(release) -> Occasion:
    return Occasion(release.certificate.method, 0, ())


def test_newcomers_without_k_anonymity_join_no_series(everyone):
    """Whoever calls this, and whatever was asked before."""
    _, link = ksame.deidentify(named(everyone, everyone.subjects[:9]), RECIPE, seed=1)
    blurred = ksame.deidentify(named(everyone, everyone.subjects[9:15]), ksame.recipe("blur"), seed=1)
    with pytest.raises(UsageError, match="k-anonymity only"):
        continued(link, blurred, occasion(blurred[0]), ())


def test_a_face_that_stands_for_too_few_ends_the_series(everyone):
    one, link = ksame.deidentify(named(everyone, everyone.subjects[:9]), RECIPE, seed=1)
    lost = link.model_copy(update={"faces": link.faces[1:]})
    assert len(continued(link, None, occasion(one), ())[0].faces) == 9
    with pytest.raises(GuaranteeError):
        continued(lost, None, occasion(one), ())
