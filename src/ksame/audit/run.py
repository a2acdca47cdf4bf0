"""The audit itself: pair, look, attack, measure, conclude."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ksame.attacks import SCENARIOS, AttackData, Restorer, run_attack
from ksame.audit.attackers import DEFAULT, PIXELS, Attacker, attacker
from ksame.audit.judging import DIFFERENCING, Judged, blind, conclude, judge, most_exposed, software
from ksame.audit.looking import Sight, face_sets, look_at_all
from ksame.audit.material import Material, Source, gather
from ksame.audit.measuring import compared, measure_utility, poc_points
from ksame.audit.result import AuditResult, Counts, NotJudged, Plan
from ksame.audit.scenes import promise_of
from ksame.audit.sight import Eye, View, choose_eye
from ksame.audit.thumbnails import thumbnails
from ksame.errors import InputError, UsageError, seed_number
from ksame.faces.faceset import FaceSet
from ksame.faces.reading import StrPath
from ksame.models import Store
from ksame.progress import Track, silent
from ksame.scene.certificate import AnyCertificate, SceneCertificate
from ksame.scene.linkage import AnyLinkage

STANDARD = ("naive", "reverse", "parrot")
"""Scenarios of every audit, unless others are asked for."""

BY_PIXELS = ("difference", DIFFERENCING, "insider")
"""Scenarios that reckon with pixels, whatever the recogniser."""


ON_RESTORED = ("naive", "reverse", "pooled")
"""Scenarios for restored faces: the others repeat or undo the alteration themselves."""


def audit(
    originals: Source,
    released: Source,
    *,
    attackers: Sequence[str] = DEFAULT,
    scenarios: Sequence[str] | None = None,
    pairs: StrPath | None = None,
    linkage: AnyLinkage | None = None,
    labels: StrPath | None = None,
    earlier: Source | None = None,
    earlier_linkage: AnyLinkage | None = None,
    view: View | None = None,
    by_hand: bool = False,
    compare: Sequence[AuditResult] = (),
    name: str | None = None,
    seed: int = 0,
    track: Track = silent,
) -> AuditResult:
    """Find out how many people are still recognised in released pictures, and how much use is left.

    Parameters
    ----------
    originals, released : Path, str or FaceSet
        Folders of pictures, whoever altered them, or faces in memory.
    attackers : sequence of str
        Keys of :func:`ksame.audit.attackers.known`, paths of ONNX files, or either on restored faces; see
        :func:`ksame.audit.attackers.attacker`.
    scenarios : sequence of str, optional
        Keys of :data:`ksame.attacks.SCENARIOS`; by default those that fit, see :func:`fitting`.
    pairs, linkage, labels
        Which picture belongs to which and what originals show; see :func:`ksame.audit.material.gather`.
    earlier, earlier_linkage
        An earlier release of the same people, paired in the same way: the attacker subtracts one from the other.
    view : {"faces", "photographs"}, optional
        Whether the pictures are registered faces or show a face somewhere; found out by looking at them.
    by_hand : bool
        Where no face is found in a released photograph, let the attacker look where the original has it.
    compare : sequence of AuditResult
        Audits of other releases of the same originals, for the privacy operating characteristic.
    name : str, optional
        What this release is called in comparisons.
    seed : int
        For folds and whatever attacks draw by lot.
    track : Track
        Shows progress.

    Raises
    ------
    UsageError
        When nothing can be paired, there is one person only, or an attacker or scenario is not known.
    InputError
        When a table or all pictures cannot be read, or no face is found in any original.
    ModelError
        When the file of a restorer is missing or holds something else.
    """
    seed = seed_number("audit", seed)
    chosen = [attacker(each) for each in dict.fromkeys(attackers)]
    _check(chosen, scenarios)
    listed, told = (None if table is None else Path(table) for table in (pairs, labels))
    material = gather(originals, released, pairs=listed, linkage=linkage, labels=told)
    eye = choose_eye(material, view)
    restorers = list({each.restorer.sha256: each.restorer for each in chosen if each.restorer}.values())
    sight = look_at_all(material, eye, restorers=restorers, by_hand=by_hand, track=track)
    before = None
    if earlier is not None:
        past = gather(originals, earlier, linkage=earlier_linkage, labels=told)
        before = look_at_all(past, eye, by_hand=by_hand, track=track)
    promise = None if material.certificate is None else promise_of(material.certificate)
    bound = None if promise is None else promise.bound
    tried = fitting(sight, eye.view, bound, earlier=before is not None) if scenarios is None else tuple(scenarios)
    able, lost = _able(chosen, eye)
    judged, skipped = _attack(able, tried, sight, before, bound, seed, track)
    verdict = conclude(judged, sight.pairs, promise, eye.view)
    utility = measure_utility(sight.pairs, seed=seed, track=track)
    method, parameter = _called(material.certificate, name, released)
    points = poc_points(verdict, utility, method, parameter)
    exposed = most_exposed(judged, sight.pairs)
    result = AuditResult(
        plan=Plan(
            attackers=tuple(each.name for each in chosen),
            scenarios=tried,
            view=eye.view,
            by_hand=by_hand,
            pairing=material.pairing,
            seed=seed,
            name=f"{method} {parameter}".strip(),
        ),
        counts=_counts(sight),
        promise=promise,
        verdict=verdict,
        attacks=tuple(j.record for j in judged),
        exposed=exposed,
        utility=utility,
        poc=tuple(points),
        compared=compared(points, [other.poc for other in compare]),
        without_face=tuple(looked.pair.released.name for looked in sight.unseen),
        not_judged=tuple(NotJudged(name=m.name, side=m.side, reason=m.reason) for m in sight.missed),
        limits=(*lost, *skipped, *_limits(sight, material, eye), *_limits_of_restoring(restorers)),
        software=software({f"{m} (sha256)": Store().model(m).sha256 for m in ("yunet", "face-landmarker", "sface")}),
    )
    return result.illustrated(thumbnails(exposed, sight.pairs))


def _check(attackers: Sequence[Attacker], scenarios: Sequence[str] | None) -> None:
    if not attackers or (scenarios is not None and not scenarios):
        raise UsageError("An audit needs at least one attacker and one scenario.")
    unknown = [scenario for scenario in scenarios or () if scenario not in SCENARIOS]
    if unknown:
        raise UsageError(f"There is no scenario {unknown[0]!r}. Known: {', '.join(SCENARIOS)}.")


def _attack(
    attackers: Sequence[Attacker],
    scenarios: Sequence[str],
    sight: Sight,
    earlier: Sight | None,
    bound: float | None,
    seed: int,
    track: Track,
) -> tuple[list[Judged], list[str]]:
    """Return every attack that fits the data, and a line for each that does not."""
    judged: list[Judged] = []
    skipped: list[str] = []
    for each in attackers:
        seen = sight.through(each.restorer)
        tried = scenarios if each.restorer is None else [s for s in scenarios if s in ON_RESTORED]
        before, after = face_sets(seen, each.part)
        if after is None:
            judged += [blind(scenario, each.name, seen.pairs, bound) for scenario in tried]
            continue
        recogniser, data = each.build(), AttackData(before, after)
        both = data if earlier is None else _with_earlier(data, *face_sets(earlier, each.part))
        for scenario in track(tried, f"attacking: {each.name}"):
            if scenario in BY_PIXELS and each.part != PIXELS:
                continue
            try:
                held = both if scenario == DIFFERENCING else data
                judged.append(judge(run_attack(scenario, recogniser, held, seed), seen.pairs, bound))
            except InputError as error:
                skipped.append(f"{scenario} by {each.name} could not be tried: {error}")
    if not judged:
        if all(each.restorer is not None for each in attackers):
            skipped.append(f"Restored faces are attacked by {', '.join(ON_RESTORED)}.")
        raise UsageError(f"None of the attacks fits these pictures. {' '.join(skipped)}")
    return judged, skipped


def _with_earlier(data: AttackData, originals: FaceSet, earlier: FaceSet | None) -> AttackData:
    """Add an earlier release, and the originals of people who are in that one only."""
    known, only = data.originals, ~np.isin(originals.subjects, data.originals.subjects)
    if only.any():
        left = originals.take(only)
        known = FaceSet(
            np.concatenate([known.images, left.images]),
            np.concatenate([known.subjects, left.subjects]),
            names=(*known.names, *left.names),
        )
    return replace(data, originals=known, earlier=earlier)


def _able(attackers: Sequence[Attacker], eye: Eye) -> tuple[list[Attacker], list[str]]:
    """Leave out networks where nobody knows where the eyes are."""
    if eye.view == "photographs" or eye.places is not None:
        return list(attackers), []
    able = [each for each in attackers if each.part == PIXELS and each.restorer is None]
    lost = [each.name for each in attackers if each not in able]
    if not able:
        raise UsageError(
            f"No face is found in any original, so {', '.join(lost)} cannot look at them. Add --attackers eigenfaces."
        )
    return able, [f"{each} did not attack: it finds no face in any original." for each in lost]


def fitting(sight: Sight, view: View, bound: float | None, *, earlier: bool = False) -> tuple[str, ...]:
    """Return the scenarios that fit the data.

    Besides the three of every audit: on registered faces, what was done is found out and repeated where nothing is
    promised, and differences are compared where nobody is to be named at all; people with several released pictures are
    pooled; where people share a face, an insider subtracts the others; with an earlier release, it is subtracted.
    """
    found = list(STANDARD)
    if view == "faces" and bound is None:
        found.append("automatic-parrot")
    if view == "faces" and bound == 0:
        found.append("difference")
    subjects = [looked.pair.original.subject for looked in sight.pairs]
    if len(set(subjects)) < len(subjects):
        found.append("pooled")
    faces = [looked.after.wide.tobytes() for looked in sight.pairs if looked.after.wide is not None]
    if len(set(faces)) < len(faces) and len(set(faces)) > 1:
        found.append("insider")
    if earlier:
        found.append(DIFFERENCING)
    return tuple(found)


def _counts(sight: Sight) -> Counts:
    return Counts(
        people=len({looked.pair.original.subject for looked in sight.pairs}),
        pairs=len(sight.pairs),
        originals=len({looked.pair.original.name for looked in sight.pairs}) + len(sight.further),
        without_face=len(sight.unseen),
        not_judged=len(sight.missed),
    )


def _called(certificate: AnyCertificate | None, name: str | None, released: Source) -> tuple[str, str]:
    """Return method and strength: as told ("blur 8" is blur at 8), from the certificate, or the folder's name."""
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


def _limits(sight: Sight, material: Material, eye: Eye) -> list[str]:
    people = len({looked.pair.original.subject for looked in sight.pairs})
    limits = [
        "An attack that fails proves nothing about other recognisers, or about people who know the person.",
        "Originals and released pictures show the same moment: the worst case. An attacker with other photographs "
        "of the same people usually recognises fewer.",
        f"Rates are for a choice among {people} people; among more, fewer are named at rank 1.",
        "Recognisers look at the face and its rim. Clothes, body, gait, place, time or company may still name people.",
    ]
    if eye.view == "photographs":
        limits.append(
            "Faces were looked for by a detector, one a picture: the largest, or the one in the original's place. "
            "Where it finds none, the picture counts as not recognised; a person may still see a face there."
        )
    if people < len(sight.pairs):
        limits.append("Pictures of one person are not independent, so intervals are narrower than they should be.")
    elif not sight.further:
        limits.append("Every original counts as a different person.")
    if material.certificate is None:
        limits.append("No certificate came with the pictures, so nothing was promised that could be judged.")
    return limits


def _limits_of_restoring(restorers: Sequence[Restorer]) -> list[str]:
    if not restorers:
        return []
    names = ", ".join(restorer.name for restorer in restorers)
    return [
        f"Faces were restored by {names}: a network trained longer, on more pairs or for this very tool may restore "
        "more. What it was trained on is not known here; it must have been pairs of other people."
    ]
