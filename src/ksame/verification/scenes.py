"""Checks of photographs and recordings: claims, frames and frames at risk, and what the link table adds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

from av import FFmpegError

from ksame.errors import InputError, UsageError
from ksame.heads.covers import COVERS
from ksame.models import SFace
from ksame.privacy.documents import read_bytes
from ksame.privacy.findings import Finding, agree, broken, check, differences
from ksame.privacy.release import CERTIFICATE
from ksame.recipes import METHODS
from ksame.scene.at_risk import count_risks, from_csv
from ksame.scene.certificate import (
    AT_RISK,
    CHOICES,
    NOT_JUDGED,
    SOUND,
    SceneCertificate,
    beside,
    not_promised,
    notes_on_counts,
    statement,
)
from ksame.scene.decide.counting import smallest_sharing
from ksame.scene.linkage import SceneLinkage
from ksame.scene.media import open_media
from ksame.scene.media.recording import open_container, video_stream
from ksame.scene.render import Mask


def check_scenes(certificate: SceneCertificate, path: Path) -> list[Finding]:
    """Hold method, counts, likeness and words of the certificate at a path against one another and the outputs."""
    method = _method(certificate)
    findings = [
        check("method", method, f"{certificate.method.name}, as ksame has it"),
        check("counts", _counts(certificate), f"{certificate.counts.people} people, each treated once"),
        check("shared faces", _sharing(certificate), "as the counts allow"),
        check("likeness", _likeness(certificate), "as the recogniser allows"),
        check("frames", _miscounted_frames(path, certificate), "as many as certified"),
        _at_risk(path, certificate),
    ]
    return findings if method else [*findings, check("words", _words(certificate), "as the numbers say")]


def _method(certificate: SceneCertificate) -> list[str]:
    method = certificate.method
    if method.name not in METHODS or not METHODS[method.name].scenes.works:
        return [f"unknown method {method.name!r}"]
    wrong = []
    if method.cover not in COVERS:
        wrong.append(f"unknown cover {method.cover!r}")
    if method.level is not None:
        try:
            Mask(method.name, method.level)
        except (UsageError, ValueError, ArithmeticError) as error:
            wrong.append(str(error))
    masks = METHODS[method.name].masks
    if masks != (certificate.k is None) or (certificate.k is not None and certificate.k < 2):
        wrong.append(f"k = {certificate.k} does not go with {method.name}")
    return wrong


def _counts(certificate: SceneCertificate) -> list[str]:
    counts, outputs, method = certificate.counts, len(certificate.files), certificate.method.name
    files, frames, replaced = counts.files, counts.frames, counts.replaced
    treated = replaced + counts.masked + counts.masked_instead + counts.kept
    at_risk, masked = counts.frames_at_risk, counts.faces_masked_instead
    within = counts.without_faces <= files and counts.frames_damaged <= frames
    return broken(
        (counts.people == treated, f"{counts.people} people, but {treated} were replaced, masked or kept"),
        (files <= min(frames, outputs), f"{files} files, but {frames} frames and {outputs} outputs"),
        (at_risk <= min(frames, masked), f"{at_risk} frames at risk of {frames}"),
        (bool(at_risk) == bool(masked), f"{masked} faces masked in {at_risk} frames"),
        (within, "more files without a face, or more damaged frames, than there are"),
        (certificate.k is not None or not replaced, f"{replaced} people were replaced, but {method} replaces nobody"),
    )


def _sharing(certificate: SceneCertificate) -> list[str]:
    """Judge k_real: real people who share a face were replaced, and no group has twice k or more."""
    replaced, k_real, k = certificate.counts.replaced, certificate.k_real, certificate.k
    if not replaced or k is None:
        return [] if k_real is None else [f"k_real = {k_real}, but no faces are shared"]
    if k_real is None or not 1 <= k_real <= min(replaced, 2 * k - 1):
        return [f"k_real = {k_real}, but {replaced} people were replaced, in groups for k = {k}"]
    return []


def _likeness(certificate: SceneCertificate) -> list[str]:
    like = certificate.likeness
    if (like is None) != (certificate.counts.replaced == 0):
        return ["it is given for people who were replaced, and for nobody else"]
    if like is None:
        return []
    if like.recogniser != SFace.name or not agree(like.threshold, SFace.threshold):
        return [f"{like.recogniser} with threshold {like.threshold:g} is not the recogniser in the loop"]
    if like.recognised and NOT_JUDGED not in certificate.warnings:
        return ["somebody is still recognised, and such people are masked"]
    return []


def _words(certificate: SceneCertificate) -> list[str]:
    """Write every sentence anew; what was asked for may add some of its own."""
    counts, stated, needed = certificate.counts, certificate.warnings, notes_on_counts(certificate.counts)
    words = statement(certificate.method.name, certificate.k, certificate.k_real, counts)
    limits = [not_promised(counts, audio=audio) for audio in SOUND]
    known = len(set(stated)) == len(stated) and set(stated) <= {*needed, *CHOICES}
    return broken(
        (certificate.statement == words, "the statement is not the one that follows from the numbers"),
        (certificate.not_promised in limits, "the limits are not those of the method"),
        *((text in stated, f"a warning is missing: {text}") for text in needed),
        (known, "a warning is there that ksame does not give"),
    )


def _miscounted_frames(path: Path, certificate: SceneCertificate) -> list[str]:
    """Count the frames of all outputs; what cannot be counted is left to the hashes."""
    counted = 0
    for name in certificate.files:
        frames = _frames_in(path.parent, name)
        if frames is None:
            return []
        counted += frames
    return differences({"frames": certificate.counts.frames}, {"frames": counted})


def _frames_in(folder: Path, name: str) -> int | None:
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or name.startswith("/") or "\0" in name:
        return None
    file = folder / name
    try:
        if file.is_symlink() or not file.is_file():
            return None
        media = open_media(file)
        if media.exact:
            return media.n_frames
        with open_container(file) as container:
            return sum(packet.size > 0 for packet in container.demux(video_stream(container, file)))
    except (InputError, OSError, FFmpegError):
        return None


def _at_risk(path: Path, certificate: SceneCertificate) -> Finding:
    """Compare the list of frames at risk with the counts."""
    name, counts = "frames at risk", certificate.counts
    alone = path.name == CERTIFICATE
    folder, name_of = path.absolute().parent, path.name.replace(CERTIFICATE, AT_RISK)
    file = beside(folder, AT_RISK, whole=True) if alone else path.with_name(name_of)
    if not file.is_file() or file.is_symlink():
        if counts.faces_masked_instead + counts.frames_damaged + counts.without_faces:
            return Finding(name, None, f"{file.name} is not there to be compared")
        return Finding(name, True, "none, as certified")
    try:
        listed = from_csv(read_bytes(file, "the list of frames at risk", plain=True))
    except InputError as error:
        return Finding(name, False, f"{file.name}: {error}")
    actual = count_risks(listed.values())
    wrong = differences({n: getattr(counts, n) for n in actual}, actual)
    unknown = sorted(set(listed) - {str(p) for n in certificate.files for p in (n, *PurePosixPath(n).parents)})
    wrong += [f"{unknown[0]} is at risk, but not certified"] if unknown else []
    return check(name, wrong, f"{actual['frames_at_risk']}, as certified")


def check_linked_scenes(certificate: SceneCertificate, linkage: SceneLinkage) -> list[Finding]:
    """Hold the certificate against the link table: what became of everyone, and how many share a face."""
    sure = [person for person in linkage.people if person.sure]
    hidden = [person for person in sure if not person.shown]
    replaced = [person for person in hidden if person.treatment == "replace"]
    masked = [person for person in hidden if person.treatment == "mask"]
    instead = sum(person.masked_instead for person in masked)
    in_doubt = Counter(person.shown for person in linkage.people if not person.sure)
    actual: dict[str, Any] = {
        "people": len(sure),
        "not_sure": in_doubt[False],
        "not_sure_kept": in_doubt[True],
        "replaced": len(replaced),
        "masked": len(masked) - instead,
        "masked_instead": instead,
        "kept": len(sure) - len(replaced) - len(masked),
    }
    wrong = differences({name: getattr(certificate.counts, name) for name in actual}, actual)
    alike, like = [person.likeness for person in replaced if person.likeness is not None], certificate.likeness
    recognised = max(alike) >= like.threshold if alike and like is not None else None
    wrong += differences({"recognised": None if like is None else like.recognised}, {"recognised": recognised})
    if any(person.cover != certificate.method.cover for person in replaced):
        wrong.append(f"not everyone is covered as certified ({certificate.method.cover})")
    known = {part for name in certificate.files for part in PurePosixPath(name).parts}
    if any(place.output not in known for person in linkage.people for place in person.places):
        wrong.append("somebody is in a file that is not certified")
    findings = [check("linkage", wrong, f"{len(sure)} people, as certified")]
    if certificate.k_real is not None:
        groups = [(person.group, person.counts_as) for person in replaced if person.group is not None]
        smallest = smallest_sharing(groups) if len(groups) == len(replaced) else 0
        detail = f"{smallest or 0}, {certificate.k_real} certified"
        findings.append(Finding("people behind each face", smallest == certificate.k_real, detail))
    return findings
