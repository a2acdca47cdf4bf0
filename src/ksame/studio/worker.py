"""``python -m ksame.studio.worker JOB``: run the command of a job in a process of its own, and tell how far it is.

Standard input is held open by the server. When it closes, because the job is cancelled or the server is gone, the
command is interrupted as by Ctrl-C: what it finished stays, and it can be resumed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import zipfile
from contextlib import redirect_stdout, suppress
from pathlib import Path

from ksame.app import talk
from ksame.app.cli import load
from ksame.errors import ExitCode, OutputError
from ksame.files import atomic_path, read_json, write_json
from ksame.studio.commands import OUT, ZIP

JOB, PROGRESS, END, RESULT, MESSAGES = "job.json", "progress.json", "end.json", "result.json", "messages.txt"
_EVERY = 0.2  # seconds between two notes of progress
_STAMP = (1980, 1, 1, 0, 0, 0)  # of files in archives: real times tell one run from another


def main(folder: Path) -> int:
    """Run the command of a job; return its exit code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    folder = folder.absolute()
    os.chdir(folder.parent.parent)  # commands name files below the project
    words = [str(word) for word in read_json(folder / JOB)["words"]]
    code = _run(words, folder)
    if code in (ExitCode.DONE, ExitCode.WITHHELD) and (folder / OUT).is_dir():
        _pack(folder)
    write_json(folder / END, {"code": code}, private=True)
    return code


def _run(words: list[str], folder: Path) -> int:
    result = folder / RESULT
    with result.open("w", encoding="utf-8") as stream, redirect_stdout(stream), talk.listened(_Notes(folder).tell):
        try:
            threading.Thread(target=_wait_for_end, daemon=True).start()
            load(words[0]).main(words[1:], prog_name=f"ksame {words[0]}", standalone_mode=True)
        except SystemExit as end:
            return int(end.code or 0)
        except KeyboardInterrupt:
            return ExitCode.INTERRUPTED
    return ExitCode.DONE


class _Notes:
    """Notes how far a command is, now and then."""

    def __init__(self, folder: Path) -> None:
        self._file, self._last, self._what = folder / PROGRESS, 0.0, ""

    def tell(self, what: str, done: int, total: int) -> None:
        """Take note."""
        now = time.monotonic()
        if what == self._what and now - self._last < _EVERY:
            return
        self._last, self._what = now, what
        with suppress(OutputError):  # the command itself will say that the disk is gone
            write_json(self._file, {"what": what, "done": done, "total": total})


def _pack(folder: Path) -> None:
    """Put everything that may be published into one file."""
    with atomic_path(folder / ZIP, private=True) as part, zipfile.ZipFile(part, "w") as archive:
        for path in sorted((folder / OUT).rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder / OUT).as_posix(), _STAMP)
                with path.open("rb") as source, archive.open(entry, "w", force_zip64=True) as target:
                    while block := source.read(1 << 20):
                        target.write(block)


def _wait_for_end() -> None:
    """Interrupt the command when standard input closes."""
    with suppress(OSError):
        while os.read(0, 1):  # not sys.stdin: its lock would be held at the end
            pass
    if os.name == "posix":
        os.kill(os.getpid(), signal.SIGINT)  # it also ends waits of the main thread
    else:
        signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
