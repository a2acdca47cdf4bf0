"""A TensorFlow Lite network, run by LiteRT in one thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Network:
    """An interpreter of one thread, and where its input and outputs are: asking for that takes long."""

    interpreter: Any
    input: int
    outputs: tuple[int, ...]

    @classmethod
    def of(cls, content: bytes) -> Network:
        """Return the network in the bytes of a ``.tflite`` file."""
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
