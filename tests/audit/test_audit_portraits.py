"""The audit on real portraits, altered by another tool."""

import pytest
from PIL import Image, ImageFilter

from ksame.audit import Pairing, audit


@pytest.fixture(scope="module")
def some(shared, tmp_path_factory):
    """Forty portraits with their background, and the same blurred."""
    before, after = (tmp_path_factory.mktemp(name) for name in ("before", "after"))
    for path in sorted((shared / "faces" / "portraits").glob("*.jpg"))[::15]:
        with Image.open(path) as picture:
            picture.convert("RGB").save(before / path.name)
            picture.convert("RGB").filter(ImageFilter.GaussianBlur(6)).save(after / path.name)
    return before, after


@pytest.mark.shared
def test_a_blur_that_looks_strong_hides_hardly_anybody(some, shared):
    result = audit(*some, pairing=Pairing(labels=shared / "faces" / "labels.csv"))
    assert result.plan.view == "photographs"
    assert result.counts.people == 40
    rate = {(a.scenario, a.recogniser): a.rank1 for a in result.attacks}
    assert rate["naive", "sface"] > 0.9
    assert "are still recognised" in result.verdict.line
    gender = next(x for x in result.utility.labels if x.label == "gender" and x.kernel == "linear")
    assert gender.by_group.rate >= gender.majority - 0.1
    assert any("birth_year" in note for note in result.utility.notes)
