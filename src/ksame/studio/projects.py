"""Projects in a folder: each has a folder of its own, whose name and files' names the server chose.

``project.json`` says what there is. Beside it lie the uploads (``media``, ``faces``, ``originals``, ``released``), the
tracks of people (``tracks``, and what they were before each correction in ``undo``), pictures of them (``thumbs``),
work for previews (``preview``) and ``jobs``. All of it is readable by its owner only.
"""

from __future__ import annotations

import csv
import io
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from threading import RLock
from typing import Any, BinaryIO

from ksame.errors import InputError, KsameError, OutputError, UsageError
from ksame.faces.reading import SUFFIXES
from ksame.files import atomic_path, make_folder, write_atomic
from ksame.privacy.documents import read_document
from ksame.scene.paths import MEDIA_SUFFIXES
from ksame.studio.state import ROLES, Kind, Project, Role, Settings, StoredFile

STATE, TRACKS, UNDO, THUMBS, PREVIEW, JOBS = "project.json", "tracks", "undo", "thumbs", "preview", "jobs"
_DEFAULTS: dict[Kind, str] = {"scene": "someone-else", "faces": "k-same-pixel", "audit": "someone-else"}
_MAX_FILES = 100_000


class GoneError(KsameError):
    """A project, file or job that is not there, or no longer."""


class BusyError(KsameError):
    """Something that must wait until a job has ended."""


class Projects:
    """The projects in a folder.

    Parameters
    ----------
    root : Path
        Made where it is not there.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._lock = RLock()
        make_folder(self.root)

    def all(self) -> list[Project]:
        """Return the projects, the newest first; what is no project is passed over."""
        try:
            folders = [path for path in self.root.iterdir() if (path / STATE).is_file()]
        except OSError as error:
            raise OutputError(f"{self.root}: cannot be read ({error.strerror}). Is its disk still there?") from error
        projects = []
        for folder in folders:
            try:
                projects.append(self.get(folder.name))
            except KsameError:
                continue
        return sorted(projects, key=lambda project: (project.created, project.id), reverse=True)

    def folder(self, project: str) -> Path:
        """Return the folder of a project that is there."""
        folder = self.root / project
        if not (folder / STATE).is_file():
            raise GoneError(f"There is no such project in {self.root}. Was it deleted?")
        return folder

    def get(self, project: str) -> Project:
        """Read a project."""
        path = self.folder(project) / STATE
        try:
            return read_document(Project, path.read_bytes(), "the state of a project")
        except OSError as error:
            raise GoneError(f"{path}: cannot be read ({error.strerror}).") from error
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    def create(self, name: str, kind: Kind) -> Project:
        """Begin a project."""
        settings = Settings(method=_DEFAULTS[kind], seed=secrets.randbits(53))
        created = datetime.now(timezone.utc).isoformat(timespec="microseconds")
        project = Project(id=secrets.token_hex(8), name=name, kind=kind, created=created, settings=settings)
        folder = self.root / project.id
        make_folder(folder)
        try:
            folder.chmod(0o700)
            self._write(folder, project)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return project

    def change(self, project: str, **changes: Any) -> Project:
        """Change some fields of a project."""
        with self._lock:
            changed = self.get(project).model_copy(update=changes)
            self._write(self.folder(project), changed)
            return changed

    def delete(self, project: str) -> None:
        """Delete a project, with its originals and everything made of them."""
        _remove(self.folder(project))

    def _write(self, folder: Path, project: Project) -> None:
        text = project.model_dump_json(indent=1, by_alias=True)
        write_atomic(folder / STATE, f"{text}\n".encode(), private=True)

    @contextmanager
    def receive(self, project: str, name: str, role: Role) -> Iterator[tuple[StoredFile, Path, BinaryIO]]:
        """Give a file to be written; it becomes part of the project when all of it is there.

        ``name`` is what the browser calls it, perhaps with folders; it is kept to be shown, and never used on disk.
        """
        current = self.get(project)
        if role not in ROLES[current.kind]:
            raise UsageError(f"A project of this kind takes no {role}.")
        if len(current.files) >= _MAX_FILES:
            raise UsageError(f"A project holds at most {_MAX_FILES} files.")
        shown = "".join(c if c.isprintable() else "?" for c in name.replace("\\", "/"))[-400:]
        suffix = PurePosixPath(shown).suffix.lower()
        known = {"labels": (".csv",), "media": MEDIA_SUFFIXES}.get(
            role, sorted(SUFFIXES)
        )  # others would be passed over
        if suffix not in known:
            raise InputError(f"{shown}: not a kind of file that can be used here. It can be: {', '.join(known)}.")
        folder = self.folder(project) / role
        make_folder(folder)
        with self._lock:
            number = self.get(project).next_number
            self.change(project, next_number=number + 1)
        number = _partner(current, shown, role) or number
        file = StoredFile(number=number, name=shown, role=role, suffix=suffix, size=0)
        with atomic_path(folder / file.stored_as, private=True) as part, part.open("wb") as stream:
            yield file, part, stream

    def add(self, project: str, file: StoredFile) -> None:
        """List a file that was received."""
        with self._lock:
            others = [each for each in self.get(project).files if (each.role, each.number) != (file.role, file.number)]
            others = [each for each in others if not each.role == file.role == "labels"]
            self.change(project, files=(*others, file))
            self.forget(project)

    def remove(self, project: str, role: Role | None = None, number: int | None = None) -> None:
        """Delete an original, or all of them, and what was made to look at them."""
        current = self.get(project)
        gone = [file for file in current.files if number is None or (file.role, file.number) == (role, number)]
        if number is not None and not gone:
            raise GoneError(f"There is no file {number} in this project.")
        folder = self.folder(project)
        for file in gone:
            _remove(folder / file.role / file.stored_as)
        with self._lock:
            kept = self.get(project).files
            self.change(project, files=tuple(file for file in kept if file not in gone))
            self.forget(project)

    def forget(self, project: str) -> Project:
        """Delete what was found and wished: when people are found anew, a name may be somebody else."""
        for name in (TRACKS, UNDO, THUMBS, PREVIEW):
            _remove(self.folder(project) / name)
        current = self.get(project)
        return self.change(project, wishes={}, another=()) if current.wishes or current.another else current

    def found(self, project: str) -> bool:
        """Tell whether people were looked for."""
        return any((self.folder(project) / TRACKS).glob("*.json"))

    def write_labels(self, project: str) -> None:
        """Write ``labels.csv`` for a face set by the numbers of its files: from sub-folders, or the table uploaded."""
        current, folder = self.get(project), self.folder(project)
        faces = [file for file in current.files if file.role == "faces"]
        table = next((folder / "labels" / file.stored_as for file in current.files if file.role == "labels"), None)
        rows = _from_folders(faces) if table is None else _from_table(faces, table)
        path = folder / "faces" / "labels.csv"
        if not rows:
            _remove(path)
            return
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_atomic(path, text.getvalue().encode(), private=True)


def _partner(project: Project, name: str, role: Role) -> int | None:
    """Return the number of the file of the same name on the other side of an audit: both get one, and so are paired."""
    stem = _below(name).with_suffix("")
    there = [file for file in project.files if _below(file.name).with_suffix("") == stem]
    if project.kind != "audit" or any(file.role == role for file in there):
        return None
    return there[0].number if len(there) == 1 else None


def _below(name: str) -> PurePosixPath:
    """Return a name below the folder that was chosen, which is its first part."""
    path = PurePosixPath(name)
    return PurePosixPath(*path.parts[1:]) if len(path.parts) > 1 else path


def _from_folders(faces: list[StoredFile]) -> list[dict[str, str]]:
    """Say who is who by sub-folders; by nothing where there are none."""
    places = {file: _below(file.name) for file in faces}
    if not any(len(place.parts) > 1 for place in places.values()):
        return []
    if any(len(place.parts) == 1 for place in places.values()):
        raise InputError("Some pictures lie in sub-folders and some do not, so it is unclear who is who.")
    return [{"file": file.stored_as, "subject": place.parts[0]} for file, place in places.items()]


def _from_table(faces: list[StoredFile], table: Path) -> list[dict[str, str]]:
    """Put the numbers of files in the place of their names in a table."""
    stored: dict[str, str] = {}
    for file in faces:
        stored |= {file.name: file.stored_as, _below(file.name).as_posix(): file.stored_as}
    try:
        with table.open(newline="", encoding="utf-8-sig") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"labels.csv: cannot be read ({error}).") from error
    for row in rows:
        name = (row.get("file") or "").strip()
        if name not in stored:
            raise InputError(f"labels.csv: {name[:200]!r} is not among the pictures that were uploaded.")
        row["file"] = stored[name]
    if any(None in row for row in rows):
        raise InputError("labels.csv: a row has more values than there are columns.")
    return rows


def _remove(path: Path) -> None:
    try:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(f"{path}: cannot be deleted ({error.strerror}). Delete it by hand.") from error
