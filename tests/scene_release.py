"""A small release of photographs, certified without any network."""

from pathlib import Path

import numpy as np
from PIL import Image

from ksame.files import hash_tree
from ksame.heads import HEAD
from ksame.models import SFace
from ksame.scene.at_risk import KEPT, AtRisk, Shown, as_csv
from ksame.scene.certificate import certify
from ksame.scene.config import JobConfig
from ksame.scene.decide import Decision, JudgeRecord, Plan, Treatment
from ksame.scene.linkage import link
from ksame.scene.result import FileResult, JobResult
from ksame.scene.track import People
from ksame.scene.track.tracks import Person, Tracks

PLANS = {
    name: Decision(Treatment.REPLACE, None, HEAD, group=0, likeness=likeness, counts_as=number)
    for number, (name, likeness) in enumerate((("P1", 0.1), ("P2", 0.2), ("P3", 0.15)))
} | {
    "P4": Decision(Treatment.MASK, masked_instead=True),
    "P5": Decision(Treatment.KEEP),
    "U1": Decision(Treatment.MASK),
}

JUDGE = JudgeRecord(SFace.name, SFace.threshold)


def write_scene_release(base: Path) -> Path:
    """Write base/out with two photographs, certificate and frames at risk, and base/link.json; return base/out."""
    folder = base / "out"
    folder.mkdir()
    done, tracks = [], []
    for number, names in enumerate((("P1", "P2", "P4"), ("P3", "P5", "U1"))):
        place = folder / f"{number + 1:06d}.png"
        Image.fromarray(np.full((8, 8, 3), number, np.uint8)).save(place)
        risks = (AtRisk("P4", 0, 0, 0.0, 0.0, "profile"),) if "P4" in names else ()
        kept = (Shown("P5", KEPT),) if "P5" in names else ()
        done.append(FileResult(base / "in.png", place, 1, names, risks, hash_tree(place), shown=kept))
        tracks.append(Tracks((8, 8), 1, tuple(Person(n, None) for n in names), ()))
    people = People({(int(n in ("P3", "P5", "U1")), n): n for n in PLANS}, unconfirmed=frozenset({"U1"}))
    result = JobResult(tuple(done), {}, Plan(PLANS, JUDGE), people, tracks.__getitem__, 5)
    certificate = certify(result, JobConfig(), folder)
    certificate.write(folder / "certificate.json")
    folder.with_name(f"{folder.name}.at-risk.csv").write_text(as_csv([(d.output.name, d.at_risk) for d in done]))
    link(result, certificate).write(base / "link.json")
    return folder
