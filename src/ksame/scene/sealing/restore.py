"""Opening a vault: one person, or several, back in a release; everyone else stays as released."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from ksame.errors import InputError, OutputError, UsageError
from ksame.files import hash_tree, take_place
from ksame.pictures import PICTURE_SUFFIXES
from ksame.privacy.documents import read_document
from ksame.progress import Progress, silent
from ksame.scene.media import EncoderConfig, Frame, Media, Output, WorkFolder, open_media
from ksame.scene.media.encoding import CONTAINERS, video_settings
from ksame.scene.paths import require_folder
from ksame.scene.sealing.casefile import FilmRecord, PersonRecord
from ksame.scene.sealing.film import RGB, Film, Planes, blocks_shape, on_plane, planes_of
from ksame.vault import Identity, Vault
from ksame.vault.container import LINK_TABLE

_EXACT_PICTURES = (".png", ".tif", ".tiff", ".bmp")


@dataclass(frozen=True)
class Restored:
    """What was opened."""

    people: tuple[str, ...]
    n_frames: int  # in which anything of them was brought back
    head: str  # of the log of openings, to be noted elsewhere


def records(vault: Vault, keys: Mapping[str, Identity]) -> dict[str, PersonRecord]:
    """Return what the vault tells of the people whose keys are given."""
    opened = {name: vault.record(key) for name, key in keys.items() if name != LINK_TABLE}
    people = {
        name: read_document(PersonRecord, record[1], PersonRecord.expected)
        for name, record in opened.items()
        if record is not None
    }
    if len(people) < len(opened) or any(record.release_digest != vault.index.release for record in people.values()):
        raise InputError(f"{vault.path}: its records do not belong to its keys. Use the copy that was written.")
    return people


def restore(
    vault: Vault,
    identity: Identity,
    people: Sequence[str],
    release: Path,
    output: Path,
    *,
    note: str = "",
    progress: Progress = silent,
) -> Restored:
    """Bring people back in a released file or folder of frames, and log it; the result is exact, not compressed.

    Raises InputError when the key is a wrong one, the release another one, or anything was changed; UsageError when
    there is no such person, or the output cannot hold exact pixels. Nothing is written then.
    """
    unit = released_unit(vault, release)
    if output.exists() or output.is_symlink():
        raise UsageError(f"{output} exists. Choose another name.")
    require_folder(output)
    media = open_media(release)
    encoding = exact_encoding(media, output)
    keys = vault.keys(identity)
    people = tuple(dict.fromkeys(people))
    unknown = [name for name in people if name not in keys or name == LINK_TABLE]
    if unknown or not people:
        there = ", ".join(sorted(set(keys) - {LINK_TABLE})) or "nobody"
        raise UsageError(f"There is no {', '.join(unknown) or 'person named'} in {vault.path}. People there: {there}.")
    vault = vault.noted(action="open", people=people, key=identity.recipient, note=note)
    chosen = {name: keys[name] for name in people}
    films = _films(vault, chosen, unit)
    read = partial(_read_film, vault, chosen)
    folder = Path(tempfile.mkdtemp(prefix=f".{output.name[:60]}.", suffix=".part", dir=output.absolute().parent))
    try:
        made = folder / output.name
        n_frames = _write(media, made, encoding, folder / "work", films, read, progress)
        if made.is_file():
            made.chmod(0o600)
        _name_it(made, output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Restored(people, n_frames, vault.log.head)


def released_unit(vault: Vault, release: Path) -> str:
    """Return what a released file or folder of frames is called in the vault.

    Raises InputError when it is not, to the byte, one of those that the vault belongs to.
    """
    if not release.exists():
        raise InputError(f"{release}: there is no such file. Name the released file.")
    there = {name.partition("/")[2]: digest for name, digest in hash_tree(release).items()}
    files = vault.index.files
    if release.is_dir():
        tops = {name[: -len(inner) - 1] for name in files for inner in there if name.endswith(f"/{inner}")}
        named = {top: {n[len(top) + 1 :]: d for n, d in files.items() if n.startswith(f"{top}/")} for top in tops}
        units = [top for top, inner in named.items() if inner == there]
    else:
        units = [name for name, digest in files.items() if digest == there[""]]
    if not units:
        raise InputError(
            f"{release}: not a file of the release that {vault.path} belongs to, or it was changed. Nothing was opened."
        )
    return next((unit for unit in units if Path(unit).name == release.name), units[0])


def exact_encoding(media: Media, output: Path) -> EncoderConfig:
    """Return how a release is written without loss, or refuse an output that cannot hold it."""
    suffix = output.suffix.lower()
    if suffix in PICTURE_SUFFIXES:
        if suffix not in _EXACT_PICTURES:
            raise UsageError(f"{output}: such a file does not hold exact pixels. Choose .png or .tif.")
        if media.kind != "photograph":
            raise UsageError(f"{output}: a picture cannot hold a recording. Choose .mp4 or .mkv.")
        return EncoderConfig()
    if not suffix:
        if media.stream is not None:
            raise UsageError(f"{output}: pictures do not hold exact values of this recording. Choose .mp4 or .mkv.")
        return EncoderConfig(codec="png")
    if suffix not in CONTAINERS:
        raise UsageError(
            f"{output}: the suffix {suffix!r} is not known. Choose .mp4 or .mkv, or .png for a photograph."
        )
    stream = media.stream
    bits = 8 if stream is None else stream.bits
    encoding = EncoderConfig(lossless=True)
    codec = encoding.codec_for(output, bits)
    if codec not in ("h264", "hevc"):
        raise UsageError(f"{output}: a {suffix} file does not hold exact pixels. Choose .mp4 or .mkv.")
    wanted = None if stream is None else stream.pixel_format.replace("yuvj", "yuv")
    if stream is not None and video_settings(codec, encoding, media).pixel_format == wanted:
        return encoding
    if "ffv1" not in CONTAINERS[suffix].codecs:
        raise UsageError(f"{output}: a {suffix} file does not hold exact pixels of this release. Choose .mkv.")
    return EncoderConfig(codec="ffv1")


def _films(vault: Vault, keys: Mapping[str, Identity], unit: str) -> list[FilmRecord]:
    """Return the films of people in one released file, and where all their holders are opened."""
    told = records(vault, keys)
    films = {
        film.sha256: film
        for record in told.values()
        for film in record.films
        if film.output == unit and set(film.holders) <= set(keys)
    }
    if not films:
        places = sorted({film.output for record in told.values() for film in record.films})
        where = f"They are in {', '.join(places)}." if places else "They were not changed anywhere."
        raise UsageError(f"Nothing of {', '.join(keys)} was changed in {unit}. {where}")
    return sorted(films.values(), key=lambda film: film.first)


def _read_film(vault: Vault, keys: Mapping[str, Identity], film: FilmRecord) -> Film:
    numbers = {entry.sha256: number for number, entry in enumerate(vault.index.entries)}
    try:
        return Film.read(vault.open(numbers[film.sha256], [keys[name] for name in reversed(film.holders)]))
    except (KeyError, InputError) as error:
        raise InputError(f"{vault.path}: a film cannot be opened ({error}). Nothing was written.") from error


def _write(
    media: Media,
    made: Path,
    encoding: EncoderConfig,
    work: Path,
    films: Sequence[FilmRecord],
    read: Callable[[FilmRecord], Film],
    progress: Progress,
) -> int:
    """Write the release with the films in it, read it again, and return in how many frames there is a difference."""
    digests, n_changed = [], 0
    with Output(media, made, encoding, WorkFolder(work)) as output, closing(media.frames()) as frames:
        for frame, planes, changed in _restored(progress(frames, "restoring"), films, read):
            digests.append(_digest(planes))
            n_changed += bool(changed.any())
            if frame.native is None:
                output.write(planes[0], None, changed)
            else:
                output.write(
                    frame.pixels, _frame_of(planes, frame.native), np.zeros(frame.pixels.shape[:2], dtype=bool)
                )
        output.finish()
    native = media.stream is not None
    with closing(open_media(made).frames()) as frames:
        for frame, digest in zip(progress(frames, "checking"), digests, strict=True):
            if _digest(_values(frame, native=native)) != digest:
                raise OutputError(f"{made.name}: it does not read back as it was written. Choose .mkv or .png.")
    return n_changed


def _restored(
    frames: Any, films: Sequence[FilmRecord], read: Callable[[FilmRecord], Film]
) -> Iterator[tuple[Frame, Planes, NDArray[np.bool_]]]:
    """Yield the frames of a release, their values with the films in them, and the pixels that films changed."""
    waiting = list(films)
    running: list[tuple[Film, Iterator[tuple[list[NDArray[Any]], NDArray[np.bool_]]]]] = []
    for frame in frames:
        native = frame.native is not None
        planes = [plane.copy() for plane in _values(frame, native=native)]
        shapes, size = [plane.shape[:2] for plane in planes], planes[0].shape[:2]
        while waiting and waiting[0].first <= frame.index:
            film = read(waiting.pop(0))
            wanted = frame.native.format.name.replace("yuvj", "yuv") if native else RGB
            if film.head.pixel_format != wanted or film.head.first != frame.index:
                raise InputError("The films of the vault do not fit the release. Nothing was written.")
            running.append((film, film.frames(shapes)))
        running = [(film, values) for film, values in running if frame.index < film.head.first + film.head.count]
        changed = np.zeros(blocks_shape(planes), dtype=bool)
        for film, values in running:
            parts, mask = next(values)
            changed[film.window.slices(changed.shape, size)] |= mask
            for plane, part in zip(planes, parts, strict=True):
                where = on_plane(mask, part.shape, mask.shape)
                target = plane[film.window.slices(plane.shape, size)]
                np.copyto(target, part, where=where if part.ndim == 2 else where[..., None])
        yield frame, planes, changed


def _values(frame: Frame, *, native: bool) -> Planes:
    return planes_of(frame.native) if native and frame.native is not None else planes_of(frame.pixels)


def _frame_of(planes: Planes, like: VideoFrame) -> VideoFrame:
    frame = VideoFrame(like.width, like.height, like.format.name.replace("yuvj", "yuv"))
    for target, plane in zip(planes_of(frame), planes, strict=True):
        target[...] = plane
    return frame


def _digest(planes: Planes) -> bytes:
    digest = sha256()
    for plane in planes:
        digest.update(np.ascontiguousarray(plane).tobytes())
    return digest.digest()


def _name_it(made: Path, output: Path) -> None:
    """Give the result its name; what took the name meanwhile stays."""
    if os.path.lexists(output):
        raise UsageError(f"{output} exists. Choose another name.")
    try:
        take_place(made, output)
    except OSError as error:
        raise OutputError(
            f"{output}: cannot be written ({error.strerror}). Check the space and the permissions."
        ) from error


def entries_of(vault: Vault, identity: Identity, people: Sequence[str]) -> list[int]:
    """Return the entries of a vault that belong to some people alone: their keys, records and films."""
    keys = vault.keys(identity)
    unknown = [name for name in people if name not in keys]
    if unknown:
        raise UsageError(f"There is no {', '.join(unknown)} in {vault.path}. See: ksame vault list.")
    chosen = {name: keys[name] for name in people}
    films = {
        film.sha256 for r in records(vault, chosen).values() for film in r.films if set(film.holders) <= set(people)
    }
    kept = [number for number in vault.numbers("film") if vault.index.entries[number].sha256 in films]
    kept += [record[0] for key in chosen.values() if (record := vault.record(key)) is not None]
    return kept + [number for number in vault.numbers("key") if vault.owner(number, identity) in chosen]
