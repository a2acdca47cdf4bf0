"""The store of work in progress: what every stage made, and a hash of what it was made from. The store is resume.

A job's folder holds ``job.json`` (which inputs, which settings, the secret seed) and one folder per stage and file,
such as ``01-tracks/000003``. A stage's value counts only if ``stage.json``, which is written last, has the key of what
it would be made from now.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ksame.errors import OutputError, UsageError
from ksame.files import read_json, write_json

TRACKS, VIEWS, PLAN, KEYS, OUTPUT, FAILED = "01-tracks", "02-views", "02-plan", "02-keys", "03-output", "failed"
_JOB, _STAGE, _RENAMING = "job.json", "stage.json", "renaming"


def key_of(*parts: object) -> str:
    """Return a hash of everything that a value is made from."""
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def can_resume(folder: Path) -> bool:
    """Tell whether an interrupted job left its work in a folder."""
    return (folder / _JOB).is_file()


def earlier_outputs(folder: Path) -> list[str]:
    """Return the names of the outputs of the job whose work is in a folder, in the order of its inputs."""
    return [str(name) for name in read_json(folder / _JOB).get("outputs", ())]


@dataclass(frozen=True)
class Store:
    """A folder for work in progress."""

    folder: Path
    seed: int  # secret

    @classmethod
    def begin(
        cls, folder: Path, inputs: Sequence[str], key: str, seed: int | None, *, outputs: Sequence[str], resume: bool
    ) -> Store:
        """Make the folder, or check that an earlier one is for the same job; else nothing in it counts any more.

        ``inputs`` are hashes of the files that are read, ``outputs`` names in their order, and ``key`` a hash of
        everything else that decides the result. The seed is drawn at random by default.
        """
        folder = folder.absolute()  # workers may be elsewhere
        job: dict[str, Any] = {"inputs": list(inputs), "key": key}
        if resume and can_resume(folder):
            earlier = read_json(folder / _JOB)
            same_seed = seed is None or seed == earlier.get("seed")
            if {name: earlier.get(name) for name in job} != job or not same_seed:
                raise UsageError(
                    f"{folder}: the interrupted run was with other files or options. Repeat its command with --resume, "
                    "or leave --resume out to begin anew."
                )
            return cls(folder, int(earlier["seed"]))
        shutil.rmtree(folder, ignore_errors=True)
        seed = secrets.randbits(63) if seed is None else seed
        try:
            folder.mkdir(parents=True)
            folder.chmod(0o700)
        except OSError as error:
            raise OutputError(
                f"{folder}: cannot be written ({error.strerror}). Make room, or choose another place for the output."
            ) from error
        write_json(folder / _JOB, {**job, "seed": seed, "outputs": list(outputs)}, private=True)
        return cls(folder, seed)

    def place(self, stage: str, number: int = 0) -> Path:
        """Return the folder of one stage and file; it is made where it is not there."""
        folder = self.folder / stage / f"{number:06d}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def value(self, stage: str, number: int, key: str) -> dict[str, Any] | None:
        """Return what was noted with a finished value; None if it has to be made, or made from something else."""
        noted = read_json(self.folder / stage / f"{number:06d}" / _STAGE)
        return noted["note"] if noted.get("key") == key else None

    def finish(self, stage: str, number: int, key: str, note: Mapping[str, Any] | None = None) -> None:
        """Note that the value of a stage is complete, and what it was made from."""
        write_json(self.place(stage, number) / _STAGE, {"key": key, "note": dict(note or {})}, private=True)

    def renaming(self, number: int) -> None:
        """Note that an output is about to get its final name."""
        (self.place(OUTPUT, number) / _RENAMING).touch()

    def may_replace(self, number: int) -> bool:
        """Tell whether what stands under an output's name may be there because of this job itself."""
        return (self.folder / OUTPUT / f"{number:06d}" / _RENAMING).is_file()

    def note_failed(self, number: int, reason: str) -> None:
        """Note that nothing could be made of a file."""
        self.finish(FAILED, number, "", {"reason": reason})

    def noted(self, stage: str, number: int) -> dict[str, Any] | None:
        """Return what was noted of a file last, whatever it was made from; None where nothing was."""
        note = read_json(self.folder / stage / f"{number:06d}" / _STAGE).get("note")
        return note if isinstance(note, dict) else None

    def expect(self, name: str, value: str) -> None:
        """Refuse to go on where a value, such as the hash of edited tracks, is not that of the interrupted run."""
        file = self.folder / f"{name}.json"
        if file.is_file() and read_json(file).get(name) != value:
            raise UsageError(
                f"The {name} were changed since the run was interrupted. Leave --resume out to begin anew with them."
            )
        write_json(file, {name: value}, private=True)

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
