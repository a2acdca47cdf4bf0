"""The plan on disk: who becomes whom, so that a run that goes on does not decide again.

A judge may see things differently after an interruption: on another processor, or with another number of threads. Files
that were written before and after it must all the same show one face for one person.
"""

from __future__ import annotations

import io
import json
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ksame.errors import InputError
from ksame.files import write_atomic
from ksame.heads.covers import COVERS
from ksame.heads.drawing import Looks
from ksame.heads.surrogate import Surrogate
from ksame.scene.choosing import Choice, Judge
from ksame.scene.composing import Plan, Treatment

_VERSION = 1


def save_choice(choice: Choice, path: Path) -> None:
    """Keep a plan, readable by its owner only; it is there as a whole or not at all."""
    faces: list[Surrogate] = []
    for plan in choice.plans.values():
        if plan.surrogate is not None and all(plan.surrogate is not face for face in faces):
            faces.append(plan.surrogate)
    numbers = {id(face): number for number, face in enumerate(faces)}
    index = {
        "version": _VERSION,
        "plans": {
            name: [plan.treatment.value, numbers.get(id(plan.surrogate)), plan.cover.name, plan.stands_in]
            for name, plan in choice.plans.items()
        },
        "groups": dict(choice.groups),
        "likeness": dict(choice.likeness),
        "counted": dict(choice.counted),
        "judge": None if choice.judge is None else [choice.judge.name, choice.judge.threshold],
    }
    arrays: dict[str, Any] = {"index": np.frombuffer(json.dumps(index).encode(), dtype=np.uint8)}
    for number, face in enumerate(faces):
        arrays |= {f"shape{number}": face.looks.shape, f"texture{number}": face.looks.texture}
        arrays[f"rest{number}"] = np.array([*face.looks.iris, face.born, face.tone], dtype=np.float64)
    data = io.BytesIO()
    np.savez(data, **arrays)
    write_atomic(path, data.getvalue(), private=True)


def load_choice(path: Path) -> Choice:
    """Return the plan that was kept.

    Raises
    ------
    InputError
        When it is damaged.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            index = json.loads(stored["index"].tobytes())
            if index["version"] != _VERSION:
                raise ValueError(f"version {index['version']}, not {_VERSION}")
            return _choice(index, dict(stored))
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile, zlib.error) as error:
        raise InputError(
            f"{path}: who becomes whom cannot be read ({error}). Leave --resume out to begin anew."
        ) from error


def _choice(index: dict[str, Any], arrays: dict[str, Any]) -> Choice:
    faces: list[Surrogate] = []
    while f"shape{len(faces)}" in arrays:
        number = len(faces)
        *iris, born, tone = arrays[f"rest{number}"].tolist()
        red, green, blue = (int(value) for value in iris)
        looks = Looks(arrays[f"shape{number}"], arrays[f"texture{number}"], (red, green, blue))
        faces.append(Surrogate(looks, born, tone))
    plans = {
        name: Plan(Treatment(treatment), None if number is None else faces[number], COVERS[cover], bool(stands_in))
        for name, (treatment, number, cover, stands_in) in index["plans"].items()
    }
    judge = None if index["judge"] is None else Judge(*index["judge"])
    return Choice(plans, index["groups"], index["likeness"], index["counted"], judge)
