"""The public certificate of photographs and recordings: aggregates, hashes and limits, nothing of the originals."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version as version_of
from importlib.resources import files as resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ksame import __version__
from ksame.errors import OutputError
from ksame.privacy.certificate import release_digest
from ksame.privacy.documents import read_document
from ksame.privacy.invention import InventedRegion
from ksame.privacy.signing import sign
from ksame.recipes import METHODS
from ksame.scene.config import JobConfig
from ksame.scene.decide import Treatment
from ksame.scene.media.output import timeless
from ksame.scene.render import FILL
from ksame.scene.result import JobResult
from ksame.scene.risk import NOBODY, WHOLE_FILE, AtRisk

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

WITHIN_A_SPAN = "Faces were changed within a span of time only; before and after it everyone is as they were."
NOT_JUDGED = "No recogniser judged the new faces."
METADATA_KEPT = "Some metadata of the originals was kept, because it was asked for."
CHOICES = (WITHIN_A_SPAN, NOT_JUDGED, METADATA_KEPT)
"""Warnings that follow from what was asked for, which nothing else in a certificate tells."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)


class SceneMethod(_Part):
    """What was done: the method and its public parameters."""

    name: str
    level: float | None = Field(None, description="strength of a mask, where it was chosen")
    cover: str = Field(description="how much of a head was invented: head or face")
    regions: int = Field(0, ge=0, description="rectangles filled in every frame")


class SceneCounts(_Part):
    """How many went in, and what became of them."""

    files: int = Field(ge=1)
    unreadable: int = Field(0, ge=0, description="files for which nothing was written")
    without_faces: int = Field(0, ge=0, description="files in which no face was found")
    frames: int = Field(ge=1)
    people: int = Field(ge=0)
    not_sure: int = Field(0, ge=0, description="what is perhaps no face: masked in its own size, counted as nobody")
    not_sure_kept: int = Field(0, ge=0, description="what is perhaps no face and was left as it is, as was asked for")
    replaced: int = Field(0, ge=0)
    masked: int = Field(0, ge=0, description="people masked because it was asked for, or by the method")
    masked_instead: int = Field(0, ge=0, description="people masked because they could not be replaced safely")
    kept: int = Field(
        0,
        ge=0,
        description="people left as they are in at least one frame, because it was asked for; in no other count",
    )
    faces_masked_instead: int = Field(0, ge=0, description="faces in single frames that could not be replaced")
    frames_at_risk: int = Field(0, ge=0, description="frames with at least one of these")
    frames_damaged: int = Field(0, ge=0, description="frames that could not be decoded, and are black")


class Likeness(_Part):
    """Whether any replacement still looks like its original to the recogniser in the loop.

    Yes or no, and no cosine: that of the most alike is one person's own, and would be a test for guesses of who it is.
    """

    recognised: bool = Field(description="whether it still takes somebody for the person replaced")
    recogniser: str
    threshold: float = Field(description="cosine from which the recogniser takes two faces for one person")


class SceneCertificate(_Part):
    """What the publisher claims about photographs and recordings, and how anyone can check it."""

    schema_: Literal["ksame/scene-certificate"] = Field("ksame/scene-certificate", alias="schema")
    version: Literal[2] = 2
    method: SceneMethod
    k: int | None = Field(description="how many people share a face, those who do not exist included; null for masks")
    k_real: int | None = Field(
        description="the smallest number of real people who do: surely people, told apart by the recogniser, shown in "
        "no frame; null where faces are not shared"
    )
    counts: SceneCounts
    likeness: Likeness | None
    statement: str
    not_promised: tuple[str, ...]
    warnings: tuple[str, ...]
    files: dict[str, str] = Field(description="SHA-256 of every output")
    digest: str = Field(description="SHA-256 over the names and hashes of all outputs")
    software: dict[str, str]

    def to_json(self) -> bytes:
        """Return the certificate file."""
        return (self.model_dump_json(by_alias=True, indent=1) + "\n").encode()

    @classmethod
    def from_json(cls, data: bytes) -> SceneCertificate:
        """Read a certificate file."""
        return read_document(cls, data, "a valid certificate of scenes")


def signature_of(certificate: Path) -> Path:
    """Return where the detached signature of a certificate lies."""
    return certificate.with_suffix(".sig")


def write_certificate(certificate: SceneCertificate, path: Path, key: Ed25519PrivateKey | None = None) -> None:
    """Write a certificate, and with a key its signature; one that was there is replaced."""
    data = certificate.to_json()
    if key is None:
        signature_of(path).unlink(missing_ok=True)
    else:
        write_whole(signature_of(path), sign(data, key))
    write_whole(path, data)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that appears whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        timeless(part)
        part.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}).") from error
    finally:
        part.unlink(missing_ok=True)


def scene_certificate_schema() -> dict[str, Any]:
    """Return the JSON Schema that ships with the package."""
    text = resources("ksame.scene").joinpath("certificate.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def certify(result: JobResult, options: JobConfig, folder: Path) -> SceneCertificate:
    """Certify what was written.

    Nothing of it tells who became whom, when anything happened, or what the originals were called.

    Parameters
    ----------
    result : JobResult
    options : JobConfig
    folder : Path
        Where the certificate will lie; outputs are named from there.
    """
    counts = _counts(result)
    files = {
        (done.output.parent.relative_to(folder) / name).as_posix(): digest
        for done in result.files
        for name, digest in done.files.items()
    }
    k_real = result.plan.k_real(result.shown)
    return SceneCertificate(
        method=SceneMethod(
            name=options.method,
            level=options.level,
            cover=options.cover.name,
            regions=len(options.regions),
        ),
        k=None if METHODS[options.method].masks else options.k,
        k_real=k_real,
        counts=counts,
        likeness=_likeness(result),
        statement=statement(options.method, options.k, k_real, counts),
        not_promised=not_promised(counts, sound=options.encoding.audio == "keep"),
        warnings=tuple(notes(options, counts)),
        files=dict(sorted(files.items())),
        digest=release_digest(files),
        software={
            "ksame": __version__,
            "numpy": np.__version__,
            "av": version_of("av"),
            "python": platform.python_version(),
        },
    )


def _counts(result: JobResult) -> SceneCounts:
    """Count everybody once: whoever is shown in any frame is kept, whatever became of them in others."""
    unsure, shown = result.everyone.unsure, result.shown
    kept = sum(one.confirmed for one in shown.values())
    plans = [plan for name, plan in result.plan.decisions.items() if name not in unsure and name not in shown]
    treated = Counter(plan.treatment for plan in plans)
    instead = sum(plan.masked_instead for plan in plans)
    at_risk = [[one for one in done.at_risk if one.masked] for done in result.files]
    return SceneCounts(
        files=len(result.files),
        unreadable=len(result.failed),
        without_faces=sum(any(one.person == WHOLE_FILE for one in done.at_risk) for done in result.files),
        frames=sum(done.n_frames for done in result.files),
        people=len(plans) + kept,
        not_sure=len(unsure - set(shown)),
        not_sure_kept=len(shown) - kept,
        replaced=treated[Treatment.REPLACE],
        masked=treated[Treatment.MASK] - instead,
        masked_instead=instead,
        kept=kept + treated[Treatment.KEEP],
        faces_masked_instead=sum(len(one) for risks in at_risk for one in risks),
        frames_at_risk=sum(frames_at_risk(risks) for risks in at_risk),
        frames_damaged=sum(frames_damaged(done.at_risk) for done in result.files),
    )


def frames_at_risk(risks: Sequence[AtRisk]) -> int:
    """Count the frames of one file in which a mask stood in for anybody.

    Examples
    --------
    >>> frames_at_risk([AtRisk("P1", 0, 4, 0, 0, ""), AtRisk("P2", 3, 6, 0, 0, "")])
    7
    """
    count, reached = 0, -1
    for one in sorted((one for one in risks if one.masked), key=lambda one: one.first):
        count += max(0, one.last - max(one.first, reached + 1) + 1)
        reached = max(reached, one.last)
    return count


def frames_damaged(risks: Sequence[AtRisk]) -> int:
    """Count the frames of one file that could not be decoded."""
    return sum(len(one) for one in risks if one.person == NOBODY)


def notes(options: JobConfig, counts: SceneCounts) -> list[str]:
    """Return what weakens the privacy of these files, in words for the publisher and the certificate."""
    found = []
    if options.span[0] > 0 or np.isfinite(options.span[1]):
        found.append(WITHIN_A_SPAN)
    if not options.judged and not METHODS[options.method].masks:
        found.append(NOT_JUDGED)
    if options.encoding.keep_metadata:
        found.append(METADATA_KEPT)
    return found + notes_on_counts(counts)


def notes_on_counts(counts: SceneCounts) -> list[str]:
    """Return what weakens the privacy of these files and follows from the counts alone."""
    found = kept_words(counts)
    if counts.without_faces:
        found.append(
            f"In {counts.without_faces} of {counts.files} files no face was found; whoever is there is as they were."
        )
    if counts.faces_masked_instead:
        found.append(
            f"In {counts.frames_at_risk} frames a mask stands in for a face that could not be replaced; such faces are "
            "found least surely, so look at these frames."
        )
    if counts.frames_damaged:
        found.append(f"{counts.frames_damaged} frames could not be decoded, and are black.")
    return found


def kept_words(counts: SceneCounts) -> list[str]:
    """Say how many people, and things that are perhaps people, are left as they are."""
    found = []
    if counts.kept:
        found.append(
            f"{counts.kept} of {counts.people} people are left as they are, in all frames or in some, because it was "
            "asked for."
        )
    if counts.not_sure_kept:
        found.append(f"{counts.not_sure_kept} of what is perhaps a face is left as it is, because it was asked for.")
    return found


def _likeness(result: JobResult) -> Likeness | None:
    judge = result.plan.judge
    alike = [value for name, value in result.plan.likeness.items() if name not in result.shown]
    if judge is None or not alike:
        return None
    recognised = round(max(alike), 4) >= judge.threshold  # as the link table has it
    return Likeness(recognised=recognised, recogniser=judge.name, threshold=judge.threshold)


def statement(method: str, k: int | None, k_real: int | None, counts: SceneCounts) -> str:
    """Return what is promised, in words."""
    if not counts.replaced:
        if counts.masked + counts.masked_instead + counts.not_sure:
            mask = method if METHODS[method].masks else FILL
            but = ", but for those left as they are," if counts.kept + counts.not_sure_kept else ""
            return (
                f"Faces that were found{but} are masked ({mask}). A mask has no theorem: nothing is promised but that "
                "it is there."
            )
        if counts.kept + counts.not_sure_kept:
            return "Everyone who was found is left as they are, because it was asked for: nothing is promised."
        return "No face was found: nothing is promised."
    shared = f"one surrogate identity, {METHODS[method].scenes.shares}"
    filled = f"(groups are filled up to k = {k} with people who do not exist, who add no anonymity)"
    invented = InventedRegion().statement()
    if k_real == 1:
        return (
            f"{invented} Every person who was replaced has {shared} {filled}. There is a group in which only 1 real "
            "person is sure, so that no anonymity follows; the likeness says whether a recogniser still sees the old "
            "face in it."
        )
    return (
        f"{invented} At least {k_real} real people share {shared} {filled}. The identity put in is the same for all of "
        "a group, so that by it alone none of them is told from the others."
    )


def not_promised(counts: SceneCounts, *, sound: bool) -> tuple[str, ...]:
    """Return what a reader might believe, and should not; ``sound`` where it is the original's."""
    limits = [
        "It covers the regions that were invented or masked, not clothes, body, voice, gait, place, time or who is "
        "seen with whom.",
    ]
    if counts.replaced:
        limits += [
            *InventedRegion().not_promised(),
            "The likeness was measured with one recogniser on a few frames of every person; another may see more.",
        ]
    if sound:
        limits.append("Sound, where there was any, is the original's.")
    limits.append("A face that no detector found was not changed.")
    return tuple(limits)
