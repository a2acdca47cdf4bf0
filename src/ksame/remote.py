"""Files at a URL such as s3://bucket/folder: fetched before the work, stored when all of it is complete.

Any file system of fsspec will do. Originals are copied to a folder that only its owner can read. Nothing stands under a
final name before it is complete, and the certificate comes last.
"""

from __future__ import annotations

import glob
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ksame.errors import InputError, KsameError, OutputError, UsageError
from ksame.files import atomic_path
from ksame.scheduling import INSTALL

_CERTIFICATE = re.compile(r"(.*\.)?certificate\.(sig|json)")


def is_url(place: str | Path) -> bool:
    """Tell whether a place is a URL.

    Examples
    --------
    >>> is_url("s3://bucket/faces"), is_url("C:/faces"), is_url("synthetic:40")
    (True, False, False)
    """
    return re.match(r"[a-z][a-z0-9+.-]+://", str(place)) is not None


@dataclass(frozen=True, eq=False)
class Staged:
    """Local places that stand for those that were named; the same ones where none of them is a URL.

    Attributes
    ----------
    paths : tuple
        What is read.
    output : str or Path
        What is written.
    called : mapping of local path to URL
        Of files that were fetched, and of the folder for what is written.
    upload : callable
        Stores what was written.
    """

    paths: tuple[str | Path, ...]
    output: str | Path
    called: dict[Path, str] = field(default_factory=dict)
    upload: Callable[[], None] = lambda: None

    def name(self, path: Path) -> str:
        """Return what a file is called where it comes from, or where it goes."""
        for place in (path, *path.parents):
            if place in self.called:
                return "/".join([self.called[place], *path.relative_to(place).parts])
        return str(path)


@contextmanager
def staged(
    paths: Sequence[str | Path], output: str | Path, *, resume: bool = False, force: bool = False, goes_on: bool = True
) -> Iterator[Staged]:
    """Fetch what is read from URLs, and give a local place for what is written to one.

    Call ``upload`` when everything is there. The copies are removed at the end; after an interruption they stay for
    ``resume`` where the work ``goes_on``.

    Raises
    ------
    UsageError
        When something stands at the URL of the output already.
    InputError, OutputError
        When a file cannot be fetched, or not be stored.
    """
    if not any(map(is_url, (*paths, output))):
        yield Staged(tuple(paths), output)
        return
    name = str(output).rstrip("/").rsplit("/", 1)[-1]
    beside = Path.cwd() if is_url(output) else Path(output).absolute().parent
    folder = beside / f".{name}.ksame-remote"
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)
    try:
        for each in (folder, folder / "in", folder / "out"):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}). Run it in a folder with room.") from error
    try:
        yield _staged(paths, output, folder, resume=resume, force=force)
    except BaseException as error:
        if not goes_on or (isinstance(error, (InputError, UsageError)) and not resume):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _staged(paths: Sequence[str | Path], output: str | Path, folder: Path, *, resume: bool, force: bool) -> Staged:
    local, upload = output, Staged.upload
    called: dict[Path, str] = {}
    if is_url(output):
        store = _Place(str(output))
        store.require_free(resume=resume, force=force)
        made = folder / "out"
        local = f"{made / store.name}{'/' if str(output).endswith('/') else ''}"
        upload = partial(store.put, made)
        called[made] = str(output).rstrip("/").rpartition("/")[0]
    read = [
        _fetch(str(path), folder / "in" / str(number), called) if is_url(path) else path
        for number, path in enumerate(paths)
    ]
    return Staged(tuple(read), local, called, upload)


def _file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise UsageError(f"{url}: URLs need fsspec: {INSTALL}.") from error
    try:
        system, path = url_to_fs(url)
    except ImportError as error:
        raise UsageError(f"{url}: {error}. {INSTALL} has s3:// and gs://.") from error
    except Exception as error:
        raise UsageError(f"{url}: this is no URL that can be used ({error}).") from error
    return system, str(path)


def _fetch(url: str, folder: Path, called: dict[Path, str]) -> Path:
    """Copy a file, all files of a folder, or those of a pattern to a private folder; return what to read."""
    system, path = _file_system(url)
    try:
        single = False
        if glob.has_magic(path):
            files, root = (
                [each for each in system.glob(path) if system.isfile(each)],
                path.split("*")[0].rpartition("/")[0],
            )
        elif system.isfile(path):
            files, root, single = [path], path.rpartition("/")[0], True
        else:
            files, root = system.find(path), path.rstrip("/")
        if not files:
            raise InputError(f"{url}: there is no such file, or nothing in the folder. Check the name.")
        for each in files:
            file = folder / str(each).removeprefix(root).lstrip("/")
            if not file.resolve().is_relative_to(folder.resolve()):
                raise InputError(f"{url}: {each} would lie outside the folder. Rename it.")
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with atomic_path(file, private=True) as part:
                system.get_file(each, str(part))
            called[file] = system.unstrip_protocol(each)
    except KsameError:
        raise
    except Exception as error:  # every file system has errors of its own
        raise InputError(f"{url}: cannot be fetched ({_words(error)}). Check the name and your credentials.") from error
    return file if single else folder


class _Place:
    """Where results are stored."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._system, path = _file_system(url)
        self._parent, _, self.name = path.rstrip("/").rpartition("/")
        if not self.name or "/" not in path.rstrip("/"):
            raise UsageError(f"{url}: name a file or folder in the bucket.")

    def require_free(self, *, resume: bool, force: bool) -> None:
        """Refuse what stands there already, but for what a run that is resumed has stored itself."""
        if force:
            raise UsageError(
                f"{self._url}: --force replaces nothing at a URL. Remove what is there, or choose another."
            )
        place = f"{self._parent}/{self.name}"
        stem = place.rpartition(".")[0] or place
        try:
            self._system.invalidate_cache()
            certified = any(
                self._system.exists(each) for each in (f"{place}/certificate.json", f"{stem}.certificate.json")
            )
            taken = certified or (not resume and self._system.exists(place))
        except Exception as error:
            raise OutputError(f"{self._url}: cannot be reached ({_words(error)}). Check your credentials.") from error
        if taken:
            raise UsageError(f"{self._url} exists. Choose another place.")

    def put(self, folder: Path) -> None:
        """Store everything in a folder: each file under its name when all of it is there, certificates last."""
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not _hidden(path, folder)]
        for file in sorted(
            files, key=lambda path: (_CERTIFICATE.fullmatch(path.name) is not None, path.suffix == ".json")
        ):
            final = f"{self._parent}/{file.relative_to(folder).as_posix()}"
            above, _, name = final.rpartition("/")
            part = f"{above}/.{name}.{secrets.token_hex(4)}.part"
            try:
                self._system.makedirs(above, exist_ok=True)
                try:
                    self._system.put_file(str(file), part)
                    if self._system.info(part)["size"] != file.stat().st_size:
                        raise OSError("less arrived than was sent")
                    self._system.mv(part, final)
                except BaseException:
                    with suppress(Exception):
                        self._system.rm(part)
                    raise
            except Exception as error:
                raise OutputError(
                    f"{self._url}: {name} cannot be stored ({_words(error)}). Run again; ksame deidentify "
                    "goes on with --resume."
                ) from error


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
