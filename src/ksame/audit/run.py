"""The audit itself: pair, crop, attack, measure, conclude."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from ksame.attacks import SCENARIOS, AttackData, Restorer, run_attack
from ksame.audit.attackers import DEFAULT, PIXELS, Attacker, attacker
from ksame.audit.crops import FaceCropper, View, choose_cropper
from ksame.audit.judging import DIFFERENCING, JudgedAttack, conclude, judge, judge_without_faces, most_exposed
from ksame.audit.measuring import compared, measure_utility, poc_points
from ksame.audit.pairing import BY_NAME, AuditInput, ImageSource, Pairing, pair_images
from ksame.audit.pairs import AuditFaces, crop_pairs, face_sets
from ksame.audit.result import AuditPlan, AuditResult, Counts
from ksame.audit.scenes import promise_of
from ksame.audit.thumbnails import thumbnails
from ksame.errors import InputError, UsageError, seed_number
from ksame.faces.faceset import FaceSet
from ksame.models import Store
from ksame.progress import Progress, silent
from ksame.scene.certificate import AnyCertificate, SceneCertificate
from ksame.scheduling import LOCAL, check_scheduler, open_scheduler
from ksame.version import software

STANDARD = ("naive", "reverse", "parrot")
"""Scenarios of every audit, unless others are asked for."""

BY_PIXELS = ("difference", DIFFERENCING, "insider")
"""Scenarios that calculate with pixels, whatever the recogniser."""

ON_RESTORED = ("naive", "reverse", "pooled")
"""Scenarios for restored faces: the others repeat or undo the alteration themselves."""


@dataclass(frozen=True)
class AuditConfig:
    """How an audit attacks."""

    # keys of :data:`ksame.audit.attackers.KNOWN`, paths of ONNX files, or either on restored faces; see
    # :func:`ksame.audit.attackers.attacker`
    attackers: Sequence[str] = DEFAULT
    # keys of :data:`ksame.attacks.SCENARIOS`; by default those that fit, see :func:`fitting`
    scenarios: Sequence[str] | None = None
    # whether the pictures are registered faces or show a face somewhere; a sample of them decides by default
    view: View | None = None
    # where no face is found in a released photograph, let the attacker take the place it has in the original
    by_hand: bool = False
    name: str | None = None  # what this release is called in comparisons
    seed: int = 0  # for folds and whatever attacks draw at random
    scheduler: str = LOCAL  # where faces are detected, see ksame.scheduling.open_scheduler; it changes no number
    workers: int | None = None  # how many processes, with the scheduler "processes"

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", seed_number("audit", self.seed))
        check_scheduler(self.scheduler, self.workers)


_DEFAULT_CONFIG = AuditConfig()


def audit(
    originals: ImageSource,
    released: ImageSource,
    config: AuditConfig = _DEFAULT_CONFIG,
    *,
    pairing: Pairing = BY_NAME,
    earlier: AuditInput | None = None,
    compare: Sequence[AuditResult] = (),
    progress: Progress = silent,
) -> AuditResult:
    """Find out how many people are still recognised in released pictures, and how much use is left.

    Parameters
    ----------
    originals, released : Path, str or FaceSet
        Folders of pictures, altered by any tool, or faces in memory.
    pairing : Pairing
        Which picture belongs to which, and what originals show.
    earlier : AuditInput, optional
        An earlier release of the same people, from :func:`ksame.audit.pairing.pair_images`: the attacker subtracts
        one from the other.
    compare : sequence of AuditResult
        Audits of other releases of the same originals, for the privacy operating characteristic.
    progress : Progress
        Shows progress.

    Raises
    ------
    UsageError
        When nothing can be paired, there is one person only, or an attacker or scenario is unknown.
    InputError
        When a table or all pictures cannot be read, or no face is found in any original.
    ModelError
        When the file of a restorer is missing or holds something else.
    """
    chosen = [attacker(each) for each in dict.fromkeys(config.attackers)]
    _check(chosen, config.scenarios)
    pictures = pair_images(originals, released, pairing)
    cropper = choose_cropper(pictures, config.view)
    restorers = list({each.restorer.sha256: each.restorer for each in chosen if each.restorer}.values())
    with open_scheduler(config.scheduler, config.workers) as scheduler:
        crop = partial(crop_pairs, cropper=cropper, by_hand=config.by_hand, scheduler=scheduler, progress=progress)
        faces = crop(pictures, restorers=restorers)
        before = None if earlier is None else crop(earlier)
    promise = None if pictures.certificate is None else promise_of(pictures.certificate)
    bound = None if promise is None else promise.bound
    tried = tuple(config.scenarios or fitting(faces, cropper.view, bound, earlier=before is not None))
    able, unable = _able(chosen, cropper)
    judged, skipped = _attack(able, tried, faces, before, bound, config.seed, progress)
    verdict = conclude(judged, faces.pairs, promise, cropper.view)
    utility = measure_utility(faces.pairs, seed=config.seed, progress=progress)
    method, parameter = _method_and_strength(pictures.certificate, config.name, released)
    points = poc_points(verdict, utility, method, parameter)
    exposed = most_exposed(judged, faces.pairs)
    result = AuditResult(
        plan=AuditPlan(
            attackers=tuple(each.name for each in chosen),
            scenarios=tried,
            view=cropper.view,
            by_hand=config.by_hand,
            pairing=pictures.pairing,
            seed=config.seed,
            name=f"{method} {parameter}".strip(),
        ),
        counts=Counts(
            people=faces.people,
            pairs=len(faces.pairs),
            originals=len({pair.pair.original.name for pair in faces.pairs}) + len(faces.further),
            without_face=len(faces.without_face),
            not_judged=len(faces.not_judged),
        ),
        promise=promise,
        verdict=verdict,
        attacks=tuple(j.record for j in judged),
        exposed=exposed,
        utility=utility,
        poc=tuple(points),
        compared=compared(points, [other.poc for other in compare]),
        without_face=tuple(pair.pair.released.name for pair in faces.without_face),
        not_judged=tuple(faces.not_judged),
        limits=(*unable, *skipped, *_limits(faces, pictures, cropper.view, restorers)),
        software=software("numpy", "scipy", "scikit-learn", "opencv-python-headless", "ai-edge-litert")
        | {f"{m} (sha256)": Store().model(m).sha256 for m in ("yunet", "face-landmarker", "sface")},
    )
    return result.illustrated(thumbnails(exposed, faces.pairs))


def _check(attackers: Sequence[Attacker], scenarios: Sequence[str] | None) -> None:
    if not attackers or (scenarios is not None and not scenarios):
        raise UsageError("An audit needs at least one attacker and one scenario.")
    unknown = [scenario for scenario in scenarios or () if scenario not in SCENARIOS]
    if unknown:
        raise UsageError(f"Unknown scenario {unknown[0]!r}. Choose one of: {', '.join(SCENARIOS)}.")


def _attack(
    attackers: Sequence[Attacker],
    scenarios: Sequence[str],
    faces: AuditFaces,
    earlier: AuditFaces | None,
    bound: float | None,
    seed: int,
    progress: Progress,
) -> tuple[list[JudgedAttack], list[str]]:
    """Return every attack that fits the data, and a line for each that does not."""
    judged: list[JudgedAttack] = []
    skipped: list[str] = []
    for each in attackers:
        given = faces.restored_by(each.restorer)
        tried = scenarios if each.restorer is None else [s for s in scenarios if s in ON_RESTORED]
        before, after = face_sets(given, each.part)
        if after is None:
            judged += [judge_without_faces(scenario, each.name, given.pairs, bound) for scenario in tried]
            continue
        recogniser, data = each.build(), AttackData(before, after)
        both = data if earlier is None else _with_earlier(data, *face_sets(earlier, each.part))
        for scenario in progress(tried, f"attacking: {each.name}"):
            if scenario in BY_PIXELS and each.part != PIXELS:
                continue
            try:
                attacked = both if scenario == DIFFERENCING else data
                judged.append(judge(run_attack(scenario, recogniser, attacked, seed), given.pairs, bound))
            except InputError as error:
                skipped.append(f"{scenario} by {each.name} could not be tried: {error}")
    if not judged:
        if all(each.restorer is not None for each in attackers):
            skipped.append(f"Restored faces are attacked by {', '.join(ON_RESTORED)}.")
        raise UsageError(f"None of the attacks fits these pictures. {' '.join(skipped)}")
    return judged, skipped


def _with_earlier(data: AttackData, originals: FaceSet, earlier: FaceSet | None) -> AttackData:
    """Add an earlier release, and the originals of people who are in that one only."""
    both, only_earlier = data.originals, ~np.isin(originals.subjects, data.originals.subjects)
    if only_earlier.any():
        left = originals.take(only_earlier)
        both = FaceSet(
            np.concatenate([both.images, left.images]),
            np.concatenate([both.subjects, left.subjects]),
            names=(*both.names, *left.names),
        )
    return replace(data, originals=both, earlier=earlier)


def _able(attackers: Sequence[Attacker], cropper: FaceCropper) -> tuple[list[Attacker], list[str]]:
    """Leave out networks where nobody knows where the eyes are."""
    if cropper.view == "photographs" or cropper.places is not None:
        return list(attackers), []
    able = [each for each in attackers if each.part == PIXELS and each.restorer is None]
    unable = [each.name for each in attackers if each not in able]
    if not able:
        raise UsageError(
            f"No face is found in any original, so {', '.join(unable)} cannot be used. Add --attackers eigenfaces."
        )
    return able, [f"{each} did not attack: it finds no face in any original." for each in unable]


def fitting(faces: AuditFaces, view: View, bound: float | None, *, earlier: bool = False) -> tuple[str, ...]:
    """Return the scenarios that fit the data.

    Besides the three of every audit: on registered faces, what was done is found out and repeated where nothing is
    promised, and differences are compared where nobody is to be named at all; people with several released pictures are
    pooled; where people share a face, an insider subtracts the others; with an earlier release, it is subtracted.
    """
    scenarios = list(STANDARD)
    if view == "faces" and bound is None:
        scenarios.append("automatic-parrot")
    if view == "faces" and bound == 0:
        scenarios.append("difference")
    if faces.people < len(faces.pairs):
        scenarios.append("pooled")
    released = [pair.after.wide.tobytes() for pair in faces.pairs if pair.after.wide is not None]
    if 1 < len(set(released)) < len(released):
        scenarios.append("insider")
    if earlier:
        scenarios.append(DIFFERENCING)
    return tuple(scenarios)


def _method_and_strength(
    certificate: AnyCertificate | None, name: str | None, released: ImageSource
) -> tuple[str, str]:
    """Return method and strength: from ``name`` ("blur 8" is blur at 8), the certificate, or the folder's name."""
    if name is not None:
        method, _, parameter = name.partition(" ")
        return method, parameter
    if isinstance(certificate, SceneCertificate):
        return certificate.method.name, "" if certificate.k is None else f"k = {certificate.k}"
    if certificate is not None:
        shown = [f"{key} = {value}" for key, value in certificate.method.params.items() if key in _STRENGTHS]
        return certificate.method.name, ", ".join(shown)
    return (Path(released).resolve().name, "") if isinstance(released, (str, Path)) else ("released", "")


_STRENGTHS = ("k", "p", "sigma", "t", "m", "e", "epsilon", "value")


def _limits(faces: AuditFaces, pictures: AuditInput, view: View, restorers: Sequence[Restorer]) -> list[str]:
    limits = [
        "An attack that fails proves nothing about other recognisers, or about people who know the person.",
        "Originals and released pictures show the same moment: the worst case. An attacker with other photographs "
        "of the same people usually recognises fewer.",
        f"Rates are for a choice among {faces.people} people; among more, fewer are named at rank 1.",
        "Recognisers compare the face and its rim. Clothes, body, gait, place, time or company may still name people.",
    ]
    if view == "photographs":
        limits.append(
            "Faces were looked for by a detector, one per picture: the largest, or the one in the original's place. "
            "Where it finds none, the picture counts as not recognised; a person may still see a face there."
        )
    if faces.people < len(faces.pairs):
        limits.append("Pictures of one person are not independent, so intervals are narrower than they should be.")
    elif not faces.further:
        limits.append("Every original counts as a different person.")
    if pictures.certificate is None:
        limits.append("No certificate came with the pictures, so nothing was promised that could be judged.")
    if restorers:
        names = ", ".join(restorer.name for restorer in restorers)
        limits.append(
            f"Faces were restored by {names}: a network trained longer, on more pairs or for this very tool may "
            "restore more. What it was trained on is not known here; it must have been pairs of other people."
        )
    return limits
