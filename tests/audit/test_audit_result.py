"""The audit as a whole: other tools' pictures, our own releases, and pictures that cannot be judged."""

import json
import shutil
import sys
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from PIL import Image

import ksame
from ksame.audit import AuditConfig, AuditResult, Pairing, audit, audit_schema
from ksame.errors import InputError, UsageError

PLAIN = AuditConfig(attackers=["eigenfaces"], scenarios=["naive"])


def rates(result):
    return {(a.scenario, a.recogniser): a.rank1 for a in result.attacks}


def test_a_light_blur_hides_nobody(blur_audit):
    assert blur_audit.plan.view == "photographs"
    assert set(rates(blur_audit)) == {(s, a) for s in ("naive", "reverse", "parrot") for a in ("eigenfaces", "sface")}
    assert rates(blur_audit)["naive", "sface"] > 0.9
    assert blur_audit.verdict.line.startswith("Of 14 people, 14 are still recognised")
    assert blur_audit.verdict.outcome is None
    assert len(blur_audit.exposed) == 14
    assert not blur_audit.incomplete


def test_use_is_measured_too(blur_audit):
    utility = blur_audit.utility
    assert utility.detected == 1.0
    assert 0.5 < utility.loss.ssim < 1.0
    assert utility.loss.pairs == 14
    assert utility.mesh.landmarks < 0.1
    assert {label.label for label in utility.labels} == {"gender"}
    assert any("born" in note for note in utility.notes)
    assert utility.diversity_after.n_faces == 14


def test_without_scikit_learn_labels_are_left_out_and_the_report_says_so(album, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    utility = audit(album, album, PLAIN).utility
    assert utility.labels == ()
    assert [note for note in utility.notes if "gender" in note and "pip install 'ksame[labels]'" in note]


def test_every_rate_has_its_interval_and_cmc(blur_audit):
    for attack in blur_audit.attacks:
        assert attack.interval[0] <= attack.rank1 <= attack.interval[1]
        assert attack.cmc[0] == pytest.approx(attack.rank1)
        assert list(attack.cmc) == sorted(attack.cmc)
        assert attack.chance == pytest.approx(1 / 14)


def test_pictures_without_a_face_count_as_not_recognised(album, blacked):
    result = audit(album, blacked)
    assert result.counts.without_face == 14
    assert len(result.without_face) == 14
    assert set(rates(result).values()) == {0.0}
    assert "none are still recognised" in result.verdict.line
    assert result.exposed == ()
    assert result.utility.detected == 0.0
    assert result.utility.diversity_after is None


def test_some_pictures_without_a_face(album, blurred, blacked, tmp_path):
    shutil.copytree(blurred, tmp_path / "mixed")
    for i in range(7):
        shutil.copy(blacked / f"p{i:02}.png", tmp_path / "mixed")
    result = audit(album, tmp_path / "mixed", AuditConfig(attackers=["sface"], scenarios=["naive", "reverse"]))
    assert result.counts.without_face == 7
    for attack in result.attacks:
        assert attack.n_probes == 14
        assert attack.rank1 == pytest.approx(0.5)
        assert attack.cmc[-1] <= 0.5 + 1e-9
    assert {face.released for face in result.exposed} == {f"p{i:02}.png" for i in range(7, 14)}


def test_by_hand_the_attacker_looks_where_the_face_was(album, mosaic):
    plain, patient = (audit(album, mosaic, replace(PLAIN, by_hand=b)) for b in (False, True))
    assert plain.counts.without_face > 0
    assert patient.counts.without_face == 0
    assert patient.verdict.rate > plain.verdict.rate


def test_our_own_release_keeps_its_promise(k_audit):
    assert k_audit.plan.view == "faces"
    assert k_audit.promise.bound == pytest.approx(1 / 3)
    covered = [attack for attack in k_audit.attacks if attack.covered]
    assert len(covered) == 6
    assert max(attack.rank1 for attack in covered) <= 1 / 3 + 1e-9
    assert all(attack.verdict in ("holds", "too few faces to say") for attack in covered)
    assert k_audit.verdict.outcome in ("holds", "too few faces to say")
    assert k_audit.verdict.recognised <= 8 + 1e-9
    assert k_audit.plan.name == "k-same-pixel k = 3"
    assert k_audit.utility.diversity_after.zeros > 0


def test_an_insider_is_told_apart(k_audit):
    """Somebody who knows the others of a group finds the last one: reported, and no part of the verdict."""
    (insider,) = [attack for attack in k_audit.attacks if attack.scenario == "insider"]
    assert insider.rank1 > 0.9
    assert not insider.covered
    assert insider.verdict is None
    assert k_audit.verdict.scenario != "insider"


def test_a_broken_promise_is_called_broken(released, tmp_path):
    """The certificate of a k-Same release on faces that are all different."""
    faces, folder, linkage = released
    shutil.copytree(folder, tmp_path / "forged")
    originals = dict(zip(faces.names, ksame.faces.faceset.quantise(faces.images), strict=True))
    for face in linkage.faces:
        Image.fromarray(originals[face.sources[0]]).save(tmp_path / "forged" / face.released)
    result = audit(faces, tmp_path / "forged", PLAIN, pairing=Pairing(linkage=linkage))
    assert result.verdict.outcome == "broken"
    assert "is broken by eigenfaces, naive: 100.0 %" in result.verdict.explanation


def test_a_label_of_groups_is_read_by_group(k_audit):
    label = next(x for x in k_audit.utility.labels if x.label == "gender")
    assert label.by_subject.rate >= label.by_group.rate - 0.2
    assert label.originals is not None


def test_the_result_meets_its_schema(blur_audit, k_audit):
    for result in (blur_audit, k_audit):
        jsonschema.validate(json.loads(result.to_json()), audit_schema())


def test_the_shipped_schema_is_the_results_own():
    assert audit_schema() == AuditResult.model_json_schema(by_alias=True)


def test_a_result_survives_the_file(blur_audit):
    again = AuditResult.from_json(blur_audit.to_json())
    assert again == AuditResult.from_json(again.to_json())
    assert again.verdict == blur_audit.verdict
    assert again.pictures == {}
    with pytest.raises(InputError, match="not a valid audit"):
        AuditResult.from_json(b'{"schema": "ksame/audit", "version": 2}')


def test_the_same_audit_twice(released, k_audit):
    faces, folder, linkage = released
    assert audit(faces, folder, pairing=Pairing(linkage=linkage)).to_json() == k_audit.to_json()


def test_comparisons_make_an_operating_characteristic(album, mosaic, blur_audit):
    result = audit(album, mosaic, replace(PLAIN, name="mosaic 24"), compare=[blur_audit])
    assert [(p.method, p.parameter) for p in result.compared] == [("mosaic", "24"), ("blur", "")]
    assert len({p.measure for p in result.compared}) == 1
    assert result.compared[0].privacy > result.compared[1].privacy


def test_unreadable_pictures_are_named(album, blurred, tmp_path):
    shutil.copytree(blurred, tmp_path / "after")
    (tmp_path / "after" / "p03.png").write_bytes(b"no picture")
    result = audit(album, tmp_path / "after", PLAIN)
    assert result.incomplete
    assert [(n.name, n.side) for n in result.not_judged] == [("p03.png", "released")]
    assert "not a readable picture" in result.not_judged[0].reason
    assert result.counts.people == 13


def test_no_face_in_any_original(tmp_path):
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
        for i in range(3):
            Image.fromarray(np.full((90, 80 + i, 3), 60 * i, dtype=np.uint8)).save(tmp_path / name / f"{i}.png")
    with pytest.raises(InputError, match=r"0 of 3 pairs could be judged.*0\.png: no face found.*--view faces") as error:
        audit(tmp_path / "before", tmp_path / "after")
    assert error.value.exit_code == 5


def test_registered_faces_in_which_a_detector_finds_none():
    """Noise: pixels can be compared, a network finds nothing to look at."""
    faces = ksame.FaceSet(np.random.default_rng(0).random((12, 32, 24, 1)), [f"n{i}" for i in range(12)])
    result = audit(faces, faces, AuditConfig(view="faces"))
    assert {a.recogniser for a in result.attacks} == {"eigenfaces"}
    assert any("sface did not attack" in limit for limit in result.limits)
    with pytest.raises(UsageError, match="--attackers eigenfaces"):
        audit(faces, faces, AuditConfig(view="faces", attackers=["sface"]))


def test_registered_faces_of_two_sizes(album, blurred):
    with pytest.raises(InputError, match=r"one size; found .*--view photographs"):
        audit(album, blurred, replace(PLAIN, view="faces"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attackers": ["oracle"]}, "Unknown attacker 'oracle'. Choose one of: eigenfaces"),
        ({"scenarios": ["magic"]}, "Unknown scenario 'magic'. Choose one of: naive"),
        ({"attackers": []}, "at least one attacker"),
    ],
)
def test_unknown_words(album, blurred, options, message):
    with pytest.raises(UsageError, match=message):
        audit(album, blurred, AuditConfig(**options))
