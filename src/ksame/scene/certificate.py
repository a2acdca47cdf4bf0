"""The public certificate of photographs and recordings: aggregates, hashes and limits, nothing of the originals."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from ksame.errors import InputError
from ksame.privacy.certificate import Certificate, CertificateCore, release_digest
from ksame.privacy.documents import Record, read_any, read_bytes
from ksame.privacy.invention import InventedRegion
from ksame.recipes import METHODS
from ksame.scene.at_risk import count_risks
from ksame.scene.config import JobConfig
from ksame.scene.decide import Treatment
from ksame.scene.render import FILL
from ksame.scene.result import JobResult
from ksame.version import software

AT_RISK = "at-risk.csv"

WITHIN_A_SPAN = "Faces were changed within a span of time only; before and after it everyone is as they were."
NOT_JUDGED = "No recogniser judged the new faces."
METADATA_KEPT = "Some metadata of the originals was kept, because it was asked for."
CHOICES = (WITHIN_A_SPAN, NOT_JUDGED, METADATA_KEPT)
"""Warnings that follow from what was asked for, which nothing else in a certificate tells."""


class SceneMethod(Record):
    """What was done: the method and its public parameters."""

    name: str
    level: float | None = Field(None, description="strength of a mask, where it was chosen")
    cover: str = Field(description="how much of a head was invented: head or face")
    regions: int = Field(
        0, ge=0, description="rectangles that were named to be filled: in every frame, for a time, or in one"
    )


class SceneCounts(Record):
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


class Likeness(Record):
    """Whether any replacement still looks like its original to the recogniser in the loop.

    Yes or no, and no cosine: that of the most alike is one person's own, and would be a test for guesses of who it is.
    """

    recognised: bool = Field(description="whether it still takes somebody for the person replaced")
    recogniser: str
    threshold: float = Field(description="cosine from which the recogniser takes two faces for one person")


class SceneCertificate(CertificateCore):
    """What the publisher claims about photographs and recordings, and how anyone can check it."""

    expected: ClassVar[str] = "a valid certificate of scenes"

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


AnyCertificate = Certificate | SceneCertificate


def read_certificate(path: Path) -> tuple[AnyCertificate, bytes]:
    """Read the certificate of a release of faces, or of photographs and video; return it and the file."""
    data = read_bytes(path, "the certificate", plain=True)
    try:
        return cast("AnyCertificate", read_any(data, Certificate, SceneCertificate)), data
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def beside(output: Path, name: str, *, whole: bool = False) -> Path:
    """Return the file that goes with a single output; with ``whole`` under a name that no other output can have.

    Examples
    --------
    >>> beside(Path("safe.mp4"), "certificate.json").as_posix()
    'safe.certificate.json'
    >>> beside(Path("safe.mp4"), "certificate.json", whole=True).as_posix()
    'safe.mp4.certificate.json'
    """
    output = output if output.name else output.absolute()  # "." has no name of its own
    return output.with_name(f"{output.stem if output.suffix and not whole else output.name}.{name}")


def certified(certificate: Path) -> set[str]:
    """Return the outputs beside a certificate that it is about; none where it is not there or is something else."""
    try:
        return {name.split("/")[0] for name in SceneCertificate.read(certificate).files}
    except InputError:
        return set()


def certify(result: JobResult, options: JobConfig, folder: Path) -> SceneCertificate:
    """Certify what was written; outputs are named from the ``folder`` of the certificate.

    Nothing of it tells who became whom, when anything happened, or what the originals were called.
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
            regions=len(options.regions) + (0 if options.boxes is None else len(options.boxes)),
        ),
        k=None if METHODS[options.method].masks else options.k,
        k_real=k_real,
        counts=counts,
        likeness=_likeness(result),
        statement=statement(options.method, options.k, k_real, counts),
        not_promised=not_promised(counts, audio=options.encoding.audio),
        warnings=(*_choices(options), *notes_on_counts(counts)),
        files=dict(sorted(files.items())),
        digest=release_digest(files),
        software=software("numpy", "av"),
    )


def _counts(result: JobResult) -> SceneCounts:
    """Count everybody once: whoever is shown in any frame is kept, whatever became of them in others."""
    unconfirmed, shown = result.people.unconfirmed, result.shown
    kept = sum(person.confirmed for person in shown.values())
    decisions = [d for name, d in result.plan.decisions.items() if name not in unconfirmed and name not in shown]
    treated = Counter(decision.treatment for decision in decisions)
    instead = sum(decision.masked_instead for decision in decisions)
    return SceneCounts(
        files=len(result.files),
        unreadable=len(result.failed),
        frames=sum(done.n_frames for done in result.files),
        people=len(decisions) + kept,
        not_sure=len(unconfirmed - set(shown)),
        not_sure_kept=len(shown) - kept,
        replaced=treated[Treatment.REPLACE],
        masked=treated[Treatment.MASK] - instead,
        masked_instead=instead,
        kept=kept + treated[Treatment.KEEP],
        **count_risks(done.at_risk for done in result.files),
    )


def _likeness(result: JobResult) -> Likeness | None:
    judge = result.plan.judge
    alike = [value for name, value in result.plan.likeness.items() if name not in result.shown]
    if judge is None or not alike:
        return None
    recognised = round(max(alike), 4) >= judge.threshold  # as the link table has it
    return Likeness(recognised=recognised, recogniser=judge.name, threshold=judge.threshold)


def _choices(options: JobConfig) -> list[str]:
    """Return the warnings that follow from what was asked for."""
    asked = {
        WITHIN_A_SPAN: options.span[0] > 0 or np.isfinite(options.span[1]),
        NOT_JUDGED: not options.judged and not METHODS[options.method].masks,
        METADATA_KEPT: options.encoding.keep_metadata,
    }
    return [text for text, given in asked.items() if given]


def notes_on_counts(counts: SceneCounts) -> list[str]:
    """Return what weakens the privacy of these files and follows from the counts alone."""
    notes = kept_words(counts)
    if counts.without_faces:
        notes.append(
            f"In {counts.without_faces} of {counts.files} files no face was found; whoever is there is as they were."
        )
    if counts.faces_masked_instead:
        notes.append(
            f"In {counts.frames_at_risk} frames a mask stands in for a face that could not be replaced; such faces are "
            "found least surely, so look at these frames."
        )
    if counts.frames_damaged:
        notes.append(f"{counts.frames_damaged} frames could not be decoded, and are black.")
    return notes


def kept_words(counts: SceneCounts) -> list[str]:
    """Say how many people, and things that are perhaps people, are left as they are."""
    words = []
    if counts.kept:
        words.append(
            f"{counts.kept} of {counts.people} people are left as they are, in all frames or in some, because it was "
            "asked for."
        )
    if counts.not_sure_kept:
        words.append(f"{counts.not_sure_kept} of what is perhaps a face is left as it is, because it was asked for.")
    return words


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


SOUND = {
    "keep": "Sound, where there was any, is the original's.",
    "disguise": "A voice, where there was any, is disguised, not anonymous: pitch and formants of all sound are moved, "
    "which can be undone by whoever finds out by how much; words, accent, rhythm and every other sound are there.",
    "drop": "",
}
"""What is to be said of the sound, by what became of it."""


def not_promised(counts: SceneCounts, *, audio: str) -> tuple[str, ...]:
    """Return what a reader might believe, and should not; ``audio`` is what became of the sound."""
    limits = [
        "It covers the regions that were invented or masked, not clothes, body, voice, gait, place, time or who is "
        "seen with whom."
    ]
    if counts.replaced:
        limits += [
            *InventedRegion().not_promised(),
            "The likeness was measured with one recogniser on a few frames of every person; another may see more.",
        ]
    if SOUND[audio]:
        limits.append(SOUND[audio])
    limits.append("A face that no detector found was not changed.")
    return tuple(limits)
