"""From attacks to a verdict: pictures without a face count as not recognised, and the strongest attack decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ksame.arrays import FloatArray
from ksame.attacks import AttackResult, Eigenfaces, Mahalanobis, clopper_pearson, verdict
from ksame.audit.crops import View
from ksame.audit.pairs import PairCrops
from ksame.audit.result import AttackRecord, Exposed, Outcome, Promise, VerdictRecord

REPEATED = "parrot"
"""The scenario whose gallery is the release itself: an upper limit, for attackers who can repeat the alteration."""

PIXEL_RECOGNISERS = frozenset({Eigenfaces.name, Mahalanobis.name})
"""Recognisers that compare pictures point by point, and so also light, pose and expression."""

JUDGED: Mapping[View, str] = {
    "photographs": "Judged was the face cut out of each photograph, without what lies around it.",
    "faces": "Judged were whole pictures of registered faces; what they show beside the face counts too.",
}
SAME_PHOTOGRAPH = (
    "Gallery and probe are the same photograph, before and after: the worst case, in which light, pose and expression "
    "match as well as the face."
)

POOLED = "pooled"
"""The scenario whose probes are people, not pictures."""

DIFFERENCING = "differencing"
"""The scenario whose probes are people who left or joined between two releases."""


@dataclass(frozen=True, eq=False)
class JudgedAttack:
    """An attack, and the chance with which it names each pair."""

    record: AttackRecord
    scores: FloatArray  # (n_pairs,): zero where the attacker finds no face

    @property
    def label(self) -> str:
        """Recogniser and scenario."""
        return f"{self.record.recogniser}, {self.record.scenario}"


def judge(result: AttackResult, pairs: Sequence[PairCrops], bound: float | None) -> JudgedAttack:
    """Count pictures without a face among the probes, and judge against the bound."""
    scores, without_face = _by_pair(result, pairs)
    n = result.n_probes + without_face
    rate = float(result.scores.sum()) / n
    record = AttackRecord(
        scenario=result.scenario,
        recogniser=result.recogniser,
        params=dict(result.params),
        n_probes=n,
        n_gallery=result.n_gallery,
        without_face=sum(p.after.empty for p in pairs),
        rank1=min(rate, 1.0),
        interval=clopper_pearson(rate * n, n),
        chance=1.0 / result.gallery.n_subjects,
        cmc=tuple(float(value) for value in result.cmc * (result.n_probes / n)),
        eer=result.eer,
        tar_at_far={f"{far:g}": float(tar) for far, tar in result.tar_at_far.items()},
        covered=result.covered,
        verdict=_verdict(rate, n, bound if result.covered else None),
        notes=result.notes,
    )
    return JudgedAttack(record, scores)


def judge_without_faces(
    scenario: str, recogniser: str, pairs: Sequence[PairCrops], bound: float | None
) -> JudgedAttack:
    """Return the attack of somebody who finds no face in any released picture."""
    n, people = len(pairs), len({p.subject for p in pairs})
    record = AttackRecord(
        scenario=scenario,
        recogniser=recogniser,
        params={},
        n_probes=n,
        n_gallery=0,
        without_face=n,
        rank1=0.0,
        interval=clopper_pearson(0, n),
        chance=1.0 / people,
        cmc=(0.0,) * min(50, people),
        eer=None,
        tar_at_far={},
        covered=True,
        verdict=_verdict(0.0, n, bound),
        notes=("no face is found in any released picture",),
    )
    return JudgedAttack(record, np.zeros(n))


def _verdict(rate: float, n: int, bound: float | None) -> Outcome | None:
    outcome = verdict(rate, n, bound)
    return None if outcome is None else outcome.value


def _by_pair(result: AttackResult, pairs: Sequence[PairCrops]) -> tuple[FloatArray, int]:
    """Return the score of every pair, (n_pairs,), and how many probes are missing because they show no face."""
    subjects = [p.subject for p in pairs]
    if result.scenario in (POOLED, DIFFERENCING):
        named = dict(zip(result.subjects.tolist(), result.scores, strict=True))
        missing = len(set(subjects) - set(named)) if result.scenario == POOLED else 0
        return np.array([named.get(s, 0.0) for s in subjects]), missing
    probed = dict(zip(result.probes.names, result.scores, strict=True))
    if result.probes.names[0].startswith("original/"):
        return np.array([probed.get(f"original/{p.pair.original.name}", 0.0) for p in pairs]), 0
    scores = [probed.get(f"released/{p.pair.released.name}", 0.0) for p in pairs]
    return np.array(scores), sum(p.after.empty for p in pairs)


def conclude(
    judged: Sequence[JudgedAttack], pairs: Sequence[PairCrops], promise: Promise | None, view: View
) -> VerdictRecord:
    """Say in one line how many people are still recognised, whether that breaks the promise, and what was judged.

    For photographs the line speaks of recognisers of faces. What compares pixels comes after it, since light, pose and
    expression are enough to find the same photograph again.
    """
    direct = _direct(judged)
    by_pixels = [j for j in direct if j.record.recogniser in PIXEL_RECOGNISERS] if view == "photographs" else []
    worst = max([j for j in direct if j not in by_pixels] or direct, key=lambda j: j.record.rank1)
    subjects = np.array([p.subject for p in pairs])
    people = len(np.unique(subjects))
    named = _people_named(worst.scores, subjects)
    line = _line(people, named, worst)
    matched = max((j for j in by_pixels if j is not worst), key=lambda j: j.record.rank1, default=worst)
    if matched.record.rank1 > worst.record.rank1 + 1e-9:
        people_matched = _count(_people_named(matched.scores, subjects))
        line += f" Comparing pixels ({matched.label}) finds the photograph that was altered for {people_matched}."
    repeated = max((j for j in judged if j.record.scenario == REPEATED), key=lambda j: j.record.rank1, default=None)
    if repeated is not None and repeated is not worst and repeated.record.rank1 > worst.record.rank1 + 1e-9:
        max_people = _count(_people_named(repeated.scores, subjects))
        line += f" Whoever can repeat the alteration on photographs of their own recognises up to {max_people}."
    outcome, why = _against(judged, promise)
    return VerdictRecord(
        line=line,
        outcome=outcome,
        explanation=f"{why} {JUDGED[view]} {SAME_PHOTOGRAPH}",
        scenario=worst.record.scenario,
        recogniser=worst.record.recogniser,
        recognised=named,
        people=people,
        rate=worst.record.rank1,
        interval=worst.record.interval,
    )


def _direct(judged: Sequence[JudgedAttack]) -> list[JudgedAttack]:
    """Return the attacks that anybody with the originals can run: no insiders, nobody who repeats the alteration."""
    return [j for j in judged if is_direct(j.record)] or list(judged)


def is_direct(record: AttackRecord) -> bool:
    """Return whether anybody with the originals can run an attack."""
    return record.scenario != REPEATED and record.covered


def _line(people: int, named: float, worst: JudgedAttack) -> str:
    if named > 0 and worst.scores.max() <= 0.5:  # all are ties, and the attacker draws lots
        return (
            f"Of {people} people, {_count(named)} would be named by luck and nobody for certain "
            f"(strongest attack: {worst.label})."
        )
    verb = "is" if _count(named) == "1" else "are"
    return f"Of {people} people, {_count(named)} {verb} still recognised by the strongest attack ({worst.label})."


def _people_named(scores: FloatArray, subjects: np.ndarray[tuple[int], np.dtype[np.str_]]) -> float:
    return float(sum(scores[subjects == s].mean() for s in np.unique(subjects)))


def _count(people: float) -> str:
    """Return a number of people in words a reader trusts: whole numbers as they are, expectations rounded.

    Examples
    --------
    >>> _count(12.0), _count(11.6), _count(0.3), _count(0.0)
    ('12', 'about 12', 'fewer than 1', 'none')
    """
    if people < 1e-9:
        return "none"
    whole = round(people)
    if abs(people - whole) < 1e-6:
        return str(whole)
    return f"about {whole}" if people >= 1 else "fewer than 1"


def _against(judged: Sequence[JudgedAttack], promise: Promise | None) -> tuple[Outcome | None, str]:
    if promise is None:
        return None, "No certificate comes with the pictures, so there is no promise to judge them by."
    if promise.bound is None:
        return None, f"Nothing is promised about recognition: {promise.scope}."
    covered = [j for j in judged if j.record.verdict is not None]
    limit = f"at most {100 * promise.bound:.3g} %"
    broken = [j for j in covered if j.record.verdict == "broken"]
    if broken:
        by = "; ".join(f"{j.label}: {100 * j.record.rank1:.1f} %" for j in broken)
        return "broken", f"The promise of {limit} is broken by {by}. It was made {promise.scope}."
    if covered and all(j.record.verdict == "holds" for j in covered):
        return "holds", f"The promise of {limit} holds against every attack tried here."
    return "too few faces to say", f"No attack breaks the promise of {limit}, but there are too few faces to be sure."


def most_exposed(
    judged: Sequence[JudgedAttack], pairs: Sequence[PairCrops], max_people: int = 20
) -> tuple[Exposed, ...]:
    """Return the people whom attacks name most, repeated alterations apart; nobody whom guessing names as often."""
    direct = _direct(judged)
    mean = np.mean([j.scores for j in direct], axis=0)
    order = np.argsort(-mean, kind="stable")[:max_people]
    chance = max(j.record.chance for j in direct)
    return tuple(
        Exposed(
            original=pairs[i].pair.original.name,
            released=pairs[i].pair.released.name,
            subject=pairs[i].subject,
            score=float(min(mean[i], 1.0)),
            named_by=tuple(j.label for j in direct if j.scores[i] > 0.5),
        )
        for i in order
        if mean[i] > chance + 1e-9
    )
