"""The stage that decides: from tracks and people to the plan of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from ksame.arrays import FloatArray
from ksame.errors import UsageError, whole_number
from ksame.heads.surrogate import modelled
from ksame.methods import Method, Problem
from ksame.models import Recogniser
from ksame.models.finisher import finisher
from ksame.progress import Progress, silent
from ksame.recipes import METHODS, for_scenes
from ksame.scene.decide.counting import distinct
from ksame.scene.decide.judge import Judge
from ksame.scene.decide.plan import Decision, JudgeRecord, Plan, Treatment, treatments
from ksame.scene.decide.subject import Subject
from ksame.scene.decide.surrogates import Group, MapBlocks, choose_surrogates, draw_again
from ksame.scene.decide.views import FileViews, subjects_of
from ksame.scene.track import People
from ksame.spaces.facemodel import face_model

if TYPE_CHECKING:
    from ksame.scene.config import JobConfig

SOMEONE_ELSE = "someone-else"
"""The method that is used where none is named."""
JUDGE = "sface"
"""The recogniser that judges, out of ``RECOGNISERS``."""
MAX_K = 1_000_000


def decide(
    views: Sequence[FileViews],
    people: People,
    config: JobConfig,
    seed: int,
    *,
    recogniser: Recogniser,
    executor: Executor,
    progress: Progress = silent,
    map_blocks: MapBlocks | None = None,
) -> Plan:
    """Decide what becomes of everyone in a batch.

    Parameters
    ----------
    views : sequence of FileViews
        What each file shows of everyone, see :func:`collect_views`; masks need none.
    people : People
        Who is who in these files.
    recogniser : Recogniser
        Judges.
    executor : Executor
        Judges pictures several at a time. The plan does not depend on the number of its threads.
    map_blocks : callable, optional
        Searches for surrogates in other processes: see :func:`choose_surrogates`.
    """
    wishes = treatments(
        people.ordered,
        keep=config.keep,
        only=config.only,
        mask=config.mask,
        unmatched=people.unmatched,
        unconfirmed=people.unconfirmed,
    )
    replaced = [name for name, wish in wishes.items() if wish is Treatment.REPLACE]
    without = sorted(set(config.another) - set(replaced))
    if without:
        known = ", ".join(replaced) or "nobody"
        raise UsageError(
            f"{', '.join(without)}: there is no new face that another could follow. Who gets one: {known}."
        )
    rng = np.random.default_rng(seed)
    if METHODS[config.method].masks:
        return make_plan(wishes, (), None, rng, config, executor)
    judge = Judge(recogniser, finisher(config.device), config.cover)
    return make_plan(wishes, subjects_of(views, people), judge, rng, config, executor, progress, map_blocks)


def check_method(method: str, k: int) -> None:
    """Refuse a method that scenes do not have, and a k that is none."""
    for_scenes(method)
    whole_number("k", method, k, 2, MAX_K)


def make_plan(
    wishes: Mapping[str, Treatment],
    subjects: Sequence[Subject],
    judge: Judge | None,
    rng: np.random.Generator,
    config: JobConfig,
    executor: Executor,
    progress: Progress = silent,
    map_blocks: MapBlocks | None = None,
) -> Plan:
    """Plan for everyone as they wish; the judge has the last word: whoever it recognises in a surrogate is masked.

    So is whoever is to be replaced and is not among the subjects, those with views. Masks need no judge.
    """
    entry = for_scenes(config.method)
    masked = Decision(Treatment.MASK, masked_instead=not entry.masks)
    decisions = {name: masked if wish is Treatment.REPLACE else Decision(wish) for name, wish in wishes.items()}
    people = [subject for subject in subjects if wishes[subject.name] is Treatment.REPLACE]
    if entry.masks or judge is None or not people:
        return Plan(decisions)
    if entry.scenes.judged:
        groups = choose_surrogates(
            people, config.k, judge, rng, executor, judged=config.judged, progress=progress, map_blocks=map_blocks
        )
        if config.another:
            groups = draw_again(groups, people, config.another, judge, rng, executor, judged=config.judged)
    else:
        groups = _grouped(entry.build(k=config.k, **entry.scenes.fixed), people, judge, rng, executor)
    for number, group in enumerate(groups):
        counts = distinct([people[i] for i in group.likeness], judge.recogniser.threshold)
        for i, likeness in group.likeness.items():
            name = people[i].name
            if likeness <= judge.limit or not config.judged:
                decisions[name] = Decision(
                    Treatment.REPLACE,
                    group.surrogate,
                    judge.cover,
                    group=number,
                    likeness=likeness,
                    counts_as=counts.get(name),
                )
    return Plan(decisions, JudgeRecord(judge.recogniser.name, judge.recogniser.threshold))


def _grouped(
    method: Method, people: Sequence[Subject], judge: Judge, rng: np.random.Generator, executor: Executor
) -> list[Group]:
    """Let a method of face sets group the people of each gender by their codes in the face model."""
    groups = []
    for woman in (False, True):
        members = [i for i, person in enumerate(people) if person.woman is woman]
        if not members:
            continue
        codes = _codes([people[i] for i in members], method.min_subjects, rng)
        outcome = method.run(Problem(codes, np.arange(len(codes)).astype(str)), rng)
        rows = {source: int(row) for row, copy in zip(outcome.rows, outcome.sources, strict=True) for source in copy}
        shared: dict[int, list[int]] = {}
        for number, person in enumerate(members):
            if number in rows:
                shared.setdefault(rows[number], []).append(person)
        for row, sharing in sorted(shared.items()):
            face = modelled(outcome.surrogates[row])
            likeness = executor.map(judge.likeness, [people[i] for i in sharing], repeat(face))
            groups.append(Group(face, dict(zip(sharing, likeness, strict=True))))
    return groups


def _codes(people: Sequence[Subject], min_rows: int, rng: np.random.Generator) -> FloatArray:
    """Return the codes of people, (n_rows, n_codes), filled up with people of the same kind who do not exist."""
    model = face_model()
    codes = [person.code for person in people]
    while len(codes) < min_rows:
        like = people[len(codes) % len(people)]
        middle = model.labelled({"woman": float(like.woman), "born": like.born, "tone": like.skin.brightness})
        codes.append(middle + model.spread @ rng.standard_normal(model.n_codes).clip(-2, 2))
    return np.stack(codes)
