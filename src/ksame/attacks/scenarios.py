"""Who is compared with whom, and after what preparation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray
from ksame.attacks.arithmetic import difference_votes, insider_codes
from ksame.attacks.base import (
    AttackData,
    AttackResult,
    Coder,
    Recogniser,
    Remarking,
    compare,
    connected,
    distinct,
    score,
)
from ksame.attacks.coders import Eigenfaces
from ksame.attacks.detection import Level, detect_levels
from ksame.attacks.differencing import DistinctFaces, differences
from ksame.attacks.restoration import Prior, RidgeInverse, enhance
from ksame.errors import InputError, parameter_error
from ksame.faces.faceset import FaceSet, subject_means
from ksame.spaces.reference import cross_squared_distances

_FOLDS = 5


@dataclass(frozen=True)
class Scenario:
    """An attack for any recogniser; the summary says what is compared with what."""

    name: str
    summary: str
    run: Callable[[Recogniser, AttackData, np.random.Generator], AttackResult]


def run_attack(name: str, recogniser: Recogniser, data: AttackData, seed: int = 0) -> AttackResult:
    """Run the scenario called ``name``, a key of :data:`SCENARIOS`; it fits the recogniser itself."""
    if name not in SCENARIOS:
        raise parameter_error("name", "run_attack", f"one of {', '.join(SCENARIOS)}", name)
    return SCENARIOS[name].run(recogniser, data, np.random.default_rng(seed))


def _naive(recogniser: Recogniser, data: AttackData, rng: np.random.Generator) -> AttackResult:
    trained, notes = _on_originals(recogniser, data)
    return _matched("naive", trained, data.released, data.originals, notes)


def _reverse(recogniser: Recogniser, data: AttackData, rng: np.random.Generator) -> AttackResult:
    trained, notes = _trained(recogniser, data.training, data.released, "the gallery of released faces")
    return _matched("reverse", trained, data.originals, data.released, notes)


def _parrot(recogniser: Recogniser, data: AttackData, rng: np.random.Generator) -> AttackResult:
    if data.imitate is None:
        gallery, how = data.released, "the gallery is the release itself"
        training = None
    else:
        gallery, how = data.imitate(data.originals), "the attacker ran the method on the originals"
        training = None if data.training is None else data.imitate(data.training)
    trained, notes = _trained(recogniser, training, gallery, "the gallery of de-identified faces")
    return _matched("parrot", trained, data.released, gallery, (how, *notes))


def _pooled(recogniser: Recogniser, data: AttackData, rng: np.random.Generator) -> AttackResult:
    trained, notes = _on_originals(recogniser, data)
    squares = compare(trained, data.released, data.originals) ** 2
    means, _ = subject_means(squares, data.released.subjects)
    _, first = np.unique(data.released.subjects, return_index=True)
    how = f"{len(squares)} released faces pooled into {len(first)} people"
    people = data.released.take(first)
    notes = (how, *notes, *_remarks(trained, data.released))
    return score("pooled", trained, np.sqrt(means), people, data.originals, notes=notes)


def _automatic_parrot(recogniser: Recogniser, data: AttackData, rng: np.random.Generator) -> AttackResult:
    trained, notes = _on_originals(recogniser, data)
    levels, detected = _levels(data)
    distances = np.empty((len(data.released), len(data.originals)))
    for level in dict.fromkeys(levels):
        rows = np.array([i for i, face_level in enumerate(levels) if face_level == level])
        gallery = data.originals
        if level is not None:
            gallery = gallery.with_images(level.apply(gallery.images).clip(0.0, 1.0))
        distances[rows] = compare(trained, data.released.take(rows), gallery)
    notes = (*detected, *notes, *_remarks(trained, data.released))
    return score("automatic-parrot", trained, distances, data.released, data.originals, notes=notes)


def _enhancement(recogniser: Recogniser, data: AttackData, rng: np.random.Generator) -> AttackResult:
    trained, notes = _on_originals(recogniser, data)
    levels, detected = _levels(data)
    prior = Prior.learn(data.training or data.originals)
    images = np.array(data.released.images)
    for level in dict.fromkeys(levels):
        if level is not None:
            rows = [i for i, face_level in enumerate(levels) if face_level == level]
            images[rows] = enhance(images[rows], level, prior)
    return _matched("enhancement", trained, data.released.with_images(images), data.originals, (*detected, *notes))


def _learned_inverse(recogniser: Recogniser, data: AttackData, rng: np.random.Generator) -> AttackResult:
    trained, notes = _on_originals(recogniser, data)
    released = _rows(data.released)
    if data.training is not None and data.imitate is not None:
        how = f"the inverse was learned on {len(data.training)} faces of other people"
        examples = data.imitate(data.training)
        wanted, paired = _behind(examples, data.training)
        restored = RidgeInverse.learn(_rows(examples)[paired], wanted[paired]).apply(released)
    else:
        how = "the inverse was learned on the pairs of other people in the release, in five folds"
        wanted, paired = _behind(data.released, data.originals)
        folds = _folds(data.released, rng)
        restored = released.copy()
        for fold in np.unique(folds):
            inside, others = folds == fold, paired & (folds != fold)
            if others.sum() > 1:
                restored[inside] = RidgeInverse.learn(released[others], wanted[others]).apply(released[inside])
    faces = data.released.with_images(restored.clip(0.0, 1.0).reshape(data.released.images.shape))
    return _matched("learned-inverse", trained, faces, data.originals, (how, *notes))


def _difference(recogniser: Recogniser, data: AttackData, rng: np.random.Generator) -> AttackResult:
    coder = _coder(recogniser, data)
    first, which = distinct(data.released)
    votes = difference_votes(coder.encode(data.released.take(first)), coder.encode(data.originals))[which]
    voted = int((votes.max(axis=1) > 0).sum())
    notes = (f"{voted} of {len(votes)} released faces differ from their originals as others do; the rest is guessed",)
    return score("difference", coder, -votes, data.released, data.originals, notes=notes)


def _insider(recogniser: Recogniser, data: AttackData, rng: np.random.Generator) -> AttackResult:
    coder = _coder(recogniser, data)
    first, which = distinct(data.released)
    released, originals = coder.encode(data.released.take(first))[which], coder.encode(data.originals)
    computed, members = insider_codes(released, which, data.released.subjects, originals, data.originals.subjects)
    distances = np.sqrt(cross_squared_distances(computed, originals))
    notes = (
        "the attacker knows everybody in a group but one; no promise of k-anonymity speaks of that",
        f"{int((members > 1).sum())} of {len(members)} released faces are shared by several people",
    )
    return score("insider", coder, distances, data.released, data.originals, notes=notes, covered=False)


def _differencing(recogniser: Recogniser, data: AttackData, rng: np.random.Generator) -> AttackResult:
    if data.earlier is None:
        raise InputError("an earlier release of the same people is needed; give it with --earlier")
    coder = _coder(recogniser, data)
    originals = coder.encode(data.originals)
    before, after = {image.tobytes() for image in data.earlier.images}, {i.tobytes() for i in data.released.images}
    gone, new = _only(data.earlier, coder, after), _only(data.released, coder, before)
    changes = [(person, pair) for pair in differences(gone, new, originals) for person in sorted(pair.people)]
    if changes:
        probes = _of_people(data.earlier, data.released, [person for person, _ in changes])
        distances = np.stack([pair.distances for _, pair in changes])
        how = f"{len(gone.codes)} earlier faces are gone; {len(changes)} people left or joined their groups"
    else:
        probes, distances = data.earlier, compare(coder, data.earlier, data.originals)
        how = "no face of the earlier release was replaced, so there is nothing to subtract: its faces were compared"
    return score("differencing", coder, distances, probes, data.originals, notes=(how,))


def _coder(recogniser: Recogniser, data: AttackData) -> Coder:
    """Return the recogniser where it can code faces, else Eigenfaces, trained on the originals."""
    return (recogniser if isinstance(recogniser, Coder) else Eigenfaces()).fit(data.originals)


def _only(faces: FaceSet, coder: Coder, others: set[bytes]) -> DistinctFaces:
    """Return the distinct faces that are not among ``others``."""
    first, which = distinct(faces)
    kept = [i for i, row in enumerate(first) if faces.images[row].tobytes() not in others]
    if not kept:
        return DistinctFaces(np.empty((0, 1)), np.empty(0, dtype=np.intp), ())
    return DistinctFaces(
        coder.encode(faces.take(first[kept])),
        np.bincount(which)[kept],
        tuple(frozenset(str(s) for s in faces.subjects[which == i]) for i in kept),
    )


def _of_people(earlier: FaceSet, later: FaceSet, people: list[str]) -> FaceSet:
    """Return a released face of each of these people, from whichever release has one."""
    rows = {str(s): (later, i) for i, s in enumerate(later.subjects)}
    rows |= {str(s): (earlier, i) for i, s in enumerate(earlier.subjects)}
    images = np.stack([rows[person][0].images[rows[person][1]] for person in people])
    return FaceSet(images, np.array(people), names=tuple(f"person/{person}" for person in people))


def _on_originals(recogniser: Recogniser, data: AttackData) -> tuple[Recogniser, tuple[str, ...]]:
    return _trained(recogniser, data.training, data.originals, "the gallery of originals")


def _trained(
    recogniser: Recogniser, training: FaceSet | None, otherwise: FaceSet, called: str
) -> tuple[Recogniser, tuple[str, ...]]:
    """Train on people outside where there are any, else on the gallery as Newton et al. (2005) do."""
    chosen, what = (otherwise, called) if training is None else (training, "a separate training set")
    return recogniser.fit(chosen), (f"trained on {what}: {len(chosen)} faces of {chosen.n_subjects} people",)


def _matched(name: str, trained: Recogniser, probes: FaceSet, gallery: FaceSet, notes: tuple[str, ...]) -> AttackResult:
    distances = compare(trained, probes, gallery)
    return score(name, trained, distances, probes, gallery, notes=(*notes, *_remarks(trained, probes)))


def _remarks(recogniser: Recogniser, faces: FaceSet) -> tuple[str, ...]:
    """Return the recogniser's notes about the faces, if it makes any."""
    return recogniser.remarks(faces) if isinstance(recogniser, Remarking) else ()


def _levels(data: AttackData) -> tuple[list[Level | None], tuple[str, ...]]:
    """Detect what was done to every released face, and put it in words."""
    if data.released.shape[1:] != data.originals.shape[1:]:
        raise InputError(
            f"Originals and released faces must have one size to detect what was done to them. "
            f"Got {data.originals.shape[1:]} and {data.released.shape[1:]}; register them to one template."
        )
    first, which = distinct(data.released)
    each = detect_levels(data.released.images[first], data.training or data.originals)
    levels = [each[i] for i in which]
    counts = Counter(str(level) for level in levels if level is not None)
    notes = tuple(f"{what} detected in {n} of {len(levels)} faces" for what, n in counts.most_common())
    return levels, notes or ("neither pixelation nor blur was detected",)


def _folds(released: FaceSet, rng: np.random.Generator) -> IntArray:
    """Deal released faces into folds, (n_released,); one person, or one shared face, is never in two."""
    _, part = np.unique(connected(released.subjects, distinct(released)[1]), return_inverse=True)
    return np.asarray(rng.permutation(int(part.max()) + 1)[part] % _FOLDS, dtype=np.intp)


def _behind(released: FaceSet, originals: FaceSet) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the mean original of each released face's subject, (n_released, n_pixels), and whether there is one."""
    means, who = subject_means(_rows(originals), originals.subjects)
    column = np.searchsorted(who, released.subjects).clip(max=len(who) - 1)
    return means[column], who[column] == released.subjects


def _rows(faces: FaceSet) -> FloatArray:
    return faces.images.reshape(len(faces), -1).astype(np.float64)


_ALL = (
    Scenario("naive", "released faces against originals", _naive),
    Scenario("reverse", "originals against released faces", _reverse),
    Scenario("parrot", "released faces against faces de-identified in the same way", _parrot),
    Scenario("pooled", "all released faces of a person together against originals", _pooled),
    Scenario(
        "automatic-parrot",
        "released faces against originals pixelated or blurred as the released face was found to be",
        _automatic_parrot,
    ),
    Scenario("enhancement", "pixelated or blurred faces, made sharp again, against originals", _enhancement),
    Scenario(
        "learned-inverse", "released faces, undone as other people's pairs teach, against originals", _learned_inverse
    ),
    Scenario("difference", "pairings in which many released faces differ alike from their originals", _difference),
    Scenario("differencing", "one release less another of the same people, against originals", _differencing),
    Scenario("insider", "shared faces less the members that an insider knows, against originals", _insider),
)

SCENARIOS: Mapping[str, Scenario] = MappingProxyType({scenario.name: scenario for scenario in _ALL})
"""All scenarios by name (Newton et al. 2005, section 5.2; Gross et al. 2006, section 6.2)."""
