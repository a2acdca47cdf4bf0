"""From what was named on the command line to files to be read, and names for what is written."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from ksame.errors import InputError, OutputError, UsageError
from ksame.files import sha256_of

_OTHERS = (".mpg", ".mpeg", ".ts", ".mts", ".m2ts", ".3gp", ".3g2", ".flv", ".ogv", ".asf", ".heic", ".heif")
"""Suffixes of media that are read, or named as unreadable, but not written."""
_PHONES = (".heic", ".heif")
"""Photographs of telephones, which become JPEG."""
_LONGEST = 200
"""Bytes in the name of an output: with what is put before and after it for work in progress, most disks take 255."""


@dataclass(frozen=True)
class Found:
    """A file or a folder of frames to be read.

    Attributes
    ----------
    path : Path
    below : Path
        Its name below what was named on the command line.
    """

    path: Path
    below: Path


def gather(words: Sequence[str], *, frames: bool, output: Path | None = None) -> tuple[list[Found], bool]:
    """Find everything that was named.

    Parameters
    ----------
    words : sequence of str
        Files, folders, and patterns such as ``"clips/*.mp4"``.
    frames : bool
        Each folder is one recording in numbered pictures; otherwise it is searched for media.
    output : Path, optional
        What lies there or below is never read.

    Returns
    -------
    found : list of Found
        Ordered by a hash of their content: people have the same names, whatever the files are called. A secret, since
        whoever has the originals knows the order; :func:`places` numbers the outputs at random.
    many : bool
        Whether more than one thing might have been meant.
    """
    from ksame.scene.media.encoding import CONTAINERS, PICTURE_SUFFIXES

    suffixes = {*CONTAINERS, *PICTURE_SUFFIXES, *_OTHERS}
    found: dict[Path, Found] = {}
    many = len(words) > 1
    for word in words:
        paths = [Path(word)]
        if not paths[0].exists() and glob.has_magic(word):
            paths = [Path(match) for match in sorted(glob.glob(word, recursive=True))]  # noqa: PTH207 -- absolute too
            many = True
            if not paths:
                raise InputError(f"{word}: nothing has such a name.")
        for path in paths:
            if not path.is_dir() or frames:
                found.setdefault(path.resolve(), Found(path, Path(path.name)))
                continue
            many = True
            inside = [p for p in sorted(path.rglob("*")) if _is_media(p, path, suffixes)]
            if not inside:
                raise InputError(f"{path}: there are no photographs or recordings in the folder.")
            for each in inside:
                found.setdefault(each.resolve(), Found(each, each.relative_to(path)))
    own = None if output is None else output.resolve()
    kept = [one for place, one in found.items() if not (many and own is not None and place.is_relative_to(own))]
    if not kept:
        raise InputError("There is nothing to read.")
    return (sorted(kept, key=_content) if len(kept) > 1 else kept), many


def _is_media(path: Path, folder: Path, suffixes: set[str]) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return not hidden and path.suffix.lower() in suffixes and path.is_file()


def _content(one: Found) -> tuple[str, str]:
    files = sorted(p for p in one.path.iterdir() if p.is_file()) if one.path.is_dir() else [one.path]
    try:
        return (sha256_of(*files), str(one.path))
    except OSError:
        return ("", str(one.path))  # opening it will say why


@dataclass(frozen=True)
class Places:
    """Where everything is written.

    Attributes
    ----------
    destinations : list of Path
        In the order of what was found.
    folder : Path or None
        The folder made for them; None for a single output.
    certificate, at_risk, work : Path
    """

    destinations: list[Path]
    folder: Path | None
    certificate: Path
    at_risk: Path
    work: Path


def places(
    found: Sequence[Found],
    output: str,
    *,
    many: bool,
    keep_names: bool,
    container: str | None,
    codec: str | None = None,
    resume: bool = False,
) -> Places:
    """Name the outputs.

    One input gives one output of the name ``output``, unless that is a folder: it exists, ends in a slash, or has no
    suffix. In a folder outputs are numbered at random, or named as the inputs where ``keep_names`` is given; no two are
    ever the same. An interrupted run that is resumed keeps its numbers.
    """
    from ksame.privacy.release import CERTIFICATE
    from ksame.scene.certificate import AT_RISK, beside, certified
    from ksame.scene.media.encoding import FRAMES

    path = Path(output)
    if len(os.fsencode(path.name)) > _LONGEST:
        raise UsageError(f"{path}: the name is too long. Choose one of at most {_LONGEST} bytes.")
    if len(found) == 1 and _is_the_output(found[0].path, path, output, frames=codec in FRAMES, many=many):
        if container is not None and path.suffix.lower() != _dotted(container):
            raise UsageError(f"--container {container} contradicts the name {path.name}. Leave one of them out.")
        work = path.with_name(f".{path.name}.ksame-work")
        whole = bool(certified(beside(path, CERTIFICATE)) - {path.name})  # the short name belongs to another output
        return Places([path], None, beside(path, CERTIFICATE, whole=whole), beside(path, AT_RISK, whole=whole), work)
    if path.is_file():
        raise UsageError(f"{path} is a file, but there are several outputs. Name a folder.")
    if _names_a_file(path) and not output.endswith(("/", os.sep)) and not path.is_dir():
        raise UsageError(f"{path} is the name of one file, but there are {len(found)} outputs. Name a folder.")
    place = path.absolute()
    work = place.with_name(f".{place.name}.ksame-work")
    numbers = _numbers(work, len(found), resume=resume)
    taken: set[str] = {CERTIFICATE}
    destinations = []
    for number, one in zip(numbers, found, strict=True):
        suffix = suffix_for(one.path, container)
        name = _kept(one.below, suffix, taken) if keep_names else f"{number:06d}{suffix}"
        taken.add(name.casefold())
        destinations.append(path / name)
    return Places(destinations, path, path / CERTIFICATE, place.with_name(f"{place.name}.{AT_RISK}"), work)


def _numbers(work: Path, n: int, *, resume: bool) -> list[int]:
    """Draw the numbers of outputs: not from the seed, which can be guessed, nor from anything in the originals."""
    from ksame.scene.work import earlier_outputs

    earlier = [Path(name).stem for name in earlier_outputs(work)] if resume else []
    if len(earlier) == n and all(name.isdecimal() for name in earlier):
        return [int(name) for name in earlier]
    numbers = list(range(1, n + 1))
    SystemRandom().shuffle(numbers)
    return numbers


def _names_a_file(path: Path) -> bool:
    from ksame.scene.media.encoding import CONTAINERS, PICTURE_SUFFIXES

    return path.suffix.lower() in {*CONTAINERS, *PICTURE_SUFFIXES}


def _is_the_output(source: Path, path: Path, word: str, *, frames: bool, many: bool) -> bool:
    """Tell whether a name is that of the output itself, not of a folder for it."""
    if word.endswith(("/", os.sep)):
        return False
    if many:
        return _names_a_file(path) and not path.is_dir()
    if path.suffix or source.is_dir():
        return source.is_dir() or not path.is_dir()
    return frames and not path.exists() and not is_still(source)


def _kept(below: Path, suffix: str, taken: set[str]) -> str:
    stem = below.stem
    while len(os.fsencode(stem)) > _LONGEST - len(suffix) - len("-999999"):
        stem = stem[:-1]
    name, again = below.with_name(f"{stem}{suffix}").as_posix(), 1
    while name.casefold() in taken:
        again += 1
        name = below.with_name(f"{stem}-{again}{suffix}").as_posix()
    return name


def is_still(path: Path) -> bool:
    """Tell whether a file is a photograph; whatever cannot be read is none."""
    from ksame.scene.media.pictures import is_animation

    try:
        return not is_animation(path)
    except InputError:
        return False


def suffix_for(path: Path, container: str | None) -> str:
    """Return the suffix of the output for an input: its own where that can be written."""
    from ksame.scene.media.encoding import CONTAINERS, PICTURE_SUFFIXES

    suffix = path.suffix.lower()
    if path.is_dir():
        return "" if container is None else _dotted(container)
    if is_still(path):
        return suffix if suffix in PICTURE_SUFFIXES else ".jpg" if suffix in _PHONES else ".png"
    if container is not None:
        return _dotted(container)
    return suffix if suffix in CONTAINERS else ".mp4"


def _dotted(container: str) -> str:
    from ksame.scene.media.encoding import CONTAINERS

    suffix = f".{container.lower().removeprefix('.')}"
    if suffix not in CONTAINERS:
        raise UsageError(f"--container must be one of {', '.join(s[1:] for s in CONTAINERS)}. Got {container!r}.")
    return suffix


def make_folders(wanted: Places) -> list[Path]:
    """Make the folders of the outputs; return those that were not there, the deepest first."""
    if wanted.folder is None:
        return []
    made = []
    needed = {wanted.folder, *(destination.parent for destination in wanted.destinations)}
    for folder in sorted({p for one in needed for p in (one, *one.parents)}, key=lambda p: len(p.parts)):
        if not folder.exists():
            try:
                folder.mkdir()
            except OSError as error:
                raise OutputError(f"{folder}: cannot be made ({error.strerror}). Choose another place.") from error
            made.append(folder)
    return made[::-1]
