"""Rows of numbers that grow with a recording, kept on disk so that memory does not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ksame.errors import OutputError

_BLOCK = 64  # rows kept in memory before they are written


class RowBuffer:
    """Rows of float32, (n_rows, width), appended one by one.

    Parameters
    ----------
    width : int
    file : Path or None
        Where they are written; None keeps them in memory.
    """

    def __init__(self, width: int, file: Path | None) -> None:
        self._width, self._file = width, file
        self._open: list[NDArray[np.float32]] = []
        self._kept: list[NDArray[np.float32]] = []
        self._written = 0
        if file is not None:
            file.unlink(missing_ok=True)

    def __len__(self) -> int:
        return self._written + len(self._open)

    def append(self, row: NDArray[np.float32]) -> None:
        """Add a row, (width,)."""
        if len(self._open) >= _BLOCK:
            self._flush()
        self._open.append(row)

    def _flush(self) -> None:
        if not self._open:
            return
        block = np.stack(self._open)
        self._open = []
        self._written += len(block)
        if self._file is None:
            self._kept.append(block)
            return
        try:
            with self._file.open("ab") as stream:
                stream.write(block.tobytes())
        except OSError as error:
            raise OutputError(
                f"{self._file}: the tracks cannot be kept ({error}). Make room, or choose another place for the output."
            ) from error

    def rows(self, n: int | None = None) -> NDArray[np.float32]:
        """Return the first ``n`` rows, all by default; mapped where they are on disk."""
        self._flush()
        if self._written == 0:
            return np.empty((0, self._width), dtype=np.float32)
        if self._file is None:
            self._kept = [np.concatenate(self._kept)]
            return self._kept[0][:n]
        return np.memmap(self._file, dtype=np.float32, mode="r", shape=(self._written, self._width))[:n]

    def truncate(self, n: int) -> None:
        """Keep the first ``n`` rows."""
        if n >= len(self):
            return
        self._flush()
        self._written = n
        if self._file is None:
            self._kept = [np.concatenate(self._kept)[:n]]
        else:
            os.truncate(self._file, 4 * self._width * n)

    def drop(self) -> None:
        """Forget the rows."""
        self._open, self._kept, self._written = [], [], 0
        if self._file is not None:
            self._file.unlink(missing_ok=True)
