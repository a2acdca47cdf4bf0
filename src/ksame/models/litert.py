"""A TensorFlow Lite network, run by LiteRT in one thread."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

_GREETING = b"INFO: Created TensorFlow Lite"
_STDERR = 2
_FIRST = Lock()
"""Held while the first network of a process is read, which is when the greeting comes; others wait for it."""
_greeted = False


@contextmanager
def _without_greeting() -> Iterator[None]:
    """Keep what LiteRT says of itself from stderr, which no setting does; what else is written there comes after."""
    global _greeted
    with _FIRST:
        if not _greeted:
            with _stderr_filtered():
                yield
            _greeted = True
            return
    yield


@contextmanager
def _stderr_filtered() -> Iterator[None]:
    try:
        kept = os.dup(_STDERR)
    except OSError:  # there is no stderr
        yield
        return
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(kept, _STDERR)
            os.close(kept)
            said.seek(0)
            for line in said:
                if not line.startswith(_GREETING):
                    os.write(_STDERR, line)


@dataclass(frozen=True, eq=False)
class Network:
    """An interpreter of one thread, and where its input and outputs are: asking for that takes long."""

    interpreter: Any
    input: int
    outputs: tuple[int, ...]

    @classmethod
    def of(cls, content: bytes) -> Network:
        """Return the network in the bytes of a ``.tflite`` file."""
        with _without_greeting():
            interpreter = Interpreter(model_content=content, num_threads=1)
            interpreter.allocate_tensors()
        outputs = sorted(interpreter.get_output_details(), key=lambda output: str(output["name"]))
        places = tuple(int(output["index"]) for output in outputs)
        return cls(interpreter, int(interpreter.get_input_details()[0]["index"]), places)

    def run(self, data: NDArray[Any]) -> list[NDArray[np.float32]]:
        """Return the outputs for one item, in the order of their names."""
        self.interpreter.set_tensor(self.input, data[None])
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(output) for output in self.outputs]
