"""The folder for work in progress: whose work it is, the secret seed, and which files are finished."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ksame.errors import OutputError, UsageError
from ksame.files import hash_tree, read_json, write_json
from ksame.scene.at_risk import AtRisk, Shown

_STATE = "batch.json"
_ENDING = "ending"
_DONE = "done.json"


def can_resume(folder: Path) -> bool:
    """Tell whether an interrupted run left its work in a folder."""
    return (folder / _STATE).is_file()


def earlier_outputs(folder: Path) -> list[str]:
    """Return the names of the outputs of the run whose work is in a folder, in the order of its files."""
    names = read_json(folder / _STATE).get("outputs", ())
    return [str(name) for name in names]


@dataclass(frozen=True)
class Finished:
    """What is known of a file that was written before an interruption.

    Attributes
    ----------
    n_frames : int
    files : mapping of name to SHA-256
    at_risk : tuple of AtRisk
    losses : tuple of str
    shown : tuple of Shown
    """

    n_frames: int
    files: Mapping[str, str]
    at_risk: tuple[AtRisk, ...]
    losses: tuple[str, ...]
    shown: tuple[Shown, ...]


@dataclass(frozen=True)
class Work:
    """A folder for work in progress.

    Attributes
    ----------
    folder : Path
    seed : int
        Secret.
    """

    folder: Path
    seed: int

    @classmethod
    def begin(
        cls,
        folder: Path,
        fingerprints: Sequence[str],
        options: str,
        seed: int | None,
        *,
        outputs: Sequence[str] = (),
        resume: bool,
    ) -> Work:
        """Make the folder, or check that an earlier one is for the same.

        Parameters
        ----------
        fingerprints : sequence of str
            Of the files that are read.
        options : str
            A hash of everything else that decides the result.
        seed : int, optional
            Drawn at random by default.
        outputs : sequence of str
            Names, in the order of the files.
        """
        state: dict[str, Any] = {"fingerprints": list(fingerprints), "options": options}
        file = folder / _STATE
        if resume and can_resume(folder):
            old = read_json(file)
            if {name: old.get(name) for name in state} != state or (seed is not None and seed != old.get("seed")):
                raise UsageError(
                    f"{folder}: the interrupted run was with other files or options. Repeat its command with --resume, "
                    "or leave --resume out to begin anew."
                )
            return cls(folder, int(old["seed"]))
        shutil.rmtree(folder, ignore_errors=True)
        chosen = secrets.randbits(63) if seed is None else seed
        try:
            folder.mkdir(parents=True)
            folder.chmod(0o700)
            write_json(file, {**state, "seed": chosen, "outputs": list(outputs)}, private=True)
        except OSError as error:
            raise OutputError(
                f"{folder}: cannot be written ({error.strerror}). Make room, or choose another place for the output."
            ) from error
        return cls(folder, chosen)

    def place(self, number: int) -> Path:
        """Return the folder of one file of the batch."""
        return place(self.folder, number)

    def ending(self, number: int) -> None:
        """Note that an output is about to take its final name."""
        (self.place(number) / _ENDING).touch()

    def done(self, number: int, finished: Finished) -> None:
        """Note that an output has its final name."""
        write_json(self.place(number) / _DONE, asdict(finished))

    def finished(self, number: int, destination: Path) -> Finished | None:
        """Return what is known of an output that stands complete under its final name; None if it has to be written.

        An output that may or may not have got its name before the interruption is written again.
        """
        file = self.place(number) / _DONE
        if file.is_file():
            known = read_json(file)
            if known and hash_tree(destination) == known["files"]:
                risks = tuple(AtRisk(**one) for one in known["at_risk"])
                unchanged = tuple(Shown(**one) for one in known["shown"])
                return Finished(known["n_frames"], known["files"], risks, tuple(known["losses"]), unchanged)
            file.unlink()
        if destination.exists() and may_replace(self.folder, number):
            shutil.rmtree(self.place(number) / "out", ignore_errors=True)
        return None

    def remember(self, name: str, value: str) -> None:
        """Note a value that an interrupted run must find again unchanged."""
        file = self.folder / f"{name}.json"
        if file.is_file() and read_json(file).get(name) != value:
            raise UsageError(
                f"The {name} were changed since the run was interrupted. Leave --resume out to begin anew with them."
            )
        write_json(file, {name: value})

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def place(folder: Path, number: int) -> Path:
    """Return the folder of one file of the batch."""
    return folder / f"{number:06d}"


def may_replace(folder: Path, number: int) -> bool:
    """Tell whether what stands under an output's name may be there because of the interrupted run itself."""
    return (place(folder, number) / _ENDING).is_file()
