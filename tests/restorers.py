"""Toy networks that restore faces, written as ONNX files."""

from pathlib import Path

import pytest


def write_restorer(file: Path, factor: float = -1.0, shape=("n", 3, 64, 64), answer=None, divide: bool = False) -> Path:
    """Write a network that multiplies a face, in [-1, 1], by ``factor``: -1 turns a negative into the photograph.

    ``answer`` is the shape of its output where that differs; with ``divide``, it divides by zero.
    """
    onnx = pytest.importorskip("onnx", reason="needs the extra dev")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    inner = "whole" if answer is not None else "restored"
    nodes = [helper.make_node("Div" if divide else "Mul", ["published", "factor"], [inner])]
    if answer is not None:
        nodes.append(helper.make_node("GlobalAveragePool", [inner], ["restored"]))
    graph = helper.make_graph(
        nodes,
        "restorer",
        [helper.make_tensor_value_info("published", kind, list(shape))],
        [helper.make_tensor_value_info("restored", kind, list(answer or shape))],
        [helper.make_tensor("factor", kind, [1], [0.0 if divide else factor])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(file))
    return file
