"""Networks in ONNX files, run by ONNX Runtime on the processor or on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ksame.errors import ModelError, UsageError

DEVICES = ("auto", "cpu", "cuda")
"""Where networks may run; "auto" takes a GPU where there is one."""
_CUDA = "CUDAExecutionProvider"


def session(
    network: Path | bytes,
    *,
    device: str = "cpu",
    threads: int = 0,
    weights_only: bool = False,
    keeps_memory: bool = False,
) -> Any:
    """Load a network.

    Parameters
    ----------
    network : Path or bytes
        An ONNX file, or what is in one.
    device : str
        One of ``DEVICES``.
    threads : int
        On the processor; 0 takes one per core.
    weights_only : bool
        Only weights are quantised: they are unpacked once, not for every picture.
    keeps_memory : bool
        What one run took is kept for the next: for networks whose pictures have few sizes. Others would keep ever more.
    """
    import onnxruntime

    if device not in DEVICES:
        raise UsageError(f"Unknown device {device!r}. Choose one of: {', '.join(DEVICES)}.")
    has_gpu = _CUDA in onnxruntime.get_available_providers()
    if device == "cuda" and not has_gpu:
        raise UsageError("ONNX Runtime finds no GPU. Install onnxruntime-gpu and a CUDA driver, or use --device cpu.")
    if isinstance(network, Path) and not network.is_file():
        raise ModelError(f"{network}: there is no such file; expected a network in ONNX format.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = keeps_memory
    if weights_only:
        options.add_session_config_entry("session.disable_quant_qdq", "1")
    providers = [_CUDA, "CPUExecutionProvider"] if has_gpu and device != "cpu" else ["CPUExecutionProvider"]
    source = str(network) if isinstance(network, Path) else network
    try:
        return onnxruntime.InferenceSession(source, options, providers=providers)
    except Exception as error:  # onnxruntime's own classes have no common base
        name = network if isinstance(network, Path) else "a network of this package"
        raise ModelError(f"{name}: onnxruntime cannot load this network ({error}).") from error


def on_gpu(network: Any) -> bool:
    """Tell whether a loaded network runs on a GPU."""
    return _CUDA in network.get_providers()
