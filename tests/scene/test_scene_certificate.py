"""What the certificate of scenes says, and does not say."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from ksame.errors import InputError, OutputError
from ksame.files import hash_tree
from ksame.heads import HEAD
from ksame.models import SFace
from ksame.privacy.findings import passed
from ksame.scene.at_risk import AtRisk, Shown, as_csv, count_risks, stretches
from ksame.scene.certificate import SceneCertificate, certify
from ksame.scene.config import JobConfig
from ksame.scene.decide import Decision, JudgeRecord, Plan, Treatment
from ksame.scene.linkage import SceneLinkage, link
from ksame.scene.render import MaskedInstead
from ksame.scene.result import FileResult, JobResult
from ksame.scene.track import People
from ksame.scene.track.tracks import Person, Track, Tracks
from ksame.verification import certificate_of, verify

FOLDER = Path("/nowhere/out")


def track(number: int, person: str) -> Track:
    n = 3
    return Track(
        number,
        person,
        0,
        np.ones((n, 4), np.float32),
        np.zeros((n, 478, 3), np.float32),
        np.zeros((n, 52), np.float32),
        np.zeros((n, 3), np.float32),
        np.zeros(n, np.uint8),
    )


def result(
    plans: Mapping[str, Decision], k_real: int | None, at_risk: tuple[AtRisk, ...] = (), likeness: float = 0.23456
) -> JobResult:
    names = list(plans)
    people = tuple(Person(n, None) for n in names)
    tracks = [Tracks((10, 10), 3, people, tuple(track(i, n) for i, n in enumerate(names)))]
    done = FileResult(Path("/secret/ann.mp4"), FOLDER / "000001.mp4", 3, tuple(names), at_risk, {"000001.mp4": "ab"})
    replaced = [n for n in names if plans[n].treatment is Treatment.REPLACE]
    decisions = dict(plans)
    for i, name in enumerate(replaced):
        decisions[name] = replace(plans[name], group=0, likeness=likeness, counts_as=i % (k_real or 1))
    plan = Plan(decisions, JudgeRecord(SFace.name, SFace.threshold))
    return JobResult((done,), {}, plan, People({(0, n): n for n in names}), tracks.__getitem__, 987654321)


REPLACED = Decision(Treatment.REPLACE, None, HEAD)


def certified(plans, k_real=None, options=None, at_risk=()):
    made = certify(result(plans, k_real, at_risk), options or JobConfig(), FOLDER)
    jsonschema.validate(json.loads(made.to_json()), SceneCertificate.shipped_schema())
    return made


def test_the_shipped_schema_is_the_models_own():
    assert SceneCertificate.shipped_schema() == SceneCertificate.model_json_schema(by_alias=True)


def test_it_says_how_many_share_a_face():
    made = certified({"P1": REPLACED, "P2": REPLACED}, 2)
    assert (made.k, made.k_real, made.method.cover) == (10, 2, "head")
    assert "function of the surrogate, of the pose, expression and place of the head" in made.statement
    assert "At least 2 real people share one surrogate identity" in made.statement
    assert "add no anonymity" in made.statement
    assert any("voice" in limit for limit in made.not_promised)
    assert any("movement" in limit for limit in made.not_promised)


def test_one_real_person_is_no_anonymity():
    made = certified({"P1": REPLACED}, 1)
    assert "no anonymity follows" in made.statement


def test_nothing_of_the_originals_is_in_it():
    options = JobConfig(span=(12.5, 77.25), keep=("P2",))
    made = certified({"P1": REPLACED, "P2": Decision(Treatment.KEEP)}, 1, options)
    text = made.to_json().decode()
    for secret in ("ann", "secret", "987654321", "12.5", "77.25", "0.23456", "P1", "P2"):
        assert secret not in text
    assert made.likeness is not None
    assert made.likeness.recognised is False
    assert (made.likeness.recogniser, made.likeness.threshold) == (SFace.name, SFace.threshold)
    assert len(made.warnings) == 2


def test_how_alike_somebody_is_cannot_be_read_from_it():
    """In a batch of one person the worst likeness is that person's own: a test for guesses of who it is."""
    told = {
        certify(result({"P1": REPLACED}, 1, likeness=value), JobConfig(), FOLDER).to_json()
        for value in (-0.1, 0.1, 0.3)
    }
    assert len(told) == 1
    fractions = [v for v in json.loads(told.pop())["likeness"].values() if isinstance(v, float)]
    assert fractions == [SFace.threshold]
    again = certify(result({"P1": REPLACED}, 1, likeness=0.9), JobConfig(), FOLDER)
    assert again.likeness is not None
    assert again.likeness.recognised


@pytest.mark.parametrize(("method", "words"), [("someone-else", "does not exist"), ("k-same-m", "mean of the group")])
def test_each_method_promises_only_its_own(method, words):
    assert words in certified({"P1": REPLACED}, 1, JobConfig(method=method)).statement


def test_masks_promise_nothing():
    made = certified({"P1": Decision(Treatment.MASK)}, options=JobConfig(method="blur"))
    assert (made.k, made.k_real, made.likeness) == (None, None, None)
    assert "nothing is promised" in made.statement


def test_what_is_perhaps_no_face_counts_as_nobody():
    given = result({"P1": REPLACED, "U1": Decision(Treatment.MASK)}, 1)
    made = certify(replace(given, people=replace(given.people, unconfirmed=frozenset({"U1"}))), JobConfig(), FOLDER)
    assert (made.counts.people, made.counts.masked, made.counts.not_sure) == (1, 0, 1)


def test_whoever_is_shown_in_some_frames_is_kept_and_nothing_else():
    given = result({"P1": REPLACED, "P2": REPLACED, "U1": Decision(Treatment.MASK)}, 1)
    shown = (Shown("P2", "before or after the span"), Shown("P9", "taken out"), Shown("U1", "kept", confirmed=False))
    given = replace(given, files=(replace(given.files[0], shown=shown),))
    made = certify(replace(given, people=replace(given.people, unconfirmed=frozenset({"U1"}))), JobConfig(), FOLDER)
    assert (made.counts.people, made.counts.kept, made.counts.replaced, made.counts.masked) == (3, 2, 1, 0)
    assert (made.counts.not_sure, made.counts.not_sure_kept) == (0, 1)
    assert "2 of 3 people are left as they are" in made.warnings[0]
    assert all(name not in made.to_json().decode() for name in ("P2", "P9", "U1"))


def test_masks_that_stood_in_are_counted():
    risks = (AtRisk("P1", 0, 1, 0.0, 0.1, "profile"), AtRisk("P2", 1, 2, 0.1, 0.2, "profile"))
    made = certified({"P1": REPLACED, "P2": Decision(Treatment.MASK, masked_instead=True)}, 1, at_risk=risks)
    assert (made.counts.masked, made.counts.masked_instead) == (0, 1)
    assert (made.counts.faces_masked_instead, made.counts.frames_at_risk) == (4, 3)
    assert set(count_risks([()]).values()) == {0}


def test_stretches_keep_people_apart_and_reasons_together():
    given = [
        MaskedInstead(0, "P1", "a"),
        MaskedInstead(0, "P2", "a"),
        MaskedInstead(1, "P1", "b"),
        MaskedInstead(1, "P2", "a"),
    ]
    found = stretches(given, [0.0, 0.04])
    assert [(r.person, r.first, r.last, r.reason) for r in found] == [("P1", 0, 1, "a; b"), ("P2", 0, 1, "a")]
    assert as_csv([("x.mp4", found)]).splitlines()[2] == "x.mp4,P2,0,1,0.000,0.040,a"


def test_the_linkage_is_written_once(tmp_path):
    plans = {"P1": REPLACED, "P2": Decision(Treatment.KEEP)}
    made = result(plans, 1)
    table = link(made, certify(made, JobConfig(), FOLDER))
    path = tmp_path / "link.json"
    table.write(path)
    assert SceneLinkage.read(path) == table
    assert path.stat().st_mode & 0o777 == 0o600
    table.write(path, again=True)
    with pytest.raises(OutputError, match="never overwritten"):
        table.write(path)
    path.write_text("{}")
    with pytest.raises(OutputError, match="never overwritten"):
        table.write(path, again=True)
    with pytest.raises(InputError, match="not a link table"):
        SceneLinkage.read(path)


def test_a_certificate_that_points_elsewhere_is_not_followed(tmp_path):
    (tmp_path / "secret.txt").write_text("x")
    (tmp_path / "out").mkdir()
    made = certified({"P1": REPLACED}, 1)
    inside = made.model_copy(update={"files": hash_tree(tmp_path / "secret.txt")})
    outside = inside.model_copy(update={"files": {f"../{name}": h for name, h in inside.files.items()}})
    path = tmp_path / "out" / "certificate.json"
    path.write_bytes(outside.to_json())
    assert certificate_of(tmp_path / "out") == path
    assert not passed(verify(path))
    path.write_text(json.dumps({"schema": "ksame/scene-certificate"}))
    with pytest.raises(InputError, match="not a valid certificate of scenes"):
        verify(path)
