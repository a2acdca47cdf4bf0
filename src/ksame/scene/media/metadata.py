"""Which metadata may go over to the output: nothing by itself, entries by their names, or groups of them.

What may hold a picture of the original (thumbnails, previews, blocks of makers and programs that nobody can read) never
goes over, whatever is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from PIL import ExifTags, Image

GROUPS = ("date", "location", "all")
"""Names that stand for several entries; ``all`` for what is known to hold no place, no serial number and no picture."""

_DATES = frozenset(
    """
    DateTime DateTimeOriginal DateTimeDigitized OffsetTime OffsetTimeOriginal OffsetTimeDigitized SubsecTime
    SubsecTimeOriginal SubsecTimeDigitized creation_time creationdate date year
    """.split()  # noqa: SIM905 -- a list of a hundred strings is harder to read
)
_PLAIN = _DATES | frozenset(
    """
    ImageDescription Make Model Software Artist Copyright UserComment ExposureTime FNumber ExposureProgram
    ISOSpeedRatings ShutterSpeedValue ApertureValue BrightnessValue ExposureBiasValue MaxApertureValue SubjectDistance
    MeteringMode LightSource Flash FocalLength FocalLengthIn35mmFilm ExposureMode WhiteBalance DigitalZoomRatio
    SceneCaptureType GainControl Contrast Saturation Sharpness LensMake LensModel LensSpecification title artist author
    album album_artist comment copyright composer description genre grouping keywords language make model network
    performer publisher show software subtitle synopsis track
    """.split()  # noqa: SIM905
)
"""Entries of which it is known what is in them; what is not listed goes over by its name only."""
_NEVER = re.compile(
    "thumb|preview|picture|cover|makernote|private|jpeg|strip|tile|offset$|ifds?$|xmlpacket|imageresources|iptc|icc|"
    "profile|interoperability|printim|orientation|gpsinfo",
    re.IGNORECASE,
)
"""Names of what may hold a picture, points to something else in the file, or is applied to the pixels."""
_MAX_BYTES = 4096
"""Of an entry: no text of people is longer, and pictures are."""


def asked_for(keys: Iterable[str], asked: Iterable[str]) -> set[str]:
    """Return which entries of a file go over, from names of entries and of groups.

    Examples
    --------
    >>> sorted(asked_for(["title", "creation_time", "location", "vendor_blob"], ["all"]))
    ['creation_time', 'title']
    >>> sorted(asked_for(["title", "location"], ["location"]))
    ['location']
    """
    asked, kept = set(asked), set[str]()
    for key in keys:
        name = re.sub(r"-[a-z]{3}$", "", key.removeprefix("com.apple.quicktime."))
        place = re.search("location|gps", name, re.IGNORECASE) is not None
        dated, plain = (name in names or name.lower() in names for names in (_DATES, _PLAIN))
        groups = {"date": dated, "location": place, "all": plain and not place}
        if key in asked or any(wanted for group, wanted in groups.items() if group in asked):
            kept.add(key)
    return kept


def may_be_kept(name: str, value: object) -> bool:
    """Tell whether an entry may go over at all."""
    raw = isinstance(value, bytes)
    if _NEVER.search(name) or (raw and name not in _PLAIN):
        return False
    return len(value if isinstance(value, bytes) else repr(value)) <= _MAX_BYTES


def container_entries(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return what of a recording's metadata may go over."""
    return {name: value for name, value in metadata.items() if may_be_kept(name, value)}


def exif_entries(exif: Image.Exif) -> tuple[str, ...]:
    """Return the names of the tags of a photograph that may go over; its place is one entry."""
    names = [name for _, _, name in _tags(exif)]
    return (*names, "location") if exif.get_ifd(ExifTags.IFD.GPSInfo) else tuple(names)


def kept_exif(exif: Image.Exif, asked: Iterable[str]) -> bytes:
    """Return a block of the tags of a photograph that go over; empty where there are none."""
    names = asked_for(exif_entries(exif), asked)
    kept = Image.Exif()
    for part, tag, name in _tags(exif):
        if name in names and part is None:
            kept[tag] = exif[tag]
        elif name in names:
            kept.get_ifd(ExifTags.IFD.Exif)[tag] = exif.get_ifd(ExifTags.IFD.Exif)[tag]
    if "location" in names:
        kept.get_ifd(ExifTags.IFD.GPSInfo).update(exif.get_ifd(ExifTags.IFD.GPSInfo))
    return kept.tobytes() if names else b""


def _tags(exif: Image.Exif) -> list[tuple[int | None, int, str]]:
    """Return part, number and name of the tags that may go over; the picture's own tags have no part."""
    parts: list[tuple[int | None, Mapping[int, object]]] = [
        (None, exif),
        (ExifTags.IFD.Exif, exif.get_ifd(ExifTags.IFD.Exif)),
    ]
    kept = []
    for part, tags in parts:
        for tag, value in tags.items():
            name = ExifTags.TAGS.get(tag, "")
            if name and may_be_kept(name, value):
                kept.append((part, tag, name))
    return kept
