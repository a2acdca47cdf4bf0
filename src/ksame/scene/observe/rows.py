"""Rows of numbers that grow with a recording, kept on disk so that memory does not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ksame.errors import OutputError

_BLOCK = 1 << 18  # bytes kept in memory before they are written


class RowBuffer:
    """Rows of float32, (n_rows, width), appended one by one to a file, or in memory where ``file`` is None."""

    def __init__(self, width: int, file: Path | None) -> None:
        self._width, self._file, self._n = width, file, 0
        self._memory = bytearray()  # all rows, or those that are not in the file yet
        if file is not None:
            file.unlink(missing_ok=True)

    def __len__(self) -> int:
        return self._n

    def append(self, row: NDArray[np.float32]) -> None:
        """Add a row, (width,)."""
        self._memory += row.tobytes()
        self._n += 1
        if len(self._memory) >= _BLOCK:
            self._flush()

    def rows(self, n: int | None = None) -> NDArray[np.float32]:
        """Return the first ``n`` rows, all by default; mapped where they are on disk."""
        self._flush()
        if self._file is None or self._n == 0:
            return np.frombuffer(bytes(self._memory), dtype=np.float32).reshape(-1, self._width)[:n]
        return np.memmap(self._file, dtype=np.float32, mode="r", shape=(self._n, self._width))[:n]

    def truncate(self, n: int) -> None:
        """Keep the first ``n`` rows."""
        if n >= self._n:
            return
        self._flush()
        self._n, size = n, 4 * self._width * n
        if self._file is None:
            del self._memory[size:]
        else:
            os.truncate(self._file, size)

    def drop(self) -> None:
        """Forget the rows."""
        self._n, self._memory = 0, bytearray()
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._file is None or not self._memory:
            return
        try:
            with self._file.open("ab") as stream:
                stream.write(self._memory)
        except OSError as error:
            raise OutputError(
                f"{self._file}: the tracks cannot be kept ({error}). Make room, or choose another place for the output."
            ) from error
        self._memory = bytearray()
