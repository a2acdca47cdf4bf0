"""The result of an audit: every number of the report, with schema and version."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from ksame.privacy.documents import read_document

Outcome = Literal["holds", "broken", "too few faces to say"]
Rate = tuple[float, float]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, ser_json_inf_nan="null")


class AuditPlan(_Part):
    """What was asked for."""

    attackers: tuple[str, ...]
    scenarios: tuple[str, ...]
    view: Literal["faces", "photographs"]
    by_hand: bool = Field(description="where no face was found, the attacker took the place of the original's face")
    pairing: str
    seed: int
    name: str = Field(description="what the release is called in comparisons")


class Counts(_Part):
    """How many pictures there were, and how many could be judged."""

    people: int = Field(ge=2)
    pairs: int = Field(ge=2)
    originals: int = Field(ge=2, description="different originals in the attacker's hands")
    without_face: int = Field(ge=0, description="released pictures in which the attacker finds no face")
    not_judged: int = Field(ge=0)


class AttackRecord(_Part):
    """One scenario with one recogniser. Pictures without a face count among the probes, as not recognised."""

    scenario: str
    recogniser: str
    params: dict[str, Any]
    n_probes: int = Field(ge=1)
    n_gallery: int = Field(ge=0)
    without_face: int = Field(ge=0)
    rank1: float = Field(ge=0, le=1)
    interval: Rate
    chance: float = Field(ge=0, le=1, description="what guessing would reach")
    cmc: tuple[float, ...]
    eer: float | None
    tar_at_far: dict[str, float]
    covered: bool = Field(description="whether the promise speaks of this attacker at all")
    verdict: Outcome | None
    notes: tuple[str, ...]


class Promise(_Part):
    """What the publisher promised."""

    model: str
    bound: float | None
    scope: str
    statement: str
    not_promised: tuple[str, ...]


class VerdictRecord(_Part):
    """The answer in one line, and what it rests on."""

    line: str
    outcome: Outcome | None = Field(description="against the promised bound; null where nothing is promised")
    explanation: str
    scenario: str
    recogniser: str
    recognised: float = Field(description="how many of the people the strongest attack names, on average over ties")
    people: int
    rate: float
    interval: Rate


class Exposed(_Part):
    """A person whom attacks still name."""

    original: str
    released: str
    subject: str
    score: float = Field(ge=0, le=1, description="mean over attacks of the chance to be named")
    named_by: tuple[str, ...] = Field(description="attacks that name the person more likely than not")


class LossRecord(_Part):
    """Mean loss over pairs of pictures of one size."""

    pairs: int
    euclidean: float
    changed: float
    entropy: float
    entropy_before: float
    psnr: float | None = Field(description="null where nothing differs")
    ssim: float


class MeshRecord(_Part):
    """Mean change of the mesh over pairs in which both have one."""

    pairs: int
    landmarks: float | None
    yaw: float
    pitch: float
    roll: float
    blendshapes: float


class AccuracyRecord(_Part):
    """How often a label is read correctly."""

    rate: float
    interval: Rate
    n_faces: int


class LabelRecord(_Part):
    """One label by one kernel, on originals and on released faces."""

    label: str
    kernel: Literal["linear", "rbf"]
    majority: float
    originals: AccuracyRecord | None
    by_subject: AccuracyRecord | None
    by_group: AccuracyRecord | None


class DiversityRecord(_Part):
    """Distances between faces, in grey values per pixel."""

    n_faces: int
    zeros: int
    smallest: float
    largest: float
    mean: float
    std: float
    counts: tuple[int, ...]
    edge: float


class Utility(_Part):
    """What is left to use."""

    detected: float = Field(ge=0, le=1, description="share of released pictures in which a face is found")
    detected_before: float = Field(ge=0, le=1)
    loss: LossRecord | None
    mesh: MeshRecord | None
    labels: tuple[LabelRecord, ...]
    diversity_before: DiversityRecord | None
    diversity_after: DiversityRecord | None
    notes: tuple[str, ...] = ()


class PocRecord(_Part):
    """One release on the privacy operating characteristic."""

    method: str
    parameter: str
    privacy: float = Field(ge=0, le=1)
    utility: float = Field(ge=0, le=1)
    measure: str = Field(description="what utility means here")


class NotJudged(_Part):
    """A picture that could not be judged."""

    name: str
    side: Literal["original", "released"]
    reason: str


class Thumbnails(_Part):
    """Small pictures of one person for the report, as data URIs."""

    original: str
    released: str
    seen: str


class AuditResult(_Part):
    """Everything an audit found. It names files, so it stays with the publisher."""

    schema_: Literal["ksame/audit"] = Field("ksame/audit", alias="schema")
    version: Literal[1] = 1
    plan: AuditPlan
    counts: Counts
    promise: Promise | None
    verdict: VerdictRecord
    attacks: tuple[AttackRecord, ...]
    exposed: tuple[Exposed, ...]
    utility: Utility
    poc: tuple[PocRecord, ...] = Field(description="this release, once for each measure of use")
    compared: tuple[PocRecord, ...] = Field((), description="this release and others, by one measure")
    without_face: tuple[str, ...] = Field(description="released pictures in which the attacker finds no face")
    not_judged: tuple[NotJudged, ...]
    limits: tuple[str, ...]
    software: dict[str, str]

    _pictures: dict[str, Thumbnails] = PrivateAttr(default_factory=dict)

    @property
    def incomplete(self) -> bool:
        """Whether some pictures could not be judged."""
        return bool(self.not_judged)

    @property
    def pictures(self) -> dict[str, Thumbnails]:
        """Small pictures of the exposed, by released name, for the report only; empty when read from a file."""
        return self._pictures

    def illustrated(self, pictures: dict[str, Thumbnails]) -> AuditResult:
        """Return the result with pictures for the report."""
        copy = self.model_copy()
        copy._pictures = dict(pictures)
        return copy

    def to_json(self) -> bytes:
        """Return ``audit.json``."""
        return (self.model_dump_json(by_alias=True, indent=1) + "\n").encode()

    @classmethod
    def from_json(cls, data: bytes) -> AuditResult:
        """Read ``audit.json``."""
        return read_document(cls, data, "a valid audit")


def audit_schema() -> dict[str, Any]:
    """Return the JSON Schema that ships with the package."""
    text = files("ksame.audit").joinpath("audit.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
