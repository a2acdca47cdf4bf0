"""The ledger: a local memory of which pictures were released before, so that a second release can be warned about.

Two releases of the same people with different groups can be intersected. The ledger holds keyed hashes of pictures,
nothing else; the key never leaves the machine.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from hashlib import blake2b
from pathlib import Path

from ksame.faces.faceset import FaceSet, quantise


def default_folder() -> Path:
    """Return where the ledger lives: ``KSAME_STATE``, or the user's folder for program state."""
    if "KSAME_STATE" in os.environ:
        return Path(os.environ["KSAME_STATE"])
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "ksame"
    return Path(os.environ.get("XDG_STATE_HOME", str(Path.home() / ".local" / "state"))) / "ksame"


class Ledger:
    """Remembers released pictures by keyed hash.

    Parameters
    ----------
    folder : Path, optional
        Created on first use.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()

    def earlier(self, faces: FaceSet, digest: str) -> int:
        """Return how many of these pictures are in a release other than the one with this digest."""
        file = self.folder / "released.jsonl"
        if not file.exists():
            return 0
        before: set[str] = set()
        for line in file.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record["release"] != digest:
                before.update(record["faces"])
        return len(before & set(self._hashes(faces)))

    def record(self, faces: FaceSet, digest: str) -> None:
        """Remember these pictures as released."""
        line = json.dumps({"release": digest, "faces": self._hashes(faces)})
        handle = os.open(self.folder / "released.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "a", encoding="utf-8") as file:
            file.write(line + "\n")

    def _hashes(self, faces: FaceSet) -> list[str]:
        key = self._key()
        return [blake2b(face.tobytes(), key=key, digest_size=16).hexdigest() for face in quantise(faces.images)]

    def _key(self) -> bytes:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.folder / "key"
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return path.read_bytes()
        with os.fdopen(handle, "wb") as file:
            key = secrets.token_bytes(32)
            file.write(key)
        return key
