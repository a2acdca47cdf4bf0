"""k-Same-Select: keep people of different labels apart (Gross et al. 2005, Algorithm 4.2)."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np

from ksame.arrays import IntArray
from ksame.errors import InputError, KsameWarning, TooFewError, UsageError
from ksame.methods.base import Method, Outcome, Problem
from ksame.parameters import Parameters, parameter
from ksame.privacy.models import PrivacyModel
from ksame.progress import Progress, silent


@dataclass(frozen=True)
class Select(Parameters):
    """Run a method on every class of a label by itself.

    A label that varies within a subject, such as expression, cannot split people into classes: two groupings of the
    same people could be intersected. k-Same then groups people once and releases one face for each group and label.

    Classes with too few people are an error that names them; or all of them become one, with the smallest large class
    if that is still too small; or they are withheld.
    """

    inner: Method
    label: str  # its name, for messages and the certificate
    small_classes: Literal["error", "merge", "drop"] = parameter(
        "error", "what becomes of classes with fewer people than the method needs", choices=("error", "merge", "drop")
    )

    selectable = False
    aligns = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.inner.selectable:
            raise UsageError(
                f"--select keeps apart people who would share a face, but {self.inner.name} alters every face by "
                "itself. Leave --select out."
            )

    @property
    def name(self) -> str:
        """The inner name with "select"."""
        return f"{self.inner.name}-select"

    @property
    def promised(self) -> type[PrivacyModel]:
        """What the inner method promises."""
        return self.inner.promised

    def params(self) -> dict[str, Any]:
        """Return the inner parameters, the label and the rule for small classes."""
        return {**self.inner.params(), "select": self.label, "small_classes": self.small_classes}

    @property
    def min_subjects(self) -> int:
        """As many as the inner method needs."""
        return self.inner.min_subjects

    def run(self, problem: Problem, rng: np.random.Generator, progress: Progress = silent) -> Outcome:
        """Split by class, run the inner method on each, and put the outcomes together."""
        if problem.strata is None:
            raise UsageError("Select needs labels.")
        unlabelled = np.flatnonzero(problem.strata == "")
        if len(unlabelled):
            raise InputError(
                f"{len(unlabelled)} of {len(problem)} images carry no label {self.label!r}. Label or remove them."
            )
        varying = _varying(problem)
        if varying:
            if self.inner.aligns:
                outcome = self.inner.run(problem, rng, progress)
                self._tell_aligned(problem, varying, len(outcome.withheld))
                return outcome
            raise InputError(
                f"The label {self.label!r} varies within a subject, and {self.inner.name} cannot align several images "
                "of one person. Use a k-Same method, or a label that is the same in all images of a person."
            )
        classes, withheld, notes = self._classes(problem)
        outcomes = [self.inner.run(problem.take(rows), rng, progress) for rows in classes]
        return _together(outcomes, classes, withheld, notes)

    def _tell_aligned(self, problem: Problem, varying: dict[str, list[str]], withheld: int) -> None:
        """Warn where images were aligned by a label that ought to belong to people, or by a mistyped one."""
        hints, people = _hints(problem), len(np.unique(problem.subjects))
        if not (hints or withheld or 2 * len(varying) < people):
            return
        somebody, labels = next(iter(varying.items()))
        lost = f" {withheld} of {len(problem)} images are withheld: not everybody in their group has their label."
        warnings.warn(
            f"The label {self.label!r} varies within {len(varying)} of {people} people (for instance {somebody}: "
            f"{', '.join(map(repr, labels))}), so it does not keep people apart: they are grouped whatever it says, "
            f"and each group gets one face for each label.{lost if withheld else ''}{hints}",
            KsameWarning,
            stacklevel=4,
        )

    def _classes(self, problem: Problem) -> tuple[list[IntArray], dict[int, str], tuple[str, ...]]:
        assert problem.strata is not None  # noqa: S101 -- checked by run
        need = self.inner.min_subjects
        rows = {str(v): np.flatnonzero(problem.strata == v) for v in np.unique(problem.strata)}
        people = {v: len(np.unique(problem.subjects[r])) for v, r in rows.items()}
        small = [v for v in rows if people[v] < need]
        if not small:
            return list(rows.values()), {}, ()
        listed = ", ".join(f"{v!r} ({people[v]} people)" for v in small)
        hints = _hints(problem)
        if self.small_classes == "error":
            raise UsageError(
                f"Classes of {self.label!r} with fewer than the {need} people that {self.inner.name} needs: "
                f"{listed}. Lower k, or choose --small-classes merge or drop.{hints}"
            )
        if hints:
            warnings.warn(f"Label {self.label!r}:{hints}", KsameWarning, stacklevel=4)
        large = [v for v in rows if v not in small]
        if self.small_classes == "drop":
            if not large:
                raise TooFewError(
                    f"No class of {self.label!r} has the {need} people that {self.inner.name} needs: {listed}."
                )
            reason = f"its class of {self.label!r} has fewer than {need} people"
            return [rows[v] for v in large], {int(i): reason for v in small for i in rows[v]}, ()
        pool = small
        if sum(people[v] for v in small) < need:
            if not large:
                raise TooFewError(f"All classes of {self.label!r} together have fewer than {need} people: {listed}.")
            nearest = min(large, key=lambda v: people[v])
            pool = [*small, nearest]
            large.remove(nearest)
        merged = np.sort(np.concatenate([rows[v] for v in pool]))
        note = f"Select merged {len(pool)} classes of {self.label!r}; the label is not kept for their people."
        return [*(rows[v] for v in large), merged], {}, (note,)


def _varying(problem: Problem) -> dict[str, list[str]]:
    """Return the people whose images do not all have one label, with their labels."""
    assert problem.strata is not None  # noqa: S101 -- checked by run
    held: dict[str, set[str]] = {}
    for subject, label in zip(problem.subjects, problem.strata, strict=True):
        held.setdefault(str(subject), set()).add(str(label))
    return {subject: sorted(labels) for subject, labels in held.items() if len(labels) > 1}


def _hints(problem: Problem) -> str:
    """Return which labels may be mistyped: those spelt nearly like another that is ten times as frequent."""
    assert problem.strata is not None  # noqa: S101 -- checked by run
    counts = Counter(str(label) for label in problem.strata)
    hints = ""
    for label, count in counts.items():
        common = {other.casefold().strip(): other for other in counts if counts[other] >= 10 * count}
        times = "once" if count == 1 else f"{count} times"
        for near in get_close_matches(label.casefold().strip(), common, n=1, cutoff=0.6):
            hints += f" {label!r} occurs {times}: perhaps {common[near]!r} was meant."
    return hints


def _together(
    outcomes: list[Outcome], classes: list[IntArray], withheld: dict[int, str], notes: tuple[str, ...]
) -> Outcome:
    """Concatenate outcomes, with rows, groups and sources counted on; the weakest promise holds for all."""
    rows, groups, sources = [], [], []
    row_offset = group_offset = 0
    for outcome, index in zip(outcomes, classes, strict=True):
        rows.append(outcome.rows + row_offset)
        row_offset += len(outcome.surrogates)
        if outcome.groups is not None:
            groups.append(outcome.groups + group_offset)
            group_offset += int(outcome.groups.max()) + 1
        sources += [[int(index[i]) for i in source] for source in outcome.sources]
        withheld = {**withheld, **{int(index[i]): reason for i, reason in outcome.withheld.items()}}
    names = set.intersection(*(set(o.figures) for o in outcomes))
    figures = {name: _combine(name, outcomes) for name in sorted(names)}
    secrets = {name: [v for o in outcomes for v in o.secrets[name]] for name in outcomes[0].secrets}
    return Outcome(
        np.concatenate([o.surrogates for o in outcomes]),
        np.concatenate(rows),
        sources,
        max((o.promise for o in outcomes), key=lambda p: p.risk_bound().value or 0.0),
        np.concatenate(groups) if len(groups) == len(outcomes) else None,
        withheld,
        figures,
        secrets,
        (*notes, *(w for o in outcomes for w in o.warnings)),
    )


def _combine(name: str, outcomes: list[Outcome]) -> float:
    values = [o.figures[name] for o in outcomes]
    if name.startswith("mean_"):
        copies = [len(o.rows) for o in outcomes]
        return sum(v * n for v, n in zip(values, copies, strict=True)) / sum(copies)
    return min(values) if name.startswith("smallest_") else sum(values)
