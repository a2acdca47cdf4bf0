"""The audit with a restorer: negatives hide people from everybody who does not know how to turn them back."""

import json

import jsonschema
import pytest
from PIL import ImageOps

import ksame
from audit.conftest import N, altered
from ksame.audit import audit, audit_schema, render_report
from ksame.errors import ModelError, UsageError
from restorers import write_restorer


@pytest.fixture(scope="module")
def negatives(album, tmp_path_factory):
    """The album, every picture turned into its negative."""
    return altered(album, tmp_path_factory.mktemp("n") / "negatives", ImageOps.invert)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return write_restorer(tmp_path_factory.mktemp("w") / "positive.onnx", shape=("n", 3, 128, 128))


@pytest.fixture(scope="module")
def restored(album, negatives, weights):
    names = ["sface", f"restored={weights}", f"eigenfaces+restored={weights}"]
    return audit(album, negatives, attackers=names, by_hand=True)


def rates(result):
    return {(a.scenario, a.recogniser): a.rank1 for a in result.attacks}


def test_people_are_found_only_through_the_restorer(restored):
    assert rates(restored)["naive", "sface"] < 0.4
    assert rates(restored)["naive", "sface on faces restored by positive"] > 0.9
    assert restored.verdict.recogniser.endswith("on faces restored by positive")
    assert restored.verdict.recognised > 0.9 * N


def test_restored_faces_are_attacked_where_that_makes_sense(restored):
    tried = {scenario for scenario, recogniser in rates(restored) if "restored" in recogniser}
    assert tried == {"naive", "reverse"}
    assert ("parrot", "sface") in rates(restored)


def test_result_and_report_name_the_restorer(restored):
    data = json.loads(restored.to_json())
    jsonschema.validate(data, audit_schema())
    assert "sface on faces restored by positive" in data["plan"]["attackers"]
    params = [a["params"] for a in data["attacks"] if a["recogniser"] == "sface on faces restored by positive"]
    assert all(len(p["restorer_sha256"]) == 64 for p in params)
    assert any("restored by positive" in limit for limit in data["limits"])
    assert "sface on faces restored by positive" in render_report(restored)


def test_a_face_that_nobody_finds_is_not_restored(album, blacked, weights):
    result = audit(album, blacked, attackers=[f"restored={weights}"], scenarios=["naive"])
    assert set(rates(result).values()) == {0.0}
    assert result.attacks[0].without_face == N


def test_registered_faces_are_restored_too(weights):
    faces = ksame.synthetic(10, size=(160, 128), seed=5)
    result = audit(
        faces,
        faces.with_images(1 - faces.images),
        attackers=["sface", f"restored={weights}"],
        scenarios=["naive"],
        view="faces",
    )
    found = rates(result)
    assert found["naive", "sface on faces restored by positive"] > 0.8 > found["naive", "sface"]


@pytest.mark.parametrize(
    ("attacker", "error", "message"),
    [
        ("restored=", UsageError, "restored= needs the path of a network"),
        ("restored=absent.onnx", ModelError, r"absent\.onnx: there is no such file"),
        ("oracle+restored=absent.onnx", UsageError, "Unknown attacker 'oracle'"),
    ],
)
def test_restorers_that_there_are_not(album, negatives, attacker, error, message):
    with pytest.raises(error, match=message):
        audit(album, negatives, attackers=[attacker])


def test_a_scenario_that_is_none_for_restored_faces(album, negatives, weights):
    with pytest.raises(UsageError, match="Restored faces are attacked by naive, reverse, pooled"):
        audit(album, negatives, attackers=[f"restored={weights}"], scenarios=["parrot"], by_hand=True)
