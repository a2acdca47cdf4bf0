"""The input of an audit: pictures before and after, and which belongs to which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.audit.result import NotJudged
from ksame.audit.scenes import scene_pairs
from ksame.audit.tables import Labels, read_labels, read_pairs
from ksame.errors import InputError, UsageError
from ksame.faces.faceset import FaceSet
from ksame.faces.reading import SUFFIXES, StrPath, read_image
from ksame.privacy.linkage import Linkage
from ksame.privacy.release import CERTIFICATE, SHEET
from ksame.scene.certificate import AnyCertificate, SceneCertificate, read_certificate
from ksame.scene.linkage import AnyLinkage, SceneLinkage

ImageSource = Path | str | FaceSet
"""A folder of pictures, or faces in memory."""


@dataclass(frozen=True)
class LazyImage:
    """A picture that can be read when it is needed."""

    name: str  # relative to its folder
    # returns the pixels, of shape (height, width, 1 or 3), float in [0, 1]; raises InputError. Can be sent elsewhere
    load: Callable[[], NDArray[Any]]
    subject: str = ""  # whom it shows; of a released picture, the truth that attacks are scored on
    attributes: Mapping[str, str] = field(default_factory=dict)  # labels of an original


@dataclass(frozen=True)
class Pair:
    """A released picture and the original that it stands for."""

    original: LazyImage
    released: LazyImage


@dataclass(frozen=True)
class Pairing:
    """Which released picture belongs to which original, and what originals show; by equal file names by default."""

    pairs: StrPath | None = None  # a CSV file with the columns ``original,released``, names relative to the folders
    linkage: AnyLinkage | None = None  # the link table of a release, or of photographs
    # a CSV file with the column ``file`` and any of ``subject`` and labels; ``labels.csv`` in the folder of
    # originals is used by default
    labels: StrPath | None = None


BY_NAME = Pairing()
"""Files of equal names belong together."""


@dataclass(frozen=True)
class AuditInput:
    """All pairs, and what is known about them."""

    pairs: tuple[Pair, ...]
    not_paired: tuple[NotJudged, ...]  # pictures without a partner
    certificate: AnyCertificate | None  # what the publisher promised, where the released folder says so
    pairing: str  # how the pairs were found, in words
    further: tuple[LazyImage, ...] = ()  # other originals of the same people, which an attacker would have too

    @property
    def people(self) -> int:
        """How many different people there are."""
        return len({pair.original.subject for pair in self.pairs})


def pair_images(originals: ImageSource, released: ImageSource, pairing: Pairing = BY_NAME) -> AuditInput:
    """Find the pictures of both sides, in folders with all their sub-folders or in memory, and pair them.

    Raises UsageError when nothing can be paired, or everything shows one person. Raises InputError when a table cannot
    be read or names a file that is not there.
    """
    pairs, linkage = pairing.pairs, pairing.linkage
    if pairs is not None and linkage is not None:
        raise UsageError("Give either a table of pairs or a link table, not both.")
    before = _labelled(_pictures(originals, "ORIGINALS"), originals, pairing.labels)
    certificate = _certificate(released)
    after = _pictures(released, "RELEASED")
    if pairs is not None:
        table = Path(pairs)
        linked, how = read_pairs(table, {p.name for p in before}, {p.name for p in after}), f"listed in {table.name}"
    elif isinstance(linkage, SceneLinkage):
        _require_same(linkage, certificate)
        names = [p.name for p in before], [p.name for p in after]
        linked, people = scene_pairs(linkage, Path() if isinstance(originals, FaceSet) else Path(originals), *names)
        how = "by the link table of the outputs"
        before = [replace(p, subject=people.get(p.name, p.subject)) if p.subject == p.name else p for p in before]
    elif linkage is not None:
        linked, how = _from_linkage(linkage, certificate, before, after), "by the link table of the release"
    else:
        linked, how = _by_name(before, after, certificate), "by equal file names"
    paired = _joined(before, after, linked, certificate, how, complete=not isinstance(linkage, Linkage))
    return replace(paired, not_paired=(*paired.not_paired, *_not_pictures(certificate)))


def _joined(
    before: Sequence[LazyImage],
    after: Sequence[LazyImage],
    linked: Sequence[tuple[str, str]],
    certificate: AnyCertificate | None,
    how: str,
    *,
    complete: bool,
) -> AuditInput:
    by_name, released = {p.name: p for p in before}, {p.name: p for p in after}
    matched = [(by_name[first], released[second]) for first, second in linked]
    pairs = tuple(Pair(original, replace(after, subject=original.subject)) for original, after in matched)
    used, shown = {first for first, _ in linked}, {second for _, second in linked}
    lone, reason = [p.name for p in after if p.name not in shown], "no original belongs to it"
    not_paired = [NotJudged(name=name, side="released", reason=reason) for name in lone]
    if complete:  # a link table says itself what was merged or withheld
        lone, reason = [p.name for p in before if p.name not in used], "no released picture belongs to it"
        not_paired += [NotJudged(name=name, side="original", reason=reason) for name in lone]
    people = {pair.original.subject for pair in pairs}
    further = tuple(p for p in before if p.name not in used and p.subject in people)
    paired = AuditInput(pairs, tuple(not_paired), certificate, how, further)
    if paired.people < 2:
        raise UsageError(
            f"All {len(pairs)} pairs show one person ({pairs[0].original.name}), whom no attacker can confuse with "
            "anybody. An audit needs pictures of at least two people; twenty or more say something."
        )
    return paired


def _pictures(source: ImageSource, called: str) -> list[LazyImage]:
    if isinstance(source, FaceSet):
        return [
            LazyImage(
                source.names[i],
                partial(np.asarray, source.images[i]),
                str(source.subjects[i]),
                {name: str(values[i]) for name, values in source.attributes.items()},
            )
            for i in range(len(source))
        ]
    folder = Path(source)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder. {called} is a folder of pictures; check the name.")
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    if (folder / CERTIFICATE).is_file():
        files = [p for p in files if p != folder / SHEET]
    if not files:
        raise InputError(f"{folder}: no pictures inside. {called} holds pictures: {', '.join(sorted(SUFFIXES))}.")
    return [LazyImage(p.relative_to(folder).as_posix(), partial(read_image, p.absolute())) for p in files]


def _labelled(pictures: list[LazyImage], source: ImageSource, labels: StrPath | None) -> list[LazyImage]:
    """Say whom originals show: by the table, else by one sub-folder per person, else every file is somebody else."""
    if isinstance(source, FaceSet):
        return pictures
    own = Path(source) / "labels.csv"
    table = read_labels(Path(labels or own)) if labels is not None or own.is_file() else Labels({}, Path())
    nested = all("/" in p.name for p in pictures)
    labelled = [_with_row(p, table.row(p.name), p.name.split("/")[0] if nested else p.name) for p in pictures]
    if table.rows and not any(p.attributes for p in labelled):
        raise InputError(
            f"{table.path}: no row names a picture of {source} (for instance {pictures[0].name}). "
            "The column file holds names relative to that folder."
        )
    return labelled


def _with_row(picture: LazyImage, row: Mapping[str, str] | None, otherwise: str) -> LazyImage:
    if row is None:
        return replace(picture, subject=otherwise)
    attributes = {name: value for name, value in row.items() if name not in ("file", "subject")}
    return replace(picture, subject=row.get("subject") or otherwise, attributes=attributes)


def _certificate(released: ImageSource) -> AnyCertificate | None:
    if isinstance(released, FaceSet) or not (Path(released) / CERTIFICATE).is_file():
        return None
    return read_certificate(Path(released) / CERTIFICATE)[0]


def _not_pictures(certificate: AnyCertificate | None) -> list[NotJudged]:
    """Return the certified outputs that an audit does not read."""
    if not isinstance(certificate, SceneCertificate):
        return []
    others = sorted(n for n in certificate.files if Path(n).suffix.lower() not in {*SUFFIXES, ".csv"})
    return [NotJudged(name=name, side="released", reason="a recording: only pictures are judged") for name in others]


def _require_same(linkage: AnyLinkage, certificate: AnyCertificate | None) -> None:
    if certificate is not None and certificate.digest != linkage.release_digest:
        raise UsageError("The link table belongs to another release: its digest is not that of the certificate.")


def _by_name(
    before: Sequence[LazyImage], after: Sequence[LazyImage], certificate: AnyCertificate | None
) -> list[tuple[str, str]]:
    """Pair files of one name; the ending may differ."""
    if certificate is not None and not isinstance(certificate, SceneCertificate):
        raise UsageError(
            "The released folder is a ksame release, whose files are renumbered. Say which belongs to which with "
            "--linkage FILE (written by: ksame release --link-table FILE) or with --pairs pairs.csv."
        )
    exact = {p.name: p.name for p in before}
    stems: dict[str, list[str]] = {}
    for picture in before:
        stems.setdefault(_stem(picture.name), []).append(picture.name)
    linked = []
    for picture in after:
        same = stems.get(_stem(picture.name), [])
        partner = exact.get(picture.name) or (same[0] if len(same) == 1 else None)
        if partner is not None:
            linked.append((partner, picture.name))
    if not linked and certificate is not None:
        raise UsageError(
            "The outputs of ksame deidentify are numbered. Say which belongs to which with --linkage FILE (written by: "
            "ksame deidentify --link-table FILE) or with --pairs pairs.csv; --keep-names keeps the names of the "
            "originals."
        )
    if not linked:
        raise UsageError(
            f"No released picture has the name of an original ({len(before)} originals, for instance "
            f"{before[0].name}; {len(after)} released, for instance {after[0].name}). Use equal names, or list which "
            "belongs to which in a CSV file with the columns original,released: --pairs pairs.csv."
        )
    return linked


def _stem(name: str) -> str:
    return name[: name.rfind(".")] if "." in name.rsplit("/", 1)[-1] else name


def _from_linkage(
    linkage: Linkage, certificate: AnyCertificate | None, before: Sequence[LazyImage], after: Sequence[LazyImage]
) -> list[tuple[str, str]]:
    """Pair every released face with the first original it stands for."""
    _require_same(linkage, certificate)
    originals, outputs = {p.name for p in before}, {p.name for p in after}
    linked = []
    for face in linkage.faces:
        sources = [name for name in face.sources if name in originals]
        if not sources and any(face.since < past.number for past in linkage.history):
            continue  # of a series: people who left are not among the originals, and their face is not judged
        if not sources:
            raise UsageError(
                f"The link table says that {face.released} was made from {', '.join(face.sources) or 'nothing'}, which "
                f"is not among the originals (for instance {before[0].name}). Give the folder it was made from."
            )
        if face.released not in outputs:
            raise UsageError(f"The link table lists {face.released}, which is not in the released folder.")
        linked.append((sources[0], face.released))
    if not linked:
        raise UsageError("Nobody of the series is among the originals. Give the folder of an earlier release too.")
    return linked
