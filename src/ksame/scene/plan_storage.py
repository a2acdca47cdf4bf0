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
from ksame.heads.drawing import Looks
from ksame.heads.head import Cover
from ksame.heads.surrogate import Surrogate
from ksame.scene.choosing import Choice, Judge
from ksame.scene.composing import Plan, Treatment

_VERSION = 1


def save_choice(choice: Choice, path: Path, key: str) -> None:
    """Keep a plan, readable by its owner only; it is there as a whole or not at all.

    Parameters
    ----------
    key : str
        A hash of everything that it was decided from.
    """
    faces: list[Surrogate] = []
    for plan in choice.plans.values():
        if plan.surrogate is not None and all(plan.surrogate is not face for face in faces):
            faces.append(plan.surrogate)
    numbers = {id(face): number for number, face in enumerate(faces)}
    index = {
        "version": _VERSION,
        "key": key,
        "plans": {
            name: [plan.treatment.value, numbers.get(id(plan.surrogate)), plan.cover.value, plan.stands_in]
            for name, plan in choice.plans.items()
        },
        "groups": dict(choice.groups),
        "likeness": dict(choice.likeness),
        "counted": dict(choice.counted),
        "judge": None if choice.judge is None else [choice.judge.name, choice.judge.threshold],
        "shared": choice.shared,
    }
    arrays: dict[str, Any] = {"index": np.frombuffer(json.dumps(index).encode(), dtype=np.uint8)}
    for number, face in enumerate(faces):
        arrays |= {f"shape{number}": face.looks.shape, f"texture{number}": face.looks.texture}
        arrays[f"rest{number}"] = np.array([*face.looks.iris, face.born, face.tone], dtype=np.float64)
    data = io.BytesIO()
    np.savez(data, **arrays)
    write_atomic(path, data.getvalue(), private=True)


def load_choice(path: Path, key: str) -> Choice | None:
    """Return the plan that was kept; None where none was.

    Raises
    ------
    InputError
        When it is damaged, or was decided from something else.
    """
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            index = json.loads(stored["index"].tobytes())
            if (index["version"], index["key"]) != (_VERSION, key):
                raise ValueError("it was made for other files, tracks or options")
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
        name: Plan(Treatment(treatment), None if number is None else faces[number], Cover(cover), bool(stands_in))
        for name, (treatment, number, cover, stands_in) in index["plans"].items()
    }
    judge = None if index["judge"] is None else Judge(*index["judge"])
    return Choice(plans, index["groups"], index["likeness"], index["counted"], judge, bool(index["shared"]))
