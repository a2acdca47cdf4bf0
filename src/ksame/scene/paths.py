"""Which files are read, and what the outputs are called."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from ksame.errors import InputError, OutputError, UsageError
from ksame.files import hash_tree
from ksame.pictures import PICTURE_SUFFIXES
from ksame.privacy.release import CERTIFICATE
from ksame.scene.certificate import AT_RISK, beside, certified
from ksame.scene.media.encoding import CONTAINERS, SEQUENCE_CODECS
from ksame.scene.media.images import is_animation
from ksame.scene.store import earlier_outputs

_PHONE_PHOTOS = (".heic", ".heif")
"""Become JPEG."""
_READ_ONLY = (".mpg", ".mpeg", ".ts", ".mts", ".m2ts", ".3gp", ".3g2", ".flv", ".ogv", ".asf", *_PHONE_PHOTOS)
"""Suffixes of media that are read, or named as unreadable, but not written."""
MEDIA_SUFFIXES = (*PICTURE_SUFFIXES, *CONTAINERS, *_READ_ONLY)
"""What is read of a folder."""
_MAX_NAME = 200
"""Bytes in the name of an output. Most disks take 255; names of work in progress are a little longer."""


@dataclass(frozen=True)
class Input:
    """A file, or a folder of frames, to be read."""

    path: Path
    relative: Path  # its path below the folder that was given


@dataclass(frozen=True)
class Inputs:
    """What is to be read."""

    # In the order of a hash of their content: people get the same names, whatever the files are called. The order is
    # secret, since whoever has the originals knows it; :func:`output_paths` numbers the outputs at random.
    files: tuple[Input, ...]
    many: bool  # whether a folder, a pattern or several files were given, so that several outputs are expected


@dataclass(frozen=True)
class OutputPaths:
    """Where everything is written."""

    outputs: tuple[Path, ...]  # in the order of the inputs
    folder: Path | None  # the folder made for them; None for a single output
    certificate: Path
    at_risk: Path
    work: Path

    def make_folders(self) -> list[Path]:
        """Make the folders of the outputs; return those that were not there, the deepest first."""
        if self.folder is None:
            return []
        needed = {self.folder, *(output.parent for output in self.outputs)}
        made = []
        for folder in sorted({p for path in needed for p in (path, *path.parents)}, key=lambda p: len(p.parts)):
            if not folder.exists():
                try:
                    folder.mkdir()
                except OSError as error:
                    raise OutputError(f"{folder}: cannot be made ({error.strerror}). Choose another place.") from error
                made.append(folder)
        return made[::-1]


def require_folder(path: Path) -> None:
    """Refuse a path in a folder that does not exist."""
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist. Make it first.")


def find_inputs(paths: Sequence[str | Path], *, frames: bool = False, output: Path | None = None) -> Inputs:
    """Find all photographs and recordings.

    ``paths``: files, folders, and patterns such as ``"clips/*.mp4"``. ``frames``: each folder is one recording in
    numbered pictures; otherwise it is searched for media. ``output``: what lies there or below is never read.
    """
    inputs: dict[Path, Input] = {}
    many = len(paths) > 1
    for text in map(str, paths):
        matches = [Path(text)]
        if not matches[0].exists() and glob.has_magic(text):
            matches = [Path(match) for match in sorted(glob.glob(text, recursive=True))]  # noqa: PTH207 -- absolute too
            many = True
            if not matches:
                raise InputError(f"{text}: no file has such a name.")
        for path in matches:
            if not path.is_dir() or frames:
                inputs.setdefault(path.resolve(), Input(path, Path(path.name)))
                continue
            many = True
            inside = [file for file in sorted(path.rglob("*")) if _is_media(file, path)]
            if not inside:
                raise InputError(f"{path}: there are no photographs or recordings in the folder.")
            for file in inside:
                inputs.setdefault(file.resolve(), Input(file, file.relative_to(path)))
    own = None if output is None else output.resolve()
    files = [item for place, item in inputs.items() if not (many and own is not None and place.is_relative_to(own))]
    if not files:
        raise InputError("There is nothing to read.")
    return Inputs(tuple(sorted(files, key=_content) if len(files) > 1 else files), many)


def output_paths(
    inputs: Inputs,
    output: str | Path,
    *,
    keep_names: bool = False,
    container: str | None = None,
    codec: str | None = None,
    resume: bool = False,
) -> OutputPaths:
    """Name the outputs.

    One input gives one output of the name ``output``, unless that is a folder: it exists, ends in a slash, or has no
    suffix. In a folder outputs are numbered at random, or named as the inputs where ``keep_names`` is given; no two are
    ever the same. An interrupted run that is resumed keeps its numbers.
    """
    text, path, files = str(output), Path(output), inputs.files
    if len(os.fsencode(path.name)) > _MAX_NAME:
        raise UsageError(f"{path}: the name is too long. Choose one of at most {_MAX_NAME} bytes.")
    is_folder = text.endswith(("/", os.sep))
    if (
        len(files) == 1
        and not is_folder
        and _is_output(files[0].path, path, frames=codec in SEQUENCE_CODECS, many=inputs.many)
    ):
        if container is not None and path.suffix.lower() != _suffix_of(container):
            raise UsageError(f"--container {container} contradicts the name {path.name}. Leave one of them out.")
        whole = bool(certified(beside(path, CERTIFICATE)) - {path.name})  # the short name belongs to another output
        certificate, at_risk = (beside(path, name, whole=whole) for name in (CERTIFICATE, AT_RISK))
        return OutputPaths((path,), None, certificate, at_risk, path.with_name(f".{path.name}.ksame-work"))
    if path.is_file():
        raise UsageError(f"{path} is a file, but there are several outputs. Name a folder.")
    if _names_file(path) and not is_folder and not path.is_dir():
        raise UsageError(f"{path} is the name of one file, but there are {len(files)} outputs. Name a folder.")
    place = path.absolute()
    work = place.with_name(f".{place.name}.ksame-work")
    taken: set[str] = {CERTIFICATE}
    outputs = []
    for number, item in zip(_numbers(work, len(files), resume=resume), files, strict=True):
        suffix = _suffix_for(item.path, container)
        name = _same_name(item.relative, suffix, taken) if keep_names else f"{number:06d}{suffix}"
        taken.add(name.casefold())
        outputs.append(path / name)
    return OutputPaths(tuple(outputs), path, path / CERTIFICATE, place.with_name(f"{place.name}.{AT_RISK}"), work)


def _is_media(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return not hidden and path.suffix.lower() in MEDIA_SUFFIXES and path.is_file()


def _content(item: Input) -> tuple[str, str]:
    try:
        hashes = hash_tree(item.path)
    except OSError:
        return ("", str(item.path))  # opening it will say why
    return ("".join(hashes.values()), str(item.path))


def _numbers(work: Path, n: int, *, resume: bool) -> list[int]:
    """Draw the numbers of outputs: not from the seed, which can be guessed, nor from anything in the originals."""
    earlier = [Path(name).stem for name in earlier_outputs(work)] if resume else []
    if len(earlier) == n and all(name.isdecimal() for name in earlier):
        return [int(name) for name in earlier]
    numbers = list(range(1, n + 1))
    SystemRandom().shuffle(numbers)
    return numbers


def _names_file(path: Path) -> bool:
    return path.suffix.lower() in {*CONTAINERS, *PICTURE_SUFFIXES}


def _is_output(source: Path, path: Path, *, frames: bool, many: bool) -> bool:
    """Tell whether a path is that of the output itself, not of a folder for it."""
    if many:
        return _names_file(path) and not path.is_dir()
    if path.suffix or source.is_dir():
        return source.is_dir() or not path.is_dir()
    return frames and not path.exists() and not _is_photograph(source)


def _same_name(relative: Path, suffix: str, taken: set[str]) -> str:
    """Return the name of an input with another suffix, numbered where it is taken and cut where it is too long."""
    stem = relative.stem
    while len(os.fsencode(stem)) > _MAX_NAME - len(suffix) - len("-999999"):
        stem = stem[:-1]
    name, number = relative.with_name(f"{stem}{suffix}").as_posix(), 1
    while name.casefold() in taken:
        number += 1
        name = relative.with_name(f"{stem}-{number}{suffix}").as_posix()
    return name


def _is_photograph(path: Path) -> bool:
    try:
        return not is_animation(path)
    except InputError:
        return False


def _suffix_for(path: Path, container: str | None) -> str:
    """Return the suffix of the output for an input: its own where that can be written."""
    suffix = path.suffix.lower()
    if path.is_dir():
        return "" if container is None else _suffix_of(container)
    if _is_photograph(path):
        return suffix if suffix in PICTURE_SUFFIXES else ".jpg" if suffix in _PHONE_PHOTOS else ".png"
    if container is not None:
        return _suffix_of(container)
    return suffix if suffix in CONTAINERS else ".mp4"


def _suffix_of(container: str) -> str:
    suffix = f".{container.lower().removeprefix('.')}"
    if suffix not in CONTAINERS:
        raise UsageError(f"--container must be one of {', '.join(s[1:] for s in CONTAINERS)}. Got {container!r}.")
    return suffix
