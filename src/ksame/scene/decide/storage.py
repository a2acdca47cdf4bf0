"""The plan on disk: who becomes whom, so that a run that goes on does not decide again.

A judge may see things differently after an interruption: on another processor, or with another number of threads. Files
that were written before and after it must all the same show one face for one person.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import astuple
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ksame.arrays import READING
from ksame.errors import InputError
from ksame.files import open_atomic
from ksame.heads.covers import COVERS
from ksame.heads.drawing import Looks
from ksame.heads.surrogate import Skin, Surrogate
from ksame.scene.decide.plan import Decision, JudgeRecord, Plan, Treatment

_VERSION = 4


def save_plan(plan: Plan, path: Path) -> None:
    """Keep a plan, readable by its owner only; it is there as a whole or not at all."""
    faces = {id(d.surrogate): d.surrogate for d in plan.decisions.values() if d.surrogate is not None}
    numbers = {key: number for number, key in enumerate(faces)}
    decisions = {
        name: [
            d.treatment.value,
            numbers.get(id(d.surrogate)),
            d.cover.name,
            d.masked_instead,
            d.group,
            d.likeness,
            d.counts_as,
        ]
        for name, d in plan.decisions.items()
    }
    judge = None if plan.judge is None else astuple(plan.judge)
    index = json.dumps({"version": _VERSION, "decisions": decisions, "judge": judge})
    arrays: dict[str, Any] = {"index": np.frombuffer(index.encode(), dtype=np.uint8)}
    for number, face in enumerate(faces.values()):
        arrays |= {f"shape{number}": face.looks.shape, f"texture{number}": face.looks.texture}
        arrays[f"other{number}"] = np.array([*face.looks.iris, face.born, *face.skin], dtype=np.float64)
    with open_atomic(path, private=True) as stream:
        np.savez(stream, **arrays)


def load_plan(path: Path) -> Plan:
    """Return the plan that was kept; an InputError says that it is damaged."""
    try:
        with READING, path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            index = json.loads(stored["index"].tobytes())
            if index["version"] != _VERSION:
                raise ValueError(f"version {index['version']}, not {_VERSION}")
            return _plan_of(index, dict(stored))
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile, zlib.error) as error:
        raise InputError(
            f"{path}: who becomes whom cannot be read ({error}). Leave --resume out to begin anew."
        ) from error


def _plan_of(index: dict[str, Any], arrays: dict[str, Any]) -> Plan:
    faces: list[Surrogate | None] = []
    while f"shape{len(faces)}" in arrays:
        number = len(faces)
        *iris, born, brightness, tone = arrays[f"other{number}"].tolist()
        red, green, blue = (int(value) for value in iris)
        looks = Looks(arrays[f"shape{number}"], arrays[f"texture{number}"], (red, green, blue))
        faces.append(Surrogate(looks, born, Skin(brightness, tone)))
    decisions = {
        name: Decision(Treatment(treatment), None if number is None else faces[number], COVERS[cover], *others)
        for name, (treatment, number, cover, *others) in index["decisions"].items()
    }
    return Plan(decisions, None if index["judge"] is None else JudgeRecord(*index["judge"]))
