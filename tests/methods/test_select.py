"""k-Same-Select: labels that look mistyped are named, and what a kept label gives away is counted."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

import ksame
from drawn import drawn_faces
from ksame import FaceSet, recipe
from ksame.errors import InputError, KsameWarning, TooFewError, UsageError
from ksame.methods import Blur, Outcome, Problem, Select
from ksame.methods.select import _hints
from ksame.privacy.homogeneity import homogeneity
from ksame.privacy.models import KAnonymity

SELECT = recipe("k-same-pixel", k=4, select="gender")


def forty(**changes):
    """Forty people with two images each, and their gender; some images have another label."""
    faces = drawn_faces(40, 2, seed=3, width=24, height=32)
    labels = np.where(np.arange(80) // 2 % 2 == 0, "female", "male").astype(object)
    for at, label in changes.items():
        labels[int(at[1:])] = label
    return FaceSet(faces.images, faces.subjects, faces.landmarks, {"gender": labels})


def test_one_mistyped_label_is_named_with_the_nearest_one_and_what_it_costs():
    with pytest.warns(KsameWarning) as told:
        _, linkage = ksame.deidentify(forty(i4="femal"), SELECT, seed=1)
    (message,) = [str(w.message) for w in told]
    assert "The label 'gender' varies within 1 of 40 people (for instance " in message
    assert "'femal' occurs once: perhaps 'female' was meant." in message
    assert f"{len(linkage.withheld)} of 80 images are withheld" in message
    assert len(linkage.withheld) > 10


@pytest.mark.parametrize(("typed", "meant"), [("Female", "female"), ("female ", "female"), ("mael", "male")])
def test_a_mistyped_label_of_a_whole_person_is_named_where_its_class_is_too_small(typed, meant):
    faces = forty(i4=typed, i5=typed)
    with pytest.raises(UsageError, match=f"'{typed}' occurs 2 times: perhaps '{meant}' was meant"):
        ksame.deidentify(faces, SELECT, seed=1)
    dropping = recipe("k-same-pixel", k=4, select="gender", small_classes="drop")
    with pytest.warns(KsameWarning, match=f"perhaps '{meant}' was meant"):
        ksame.deidentify(faces, dropping, seed=1)


def test_labels_that_are_right_are_not_suspected(family):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ksame.deidentify(forty(), SELECT, seed=1)
        ksame.deidentify(family, recipe("k-same-pixel", k=3, select="expression"), seed=1)


def test_images_without_the_label_are_no_class_of_their_own():
    with pytest.raises(InputError, match="2 of 80 images carry no label 'gender'"):
        ksame.deidentify(forty(i4=None, i5=float("nan")), SELECT, seed=1)


def test_homogeneity_by_hand():
    faces = np.array([0, 0, 0, 1, 1, 1, 1])
    assert homogeneity(faces, list("aabbbcd")) == {
        "smallest_label_diversity": 2,
        "label_homogeneity": 0.57,
        "label_by_chance": 0.43,
    }


def test_the_certificate_says_what_a_kept_label_gives_away():
    figures = ksame.deidentify(forty(), SELECT, seed=1)[0].certificate.figures
    assert {name: figures[name] for name in figures if "label" in name} == {
        "smallest_label_diversity": 1,
        "label_homogeneity": 1.0,
        "label_by_chance": 0.5,
    }
    plain = ksame.deidentify(forty(), recipe("k-same-pixel", k=4), seed=1)[0].certificate.figures
    assert not [name for name in plain if "label" in name]


@pytest.mark.filterwarnings("ignore:Select merged")
def test_merged_classes_are_less_homogeneous():
    rare = {f"i{i}": "other" for i in range(4)}
    merging = recipe("k-same-pixel", k=4, select="gender", small_classes="merge")
    figures = ksame.deidentify(forty(**rare), merging, seed=1)[0].certificate.figures
    assert figures["label_homogeneity"] < 1


@dataclass(frozen=True)
class Counting:
    """Releases every face as it is, and notes of which problem."""

    aligns: bool = False
    name = "counting"
    selectable = True
    promised = KAnonymity
    min_subjects = 2

    def params(self):
        return {"own": 1}

    def run(self, problem, rng, progress=None):
        n = len(problem)
        assert problem.strata is None or self.aligns
        return Outcome(
            problem.codes + 0.5,
            np.arange(n)[::-1],
            [(n - 1 - i,) for i in range(n)],
            KAnonymity(max(2, n)),
            np.arange(n),
            {} if self.aligns else {0: "first"},
            {"mean_size": float(n), "smallest_size": n, "total": 1.0},
            {"own": list(range(n))},
            (f"{n} faces",),
        )


@dataclass(frozen=True)
class Bare(Counting):
    """Without groups, and with a figure that the others do not have."""

    def run(self, problem, rng, progress=None):
        outcome = super().run(problem, rng)
        names = {"odd": 1.0} if len(problem) == 2 else {}
        return replace(outcome, groups=None, figures={**names, "total": 1.0})


COUNTING = Counting()


def chosen(labels: str, small="error", inner=COUNTING, subjects=None):
    problem = Problem(
        np.arange(float(len(labels)))[:, None],
        np.array(list(subjects or "abcdefghij"[: len(labels)])),
        np.array(list(labels)),
    )
    return Select(inner, "kind", small).run(problem, np.random.default_rng(0))


def test_classes_are_put_together():
    """x: faces 0, 2 and 4, y: faces 1 and 3; each class backwards, as the inner method has it."""
    outcome = chosen("xyxyx")
    assert outcome.surrogates.tolist() == [[0.5], [2.5], [4.5], [1.5], [3.5]]
    assert outcome.rows.tolist() == [2, 1, 0, 4, 3]
    assert [list(source) for source in outcome.sources] == [[4], [2], [0], [3], [1]]
    assert outcome.groups.tolist() == [0, 1, 2, 3, 4]
    assert outcome.promise == KAnonymity(2), "the weakest"
    assert outcome.withheld == {0: "first", 1: "first"}
    assert outcome.figures == {"mean_size": (3 * 3 + 2 * 2) / 5, "smallest_size": 2, "total": 2.0}
    assert outcome.secrets == {"own": [0, 1, 2, 0, 1]}
    assert outcome.warnings == ("3 faces", "2 faces")


def test_what_only_some_classes_have_is_left_out():
    outcome = chosen("xyxyx", inner=Bare())
    assert outcome.groups is None
    assert outcome.figures == {"total": 2.0}


@pytest.mark.parametrize(
    ("labels", "small", "classes", "withheld", "warnings"),
    [
        ("xxyyz", "drop", [[0, 1], [2, 3]], {4}, ()),
        ("xxyz", "merge", [[0, 1], [2, 3]], set(), ("Select merged 2 classes of 'kind'",)),
        ("xxyyyz", "merge", [[2, 3, 4], [0, 1, 5]], set(), ("Select merged 2 classes of 'kind'",)),
    ],
)
def test_small_classes_by_hand(labels, small, classes, withheld, warnings):
    outcome = chosen(labels, small)
    sources = [source[0] for source in outcome.sources]
    sizes = [len(rows) for rows in classes]
    assert [sorted(sources[: sizes[0]]), sorted(sources[sizes[0] :])] == classes
    assert {i for i, reason in outcome.withheld.items() if reason != "first"} == withheld
    assert all(outcome.withheld[i] == "its class of 'kind' has fewer than 2 people" for i in withheld)
    notes = [note for note in outcome.warnings if "faces" not in note]
    assert [note.partition(";")[0] for note in notes] == list(warnings)
    assert all(note.endswith("; the label is not kept for their people.") for note in notes)


def test_classes_count_people_not_images():
    with pytest.raises(UsageError, match=r"fewer than the 2 people that counting needs: 'x' \(1 people\)\. Lower k"):
        chosen("xxyy", subjects="aabc")


@pytest.mark.parametrize(
    ("labels", "small", "message"),
    [
        ("xyz", "drop", r"^No class of 'kind' has the 2 people that counting needs: 'x' \(1 people\), 'y' \(1"),
        ("x", "merge", r"^All classes of 'kind' together have fewer than 2 people: 'x' \(1 people\)\.$"),
    ],
)
def test_too_few_people_for_any_class(labels, small, message):
    with pytest.raises(TooFewError, match=message):
        chosen(labels, small)


def test_labels_that_vary_within_a_person():
    with pytest.raises(InputError, match=r"^The label 'kind' varies within a subject, and counting cannot align"):
        chosen("xyxx", subjects="aabb")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert chosen("xyxy", inner=Counting(aligns=True), subjects="aabb").figures["total"] == 1.0
    with pytest.warns(KsameWarning, match=r"'kind' varies within 1 of 3 people \(for instance a: 'x', 'y'\), so it"):
        chosen("xyxxxx", inner=Counting(aligns=True), subjects="aabbcc")


def test_select_speaks_for_the_inner_method():
    select = Select(Counting(), "kind", "drop")
    assert (select.name, select.promised, select.min_subjects) == ("counting-select", KAnonymity, 2)
    assert select.params() == {"own": 1, "select": "kind", "small_classes": "drop"}
    with pytest.raises(UsageError, match="^Select needs labels.$"):
        select.run(Problem(np.zeros((2, 1)), np.array(["a", "b"])), np.random.default_rng(0))
    with pytest.raises(UsageError, match=r"but blur alters every face by itself\. Leave --select out\.$"):
        Select(Blur(), "kind")
    with pytest.raises(InputError, match=r"^1 of 3 images carry no label 'kind'\. Label or remove them\.$"):
        Select(Counting(), "kind").run(
            Problem(np.zeros((3, 1)), np.array(["a", "b", "c"]), np.array(["x", "x", ""])), np.random.default_rng(0)
        )


@pytest.mark.parametrize(
    ("counts", "hint"),
    [
        ({"woman": 10, "woma": 1}, " 'woma' occurs once: perhaps 'woman' was meant."),
        ({"woman": 20, " WOMAN": 2}, " ' WOMAN' occurs 2 times: perhaps 'woman' was meant."),
        ({"woman": 9, "woma": 1}, ""),
        ({"woman": 30, "man": 3, "x": 1}, " 'man' occurs 3 times: perhaps 'woman' was meant."),
    ],
)
def test_hints(counts, hint):
    labels = np.array([label for label, count in counts.items() for _ in range(count)])
    assert _hints(Problem(np.zeros((len(labels), 1)), labels, labels)) == hint
