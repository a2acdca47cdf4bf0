"""Splits keep people and photographs apart."""

import numpy as np
import pytest

from ksame.attacks import Split, label_split, other_photograph_split, same_photograph_split
from ksame.errors import InputError, UsageError
from ksame.faces.faceset import FaceSet


@pytest.mark.parametrize("seed", range(5))
def test_feret_splits_are_disjoint_by_chance_and_by_construction(family, seed):
    split = other_photograph_split(family, training=0.3, seed=seed)
    assert split.training.n_subjects == 4
    assert not set(split.training.subjects) & set(split.gallery.subjects)
    assert split.gallery.person_specific
    assert set(split.probes.subjects) == set(split.gallery.subjects)
    assert len(split.gallery) + len(split.probes) + len(split.training) == len(family)
    assert not set(split.gallery.names) & set(split.probes.names)


def test_five_splits_differ_and_repeat(family):
    trained = [set(other_photograph_split(family, seed=seed).training.subjects) for seed in range(5)]
    assert len({frozenset(who) for who in trained}) > 1
    again = other_photograph_split(family, seed=2)
    assert set(again.training.subjects) == trained[2]


def test_same_photographs(family):
    split = same_photograph_split(family)
    assert split.training is None
    assert split.gallery is split.probes
    assert same_photograph_split(family, training=0.2).training.n_subjects == 3


def test_label_split(family):
    split = label_split(family, "expression", gallery="neutral", probes="smile", training=0.0)
    assert set(split.gallery.attributes["expression"]) == {"neutral"}
    assert set(split.probes.attributes["expression"]) == {"smile"}
    with pytest.raises(InputError, match="No face has the expression 'angry'"):
        label_split(family, "expression", gallery="neutral", probes="angry")


def test_a_label_that_nobody_has_both_values_of(family):
    once = family.take(np.unique(family.subjects, return_index=True)[1])
    mixed = FaceSet(once.images, once.subjects, attributes={"shot": np.arange(len(once)) % 2})
    with pytest.raises(InputError, match="Nobody has faces of both the shot '0' and '1'"):
        label_split(mixed, "shot", gallery="0", probes="1", training=0.0)


def test_a_photograph_under_two_names_is_refused(family):
    first = family.take(np.arange(0, 42, 3))
    copies = FaceSet(first.images, first.subjects, names=[f"copy {i}" for i in range(14)])
    with pytest.raises(InputError, match="14 photographs are in the gallery and among the probes"):
        Split(first, copies, None, same_photographs=False)
    Split(first, copies, None, same_photographs=True)


def test_training_people_and_photographs_are_kept_out(family):
    first, second = family.take(np.arange(0, 42, 3)), family.take(np.arange(1, 42, 3))
    with pytest.raises(InputError, match="14 people are in the training set and in the gallery"):
        Split(first, second, family.take(np.arange(2, 42, 3)), same_photographs=False)
    renamed = FaceSet(second.images, [f"other {i}" for i in range(14)])
    with pytest.raises(InputError, match="14 photographs are in the training set and attacked too"):
        Split(first, second, renamed, same_photographs=False)


def test_probes_are_people_of_the_gallery(family):
    with pytest.raises(InputError, match="is not in it"):
        Split(family.take(np.arange(6)), family, None, same_photographs=True)


def test_only_probes_are_released(family):
    split = other_photograph_split(family, seed=1)
    data = split.attacked(split.probes)
    assert data.originals is split.gallery
    assert data.training is split.training
    with pytest.raises(InputError, match="Only the probes may be released"):
        split.attacked(family)


def test_impossible_splits(faces, family):
    with pytest.raises(InputError, match="nothing to probe with"):
        other_photograph_split(faces)
    with pytest.raises(UsageError, match="'training' parameter of split"):
        same_photograph_split(family, training=1.0)
    with pytest.raises(InputError, match="too few"):
        same_photograph_split(faces.take([0]), training=0.9)
