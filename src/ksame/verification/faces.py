"""Checks of a release of faces: counts, pictures, claims and promise, and what the link table adds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from ksame.arrays import ByteArray
from ksame.errors import InputError
from ksame.faces.reading import decode_png, is_bare_png
from ksame.faces.sheet import contact_sheet
from ksame.privacy.certificate import LEARNED_ON, Certificate, Check, Series
from ksame.privacy.findings import ODD, Finding, agree, broken, check, differences
from ksame.privacy.linkage import Linkage, count_faces
from ksame.privacy.maps import EpsilonKMap, EpsilonMap, WrongMap, ZeroRecognition
from ksame.privacy.models import Evidence, KAnonymity, PrivacyModel, patterns
from ksame.privacy.release import SHEET, Release, face_name, release_order
from ksame.recipes import METHODS
from ksame.verification.repeating import rebuild_recipe

FIGURES = frozenset(
    (
        *("loss_sse", "mean_group", "smallest_group", "largest_group", "distinct_faces"),
        *("mean_cluster", "smallest_cluster", "pairs", "mean_level", "weak_faces", "mean_change"),
        *("smallest_label_diversity", "label_homogeneity", "label_by_chance"),
        *("smallest_margin", "above_epsilon", "largest_likelihood_met", "largest_epsilon", "largest_relative_gap"),
    )
)
"""Every figure that a certificate may give."""


def check_faces(release: Release, folder: Path, hashes: dict[str, str]) -> list[Finding]:
    """Hold counts, pictures, method, figures, checks and words against one another and against the folder's files."""
    certificate = release.certificate
    findings = [_counts(release), _pictures(folder, release, hashes)]
    try:
        promise = certificate.promise.rebuild()
    except InputError as error:
        return [*findings, Finding("promise", False, str(error))]
    done = certificate.checks == (Check.of(promise, series=certificate.series is not None),)
    return [
        *findings,
        _method(certificate, promise),
        check("figures", _figures(release, promise), f"{len(certificate.figures)} as the faces allow"),
        Finding("checks", done, "as every release has" if done else "not those that every release has passed"),
        _public(release, promise),
    ]


def _counts(release: Release) -> Finding:
    n, counts, series = len(release.faces), release.certificate.counts, release.certificate.series
    listed = sorted(name for name in release.certificate.files if name.startswith("faces/"))
    repeated = 0 if series is None else series.repeated
    originals, released, merged, withheld = counts.originals, counts.released, counts.merged, counts.withheld
    people, subjects = counts.subjects_released, counts.subjects
    possible = people <= min(released, subjects) <= subjects <= originals
    words = f"{n} faces in the folder, {released} certified, {len(listed)} listed"
    sums = f"{originals} originals are not {released} released, {merged} merged and {withheld} withheld"
    wrong = broken(
        (n == released and listed == [face_name(i) for i in range(n)], words),
        (originals == released + merged + withheld, sums),
        (repeated <= released, f"{repeated} faces are said to be repeated, of {released}"),
        (possible, f"{people} of {subjects} people cannot be behind these faces"),
    )
    return check("counts", wrong, words)


def _pictures(folder: Path, release: Release, hashes: dict[str, str]) -> Finding:
    """Judge what faces and sheet may tell beyond the faces: only faces are certified, in an order that says nothing."""
    ours = [n for n in sorted({*hashes, *release.certificate.files}) if n == SHEET or n.startswith("faces/")]
    others = sorted(set(release.certificate.files) - set(ours))
    plain = [name for name in ours if hashes.get(name, ODD[0]) not in ODD]
    more = [name for name in plain if not is_bare_png((folder / name).read_bytes())]
    wrong = [f"{name} is certified, but is no face" for name in others[:1]]
    wrong += [f"{name} holds more than pixels" for name in more[:1]]
    ordered = release_order(release.faces) == list(range(len(release.faces)))
    wrong += broken(
        (ordered, "the faces are not in the order of their hashes"),
        (SHEET not in plain or _shows(folder / SHEET, release.faces), f"{SHEET} does not show these faces"),
    )
    return check("pictures", wrong, "faces in the order of their hashes, and a sheet that shows them")


def _shows(sheet: Path, faces: ByteArray) -> bool:
    try:
        return np.array_equal(decode_png(sheet.read_bytes()), contact_sheet(faces))
    except (InputError, OSError):
        return False


def _public(release: Release, promise: PrivacyModel) -> Finding:
    name = "promise, from the folder"
    violations = promise.check_public(release.faces)
    if violations:
        return Finding(name, False, violations[0].reason)
    if not isinstance(promise, KAnonymity):
        return Finding(name, None, f"{promise.name} cannot be judged without linkage and originals")
    copies = np.bincount(patterns(release.faces))
    if promise.k > copies.min():
        return Finding(name, False, f"a released face has {copies.min()} copies, fewer than k = {promise.k}")
    good = release.certificate.figures.get("distinct_faces") == len(copies)
    return Finding(name, good, f"{len(copies)} distinct faces, each at least {promise.real} times")


def _method(certificate: Certificate, promise: PrivacyModel) -> Finding:
    try:
        again = rebuild_recipe(certificate)
    except InputError as error:
        return Finding("method", False, str(error))
    record = certificate.method
    coding = {**again.space.params(), **({"learned_on": LEARNED_ON} if "learned_on" in record.coding_params else {})}
    wrong = differences(record.params, again.params()) + differences(record.coding_params, coding)
    if not isinstance(promise, again.method.promised):
        wrong.append(f"{record.name} promises {again.method.promised.name}, not {promise.name}")
    elif isinstance(promise, KAnonymity):
        wrong += _too_few(certificate, promise) if certificate.series is None else []  # its weakest release counts
    else:
        shared = {n: v for n, v in promise.params().items() if record.params.get(n) is not None}
        wrong += differences({n: record.params[n] for n in shared}, shared)
    if record.labels is not None and "select" not in record.params:
        wrong.append("labels are said to be predicted, but none is kept")
    return check("method", wrong, f"{record.name} in {record.coding} coding promises {promise.name}")


def _too_few(certificate: Certificate, promise: KAnonymity) -> list[str]:
    """Return why a method cannot have given this k: fewer than asked for, which only one method may, and says so."""
    method, people = certificate.method, certificate.counts.subjects_released
    asked = method.params.get("k", 2)
    if not isinstance(asked, int):
        return [f"k = {asked} was asked of {method.name}, which is no number"]
    if "k" not in METHODS[method.name].parameters and "select" not in method.params and promise.k != people:
        return [f"{method.name} gives all {people} people one face, but k = {promise.k} is promised"]
    admitted = method.name == "k-same-furthest" and any(method.name in text for text in certificate.warnings)
    if promise.k < asked and not admitted:
        return [f"k = {asked} was asked of {method.name}, but k = {promise.k} is promised"]
    return []


def _figures(release: Release, promise: PrivacyModel) -> list[str]:
    figures, counts = release.certificate.figures, release.certificate.counts
    wrong = [f"{name} is no figure that ksame gives" for name in sorted(set(figures) - FIGURES)]
    wrong += [f"{name} is below zero" for name in sorted(figures) if figures[name] < 0]
    wrong += broken((figures.get("smallest_cluster", 2) >= 2, "smallest_cluster is below 2"))
    if isinstance(promise, KAnonymity):
        wrong += _group_figures(release, promise) + _label_figures(release.certificate)
    elif isinstance(promise, (ZeroRecognition, WrongMap)):
        wrong += broken((figures.get("smallest_margin", 1) > 0, "smallest_margin must be above zero"))
    elif isinstance(promise, EpsilonMap):
        fits = figures.get("above_epsilon", math.inf) <= promise.exceptions <= counts.released
        words = f"above_epsilon does not fit {promise.exceptions} exceptions among {counts.released} faces"
        wrong += broken((fits, words))
        wrong += differences({"weak_faces": figures.get("weak_faces")}, {"weak_faces": promise.exceptions})
    elif isinstance(promise, EpsilonKMap):
        limits = {"largest_epsilon": promise.epsilon, "largest_relative_gap": promise.gap}
        for name, limit in limits.items():
            reached = figures.get(name, math.inf)
            if limit is not None and reached > limit and not agree(reached, limit):
                wrong.append(f"{name} is above the {limit:g} that is promised")
    return wrong


def _label_figures(certificate: Certificate) -> list[str]:
    """Judge what a kept label tells; of a series it is not known, since the labels of who left are not."""
    names = ("smallest_label_diversity", "label_homogeneity", "label_by_chance")
    given = [name for name in names if name in certificate.figures]
    if certificate.series is not None or "select" not in certificate.method.params:
        return [f"{name} is given, but no label was measured" for name in given]
    if len(given) < len(names):
        return [f"{name} is missing" for name in names if name not in given]
    smallest, share, chance = (certificate.figures[name] for name in names)
    fits = isinstance(smallest, int) and smallest >= 1 and 0 < chance <= share <= 1
    return [] if fits else [f"labels cannot be {smallest} behind a face, {share:g} alike and {chance:g} by chance"]


def _group_figures(release: Release, promise: KAnonymity) -> list[str]:
    figures, counts = release.certificate.figures, release.certificate.counts
    copies = np.bincount(patterns(release.faces))
    missing = sorted({"smallest_group", "largest_group", "distinct_faces"} - set(figures))
    if missing:
        return [f"{name} is missing" for name in missing]
    smallest, largest = figures["smallest_group"], figures["largest_group"]
    if counts.released == counts.subjects_released:  # everybody has one copy, so copies are people
        actual = {"smallest_group": int(copies.min()), "largest_group": int(copies.max())}
        wrong = differences({name: figures[name] for name in actual}, actual)
    else:
        fits = smallest <= largest <= copies.max() and smallest <= copies.min()
        wrong = broken((fits, f"groups of {smallest} to {largest} people cannot have these copies"))
    mean = figures.get("mean_group", smallest)
    between = smallest <= mean <= largest or agree(mean, smallest) or agree(mean, largest)
    return wrong + broken(
        (smallest >= promise.k, f"smallest_group is {smallest}, fewer than the k = {promise.k} that is promised"),
        (between, f"mean_group is {mean}, but groups have {smallest} to {largest} people"),
    )


def check_linked_faces(release: Release, linkage: Linkage) -> list[Finding]:
    """Hold the certificate against the link table: whom each face stands for, and how many people there are."""
    try:
        promise = release.certificate.promise.rebuild()
    except InputError:  # found before
        return []
    names = [face.released for face in linkage.faces]
    if names != [face_name(i) for i in range(len(release.faces))]:
        return [Finding("linkage", False, "the link table does not list the released faces one by one")]
    counted = check("counts, from the link table", _miscounted(release.certificate, linkage), "as certified")
    if not isinstance(promise, KAnonymity):
        return [Finding("linkage", True, f"{len(names)} faces"), counted]
    evidence = Evidence.of_bytes(release.faces, [face.subject for face in linkage.faces])
    violations = promise.check(evidence)
    if violations:
        return [Finding("people behind each face", False, f"a face {violations[0].reason}")]
    whole = _groups_share_faces(release, linkage)
    measured = promise.measure(evidence)
    stated = {name: release.certificate.figures.get(name) for name in measured}
    return [
        Finding("people behind each face", True, f"at least {promise.real}"),
        Finding("groups", whole, "every group has faces of its own" if whole else "a face was moved to another group"),
        counted,
        check("figures, from the link table", differences(stated, measured), "as certified"),
    ]


def _miscounted(certificate: Certificate, linkage: Linkage) -> list[str]:
    """Return which counts a link table contradicts; of a series, newer pictures of people in it are not counted."""
    counts, before = certificate.counts, linkage.before()
    sources = [source for face in linkage.faces for source in face.sources]
    waiting = [face for face in linkage.withheld if before is None or face.subject not in before.people]
    counted = count_faces(linkage.faces, waiting)
    max_people, shown = counted.pop("subjects"), counted["subjects_released"]
    possible = shown <= counts.subjects <= max_people  # pictures that gave no face may be anybody's
    return [
        *broken((len(set(sources)) == len(sources), "an original is behind two faces")),
        *differences({name: getattr(counts, name) for name in counted}, counted),
        *broken((possible, f"{counts.subjects} people are certified, the link table has {shown}")),
        *_misplaced(certificate.series, linkage, before),
    ]


def _misplaced(stated: Series | None, linkage: Linkage, before: Linkage | None) -> list[str]:
    """Return where a release is not at the place in its series that the certificate names."""
    if linkage.history and linkage.history[-1].digest != linkage.release_digest:
        return ["the history of the link table ends with another release"]
    actual = None
    if before is not None:
        number = linkage.history[-1].number
        actual = Series(number=number, repeated=len(before.faces), after=before.release_digest)
    return [] if stated == actual else ["the link table tells of another series"]


def _groups_share_faces(release: Release, linkage: Linkage) -> bool:
    """Return whether every member of a group has the same released faces."""
    pattern = patterns(release.faces)
    faces: dict[tuple[int | None, str], list[int]] = {}
    for face, p in zip(linkage.faces, pattern, strict=True):
        faces.setdefault((face.group, face.subject), []).append(int(p))
    held = {(group, tuple(sorted(of_person))) for (group, _), of_person in faces.items()}
    return len(held) == len({group for group, _ in held})
