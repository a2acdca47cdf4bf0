"""Folders of well-known face data sets: who is in each picture, and what it shows."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ksame.errors import InputError, KsameWarning, UsageError
from ksame.faces.folder import list_entries
from ksame.faces.reading import SUFFIXES


@dataclass(frozen=True)
class Picture:
    """A picture of a data set; labels are empty where the data set does not say."""

    path: Path
    subject: str
    gender: str = ""
    expression: str = ""
    illumination: str = ""


Layout = Callable[[Path], list[Picture]]

_FERET = re.compile(r"^(\d{5})_\d{6}_(f[ab])(?:_[a-z])?$")  # the colour edition
_FERET_GREY = re.compile(r"^(\d{5})(f[ab])\d{3}[a-z]?_\d{6}[a-z]?$")
_MULTI_PIE = re.compile(r"^(\d{3})_(\d{2})_(\d{2})_(\d{2})(\d)_(\d{2})$")
_IMM = re.compile(r"^(\d{2})-(\d)([mf])$")
_ORL = re.compile(r"^s(\d+)$")
_LFW = re.compile(r"^(.+)_(\d{4})$")

# Multi-PIE: what is asked for in each session's recordings (Gross et al. 2008, Table 1).
_RECORDINGS = {
    ("01", "01"): "neutral", ("01", "02"): "smile",
    ("02", "01"): "neutral", ("02", "02"): "surprise", ("02", "03"): "squint",
    ("03", "01"): "neutral", ("03", "02"): "smile", ("03", "03"): "disgust",
    ("04", "01"): "neutral", ("04", "02"): "surprise",
}  # fmt: skip
_FRONTAL_CAMERA = ("05", "1")
_FRONTAL_FLASH = "07"

# IMM: the six pictures of everybody; turned heads are left out.
_IMM_SHOTS = {"1": ("neutral", "flat"), "2": ("smile", "flat"), "5": ("neutral", "spot")}


def find_pictures(folder: Path, layout: str = "auto") -> tuple[str, list[Picture]]:
    """Return the layout of a data set, and its frontal pictures sorted by person.

    ``layout``: a key of :data:`LAYOUTS`; ``auto`` takes the first that fits.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder.")
    if layout != "auto" and layout not in LAYOUTS:
        raise UsageError(f"There is no layout {layout!r}. Choose auto or one of: {', '.join(LAYOUTS)}.")
    for name in LAYOUTS if layout == "auto" else (layout,):
        if pictures := LAYOUTS[name](folder):
            return name, pictures
    packed = next(folder.rglob("*.bz2"), None)
    hint = " Its pictures are packed; unpack them with bunzip2 first." if packed else ""
    raise InputError(f"{folder}: no pictures in the layout {layout!r} found.{hint} docs/papers.md shows each layout.")


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())


def _matched(folder: Path, *patterns: re.Pattern[str]) -> list[tuple[Path, tuple[str, ...]]]:
    """Return the pictures whose names fit a pattern, and what it found in them."""
    tried = ((path, pattern.match(path.stem)) for path in _files(folder) for pattern in patterns)
    return [(path, match.groups()) for path, match in tried if match]


def _feret(folder: Path) -> list[Picture]:
    """``.../00001/00001_930831_fa_a.ppm`` or ``00001fa010_930831.tif``; gender from ``name_value/00001/00001.txt``."""
    genders = _feret_genders(folder)
    named = sorted((subject, pose, path) for path, (subject, pose) in _matched(folder, _FERET, _FERET_GREY))
    return [Picture(path, subject, genders.get(subject, "")) for subject, _, path in named]


def _feret_genders(folder: Path) -> dict[str, str]:
    genders = {}
    for path in sorted(folder.rglob("name_value/*/*.txt")):
        said = re.search(r"^gender=(\w)", path.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        if path.stem.isdecimal() and said:
            genders[path.stem] = said.group(1).upper()
    return genders


def _multi_pie(folder: Path) -> list[Picture]:
    """``session01/multiview/001/01/05_1/001_01_01_051_07.png``: subject, session, recording, camera, flash."""
    frontal = []
    for path, (subject, session, recording, camera, place, flash) in _matched(folder, _MULTI_PIE):
        expression = _RECORDINGS.get((session, recording))
        if (camera, place) == _FRONTAL_CAMERA and expression is not None:
            light = "front" if flash == _FRONTAL_FLASH else f"flash {flash}"
            frontal.append(Picture(path, subject, "", expression, light))
    frontal.sort(key=lambda p: (p.subject, p.illumination != "front", p.expression != "neutral", p.path.name))
    once = {(p.subject, p.expression, p.illumination): p for p in reversed(frontal)}
    return [*once.values()][::-1]


def _imm(folder: Path) -> list[Picture]:
    """``01-1m.jpg``: subject, shot (1 neutral, 2 happy, 5 spot light; 3, 4 and 6 are left out), gender."""
    pictures = [
        Picture(path, subject, gender.upper(), *_IMM_SHOTS[shot])
        for path, (subject, shot, gender) in _matched(folder, _IMM)
        if shot in _IMM_SHOTS
    ]
    return sorted(pictures, key=lambda p: (p.subject, p.path.name))


def _orl(folder: Path) -> list[Picture]:
    """``s1/1.pgm`` to ``s40/10.pgm``."""
    pictures = [Picture(path, path.parent.name) for path in _files(folder) if _ORL.match(path.parent.name)]
    return sorted(pictures, key=lambda p: (int(p.subject[1:]), int(p.path.stem) if p.path.stem.isdecimal() else 0))


def _lfw(folder: Path) -> list[Picture]:
    """``Ann_Lee/Ann_Lee_0001.jpg``."""
    return [Picture(path, name) for path, (name, _) in _matched(folder, _LFW) if name == path.parent.name]


def _folder(folder: Path) -> list[Picture]:
    """``labels.csv`` with the columns file and subject (gender and expression where known), or sub-folders."""
    if not _files(folder):
        return []
    table = folder / "labels.csv"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KsameWarning)
        entries = list_entries(folder, table if table.is_file() else None)
    labels = ("gender", "expression", "illumination")
    return [Picture(e.path, e.subject, *(e.attributes.get(label, "") for label in labels)) for e in entries]


LAYOUTS: Mapping[str, Layout] = {
    "feret": _feret,
    "multipie": _multi_pie,
    "imm": _imm,
    "orl": _orl,
    "lfw": _lfw,
    "folder": _folder,
}
"""How to read each data set, the most particular first."""
