"""Lines of the registry of methods."""

import pytest

from ksame.errors import UsageError
from ksame.methods import BarMask, KSame, Pixelate
from ksame.methods.entry import METHODS, Entry, InScenes, for_scenes
from ksame.recipes import recipe

WORDS = ("summary", "promise", "bound", "needs", "paper")


def test_what_is_fixed_cannot_be_chosen():
    entry = Entry("some", *WORDS, KSame, {"surrogate": "mean"})
    assert list(entry.parameters) == ["k", "grouping"]
    assert entry.build(k=3) == KSame(3, surrogate="mean")
    with pytest.raises(UsageError, match=r"^some takes no 'p', 'surrogate'\. It takes: k, grouping\.$"):
        entry.build(surrogate="mean", p=1, k=3)
    assert entry.schema()["type"] == "object"
    assert set(entry.schema()["properties"]) == {"k", "grouping"}


def test_a_method_without_parameters():
    entry = Entry("fill", *WORDS, None, codings=(), scenes=InScenes(fills=True))
    assert (entry.build(), entry.parameters, entry.level, entry.for_sets) == (None, {}, None, False)
    with pytest.raises(UsageError, match=r"^fill takes no 'k'\. It takes: no parameters\.$"):
        entry.build(k=2)
    with pytest.raises(UsageError, match=r"^fill has no level\. Leave --level out\.$"):
        entry.at(3)
    assert entry.at(None) == {}


def test_levels():
    entry = METHODS["pixelate"]
    assert entry.at(9) == {"p": 9}
    assert entry.level.name == "p"
    assert entry.build(**entry.at(9)) == Pixelate(9)


def test_what_covers_faces_in_scenes():
    assert METHODS["blur"].masks
    assert not METHODS["k-same-m"].masks
    assert not METHODS["k-same-pixel"].masks
    assert METHODS["blur"].for_sets
    with pytest.raises(UsageError, match=r"^some cannot mask faces in scenes: its method has no apply\(\)\.$"):
        Entry("some", *WORDS, KSame, scenes=InScenes())
    assert Entry("some", *WORDS, BarMask, scenes=InScenes()).masks
    assert not Entry("some", *WORDS, KSame, scenes=InScenes(shares="a face")).masks


def test_scenes_take_methods_that_mean_something_there():
    assert for_scenes("blur") is METHODS["blur"]
    with pytest.raises(UsageError, match="k-same-pixel"):
        for_scenes("k-same-pixel")


def test_methods_that_are_made_of_others():
    assert recipe("epsilon-map", over="blur").method.over == METHODS["blur"].build()
    with pytest.raises(
        UsageError, match="'over' parameter of epsilon-map must be one of pixelate, blur, noise. Got 'x'"
    ):
        recipe("epsilon-map", over="x")
