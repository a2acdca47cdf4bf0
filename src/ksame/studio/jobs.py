"""Jobs: commands that run in processes of their own, one per project at a time.

A job's folder says everything: the command (``job.json``), how far it is (``progress.json``), how it ended
(``end.json``), and what it printed. So a server that starts anew knows what became of it.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from ksame.errors import ExitCode, OutputError
from ksame.files import make_folder, read_json, write_json
from ksame.studio.commands import command, outputs, resumed
from ksame.studio.projects import JOBS, BusyError, GoneError, Projects
from ksame.studio.state import Action, Download, Job, JobState, Progress, Project
from ksame.studio.worker import END, JOB, MESSAGES, PROGRESS, RESULT

_STATES: dict[int, JobState] = {
    ExitCode.DONE: "done",
    ExitCode.WITHHELD: "withheld",
    ExitCode.INTERRUPTED: "interrupted",
}
_PATIENCE = 20.0  # seconds that a cancelled command has to end by itself
_MAX_MESSAGES = 60
_MAX_RISKS = 200
_NOISE = "INFO: Created TensorFlow Lite"  # printed by the library itself


class Jobs:
    """The jobs of all projects."""

    def __init__(self, projects: Projects) -> None:
        self._projects = projects
        self._running: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        self._locks: dict[str, RLock] = {}

    @contextmanager
    def idle(self, project: str) -> Iterator[Project]:
        """Give a project that nothing works on, nor begins to before the end; BusyError where something does."""
        with self._locks.setdefault(project, RLock()):
            self.require_idle(project)
            yield self._projects.get(project)

    def start(self, project: Project, action: Action, source: int | None = None) -> Job:
        """Begin a job; BusyError where another of the project is running."""
        with self.idle(project.id):
            number = max((*self._numbers(project.id), 0)) + 1
            words = command(project, action, number, source)
            folder = self._place(project.id, number)
            make_folder(folder)
            write_json(folder / JOB, {"action": action, "words": words}, private=True)
            self._launch(project.id, number)
            return self.get(project.id, number)

    def resume(self, project: str, number: int) -> Job:
        """Go on with a job that was interrupted or failed."""
        with self.idle(project):
            job, folder = self.get(project, number), self._place(project, number)
            if job.state not in ("interrupted", "failed"):
                raise BusyError("This job is done; there is nothing to go on with.")
            told = read_json(folder / JOB)
            write_json(folder / JOB, {**told, "words": resumed(told["words"])}, private=True)
            (folder / END).unlink(missing_ok=True)
            self._launch(project, number)
            return self.get(project, number)

    def _launch(self, project: str, number: int) -> None:
        folder = self._place(project, number)
        try:
            with (folder / MESSAGES).open("wb") as messages:
                self._running[project, number] = subprocess.Popen(  # noqa: S603 -- its words are chosen here
                    [sys.executable, "-m", "ksame.studio.worker", str(folder)],
                    stdin=subprocess.PIPE,
                    stdout=messages,
                    stderr=messages,
                    start_new_session=True,
                )
        except OSError as error:
            raise OutputError(f"The job cannot be started ({error.strerror}). Is the disk still there?") from error

    def cancel(self, project: str, number: int, patience: float = _PATIENCE) -> Job:
        """Interrupt a job, and wait until it has ended; what it finished stays."""
        self._place(project, number, there=True)
        process = self._running.get((project, number))
        if process is not None:
            _interrupt(process, patience)
        return self.get(project, number)

    def delete(self, project: str, number: int) -> None:
        """Delete a job and what it wrote."""
        self.cancel(project, number)
        shutil.rmtree(self._place(project, number), ignore_errors=True)

    def stop(self, project: str | None = None) -> None:
        """Interrupt the jobs of a project, or all of them."""
        going = [process for (owner, _), process in list(self._running.items()) if project in (None, owner)]
        for process in going:
            _interrupt(process, _PATIENCE)

    def require_idle(self, project: str) -> None:
        """Refuse what cannot be done while a job of the project is running."""
        if any(owner == project and self._is_running(owner, number) for owner, number in list(self._running)):
            raise BusyError("A job of this project is running. Wait for its end, or cancel it.")

    def all(self, project: str) -> tuple[Job, ...]:
        """Return the jobs of a project, the newest first."""
        return tuple(self.get(project, number) for number in sorted(self._numbers(project), reverse=True))

    def get(self, project: str, number: int) -> Job:
        """Return a job."""
        folder = self._place(project, number, there=True)
        going = self._is_running(project, number)  # first: what it wrote is complete once it is not
        told, end, result = (read_json(folder / name) for name in (JOB, END, RESULT))
        state: JobState = "running" if going else _STATES.get(end["code"], "failed") if end else "interrupted"
        return Job(
            number=number,
            action=told["action"],
            state=state,
            command=shlex.join(["ksame", *told["words"]]),
            progress=Progress(**(read_json(folder / PROGRESS) if going else {})),
            messages=() if going else _messages(folder / MESSAGES),
            summary=() if going else _summary(result),
            at_risk=() if going else _at_risk(result, self._projects.get(project)),
            downloads=() if going else _downloads(folder),
        )

    def download(self, project: str, number: int, file: int) -> tuple[Path, Download]:
        """Return a file that a job wrote."""
        folder = self._place(project, number, there=True)
        listed = [] if self._is_running(project, number) else outputs(folder)
        if not 0 <= file < len(listed):
            raise GoneError("There is no such file any more.")
        return listed[file][0], _downloads(folder)[file]

    def _is_running(self, project: str, number: int) -> bool:
        process = self._running.get((project, number))
        if process is None or process.poll() is None:
            return process is not None
        _close(process)
        self._running.pop((project, number), None)
        return False

    def _numbers(self, project: str) -> list[int]:
        folder = self._projects.folder(project) / JOBS
        return [int(path.parent.name) for path in folder.glob(f"*/{JOB}") if path.parent.name.isdecimal()]

    def _place(self, project: str, number: int, *, there: bool = False) -> Path:
        folder = self._projects.folder(project) / JOBS / f"{number:04d}"
        if there and not (folder / JOB).is_file():
            raise GoneError(f"There is no job {number} in this project.")
        return folder


def _interrupt(process: subprocess.Popen[bytes], patience: float) -> None:
    """Close what the worker listens to; kill it where it does not end: its work in progress is as good as before."""
    _close(process)
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()


def _messages(file: Path) -> tuple[str, ...]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    said = (line.strip() for line in lines if line.strip() and not line.startswith(_NOISE))
    return tuple(dict.fromkeys(said))[-_MAX_MESSAGES:]


def _summary(result: dict[str, Any]) -> tuple[str, ...]:
    """Return what a result says in sentences, whatever command it is of."""
    certificate = result.get("certificate", {})
    promise, verdict = certificate.get("promise", {}), result.get("verdict", {})
    lines = [certificate.get("statement"), promise.get("statement"), verdict.get("line"), verdict.get("explanation")]
    if certificate.get("k_real") is not None:
        lines.append(_sharing(certificate["k_real"]))
    lines += [f"withheld: {each['source']}: {each['reason']}" for each in result.get("withheld", ())]
    lines += [f"left out: {reason}" for reason in _values(result.get("unreadable", ()))]
    return tuple(str(line) for line in lines if line)


def _sharing(k_real: int) -> str:
    if k_real > 1:
        return f"Every new face is shared by at least {k_real} real people (k_real = {k_real})."
    return "Sharing hides nobody here (k_real = 1): what protects is how little the new face is like the old."


def _values(listed: Any) -> list[Any]:
    return list(listed.values()) if isinstance(listed, dict) else list(listed)


def _at_risk(result: dict[str, Any], project: Project) -> tuple[str, ...]:
    """Return where a mask stood in, by the names that the files had."""
    names = {file.stored_as: file.name for file in project.files}
    lines = []
    for file in result.get("files", ()) if result.get("schema") == "ksame/deidentify" else ():
        name = names.get(Path(file["source"]).name, Path(file["source"]).name)
        for risk in file["at_risk"]:
            start, end = risk["seconds"]
            when = f", {start:.2f} to {end:.2f} s" if end > start else ""
            lines.append(f"{name}{when}, {risk['person'] or 'everyone'}: {risk['reason']}")
    return tuple(lines[:_MAX_RISKS])


def _downloads(folder: Path) -> tuple[Download, ...]:
    return tuple(
        Download(number=number, name=path.name, size=path.stat().st_size, publish=publish, about=about)
        for number, (path, publish, about) in enumerate(outputs(folder))
    )
