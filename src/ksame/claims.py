"""What a certificate of faces claims, held against itself: method, promise, figures and checks must fit one another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ksame.errors import InputError, KsameError
from ksame.privacy.certificate import LEARNED_ON, Certificate, Check
from ksame.privacy.findings import Finding, check
from ksame.privacy.maps import EpsilonKMap, EpsilonMap, WrongMap, ZeroRecognition
from ksame.privacy.models import KAnonymity, PrivacyModel, patterns
from ksame.privacy.release import Release
from ksame.recipes import METHODS, Recipe, recipe

FIGURES = frozenset(
    (
        *("loss_sse", "mean_group", "smallest_group", "largest_group", "distinct_faces"),
        *("mean_cluster", "smallest_cluster", "pairs", "mean_level", "weak_faces", "mean_change"),
        *("smallest_label_diversity", "label_homogeneity", "label_by_chance"),
        *("smallest_margin", "above_epsilon", "largest_likelihood_met", "largest_epsilon", "largest_relative_gap"),
    )
)
"""Every figure that a certificate may give."""

_SIGNIFICANT = 2  # digits that certified numbers keep at least


def rebuild_recipe(certificate: Certificate) -> Recipe:
    """Return the recipe that a certificate names.

    Raises
    ------
    InputError
        When there is no such recipe.
    """
    record = certificate.method
    params = dict(record.params)
    components = params.pop("components", record.coding_params.get("n_components"))
    try:
        return recipe(record.name, coding=record.coding, components=components, **params)
    except (KsameError, TypeError, ValueError, ArithmeticError) as error:
        raise InputError(f"the certificate's method cannot be rebuilt: {error}") from error


def check_claims(release: Release, promise: PrivacyModel) -> list[Finding]:
    """Hold method, figures and checks against the promise, and against what lies in the folder."""
    certificate = release.certificate
    done = certificate.checks == (Check.of(promise, series=certificate.series is not None),)
    return [
        _method(certificate, promise),
        check("figures", _figures(release, promise), f"{len(certificate.figures)} as the faces allow"),
        Finding("checks", done, "as every release has" if done else "not those that every release has passed"),
    ]


def differences(stated: Any, actual: Any, where: str = "") -> list[str]:
    """Return where a certificate says something else than was found; rounded numbers agree.

    Examples
    --------
    >>> differences({"loss": 0.12, "people": 9}, {"loss": 0.1234, "people": 8})
    ['people: 9 certified, 8 found']
    """
    if isinstance(stated, Mapping) and isinstance(actual, Mapping):
        names = sorted({*stated, *actual}, key=str)
        inner = [(stated.get(n, "nothing"), actual.get(n, "nothing"), f"{where}.{n}".strip(".")) for n in names]
        return [line for one, other, place in inner for line in differences(one, other, place)]
    if agree(stated, actual):
        return []
    return [f"{where}: {_short(stated)} certified, {_short(actual)} found"]


def agree(stated: Any, actual: Any) -> bool:
    """Return whether a certified value is one that was found, or that one rounded to two significant digits or more.

    Examples
    --------
    >>> agree(0.12, 0.1234), agree(0.13, 0.1234), agree(0.2, 0.1234), agree(12, 13)
    (True, True, False, False)
    """
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (stated, actual))
    if not numbers:
        return type(stated) is type(actual) and stated == actual
    if stated == actual or actual == 0 or not math.isfinite(actual):
        return bool(stated == actual)
    unit = 10.0 ** (math.floor(math.log10(abs(actual))) + 1 - _SIGNIFICANT)
    if isinstance(actual, int) and unit <= 1:
        return False
    return bool(abs(stated - actual) <= unit * 1.001)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


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
    if isinstance(promise, KAnonymity):
        wrong += _group_figures(release, promise) + _label_figures(release.certificate)
    if isinstance(promise, (ZeroRecognition, WrongMap)) and not figures.get("smallest_margin", 1) > 0:
        wrong.append("smallest_margin must be above zero")
    if isinstance(promise, EpsilonMap):
        if not figures.get("above_epsilon", math.inf) <= promise.exceptions <= counts.released:
            wrong.append(f"above_epsilon does not fit {promise.exceptions} exceptions among {counts.released} faces")
        wrong += differences({"weak_faces": figures.get("weak_faces")}, {"weak_faces": promise.exceptions})
    if isinstance(promise, EpsilonKMap) and promise.epsilon is not None:
        reached = figures.get("largest_epsilon", math.inf)
        if reached > promise.epsilon and not agree(reached, promise.epsilon):
            wrong.append(f"largest_epsilon is above the {promise.epsilon:g} that is promised")
    if isinstance(promise, EpsilonKMap):
        gap = figures.get("largest_relative_gap", math.inf)
        if gap > promise.gap and not agree(gap, promise.gap):
            wrong.append(f"largest_relative_gap is above the {promise.gap:g} that is promised")
    if "smallest_cluster" in figures and figures["smallest_cluster"] < 2:
        wrong.append("smallest_cluster is below 2")
    return wrong


def _label_figures(certificate: Certificate) -> list[str]:
    """Judge what a kept label tells; of a series it is not known, since the labels of who left are not."""
    names = ("smallest_label_diversity", "label_homogeneity", "label_by_chance")
    given = [name for name in names if name in certificate.figures]
    if certificate.series is not None or "select" not in certificate.method.params:
        return [f"{name} is given, but no label was measured" for name in given]
    if len(given) < len(names):
        return [f"{name} is missing" for name in names if name not in given]
    least, share, chance = (certificate.figures[name] for name in names)
    fits = isinstance(least, int) and least >= 1 and 0 < chance <= share <= 1
    return [] if fits else [f"labels cannot be {least} behind a face, {share:g} alike and {chance:g} by chance"]


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
        wrong = [] if fits else [f"groups of {smallest} to {largest} people cannot have these copies"]
    if smallest < promise.k:
        wrong.append(f"smallest_group is {smallest}, fewer than the k = {promise.k} that is promised")
    mean = figures.get("mean_group", smallest)
    if not (smallest <= mean <= largest or agree(mean, smallest) or agree(mean, largest)):
        wrong.append(f"mean_group is {mean}, but groups have {smallest} to {largest} people")
    return wrong
