"""What was measured, where, and a page of it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from ksame.bench.base import Comparison
from ksame.version import software

_PACKAGES = ("numpy", "scipy", "scikit-learn", "opencv-python-headless", "onnxruntime", "av", "pillow")


def machine() -> dict[str, Any]:
    """Return what the seconds depend on: processor, cores, how busy they are, threads of NumPy, versions."""
    threads = [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": None if load is None else round(load, 1),
        "blas_threads": max(threads, default=None),
        "software": software(*_PACKAGES),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def ratio_text(ratio: float | None) -> str:
    """Return a ratio with the digits that matter.

    Examples
    --------
    >>> ratio_text(41.7), ratio_text(0.0834), ratio_text(None)
    ('42', '0.083', '')
    """
    if ratio is None:
        return ""
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"


def cells(name: str, comparison: Comparison) -> tuple[str, ...]:
    """Return a row of the table, see :data:`HEADINGS`."""
    seconds = [each for each in (comparison.seconds, comparison.yardstick_seconds) if each is not None]
    figures = ", ".join(f"{key} {value:.3g}" for key, value in comparison.figures.items())
    return (
        *(name, comparison.what, comparison.yardstick),
        "skipped" if comparison.skipped else ratio_text(comparison.ratio),
        ratio_text(comparison.cpu_ratio),
        " / ".join(f"{each:.3g} s" for each in seconds),
        comparison.skipped or figures,
    )


HEADINGS = ("benchmark", "what", "yardstick", "times as fast", "by CPU time", "ksame / yardstick", "seen besides")


_PAGE = """\
# Speed beside yardsticks

Written by `{command}`. Every row ran both sides in turns, in one run, on people who do not exist. *Times as fast* is
the yardstick's time divided by that of ksame: below 1 the yardstick is faster. Ratios differ by machine and by what
else it does, so measure on your own; *by CPU time* counts the processor time of all threads and processes, which
other programs disturb less.

{system}, {processor}, {cores} cores, load {load} at the start, {blas_threads} BLAS threads. {versions}.

{table}

deface blurs ellipses; the method `blur` is its counterpart. `someone-else`, the default of ksame, invents whole heads
with a network and judges each by a recogniser. `--install` puts yardsticks into environments of their own.
"""


def page(rows: Sequence[tuple[str, Comparison]], where: Mapping[str, Any], command: str) -> str:
    """Return a page in Markdown."""
    lines = [HEADINGS, ("---", "---", "---", "---:", "---:", "---:", "---"), *(cells(*row) for row in rows)]
    return _PAGE.format(
        **where,
        command=command,
        versions=", ".join(f"{name} {version}" for name, version in where["software"].items()),
        table="\n".join(f"| {' | '.join(line)} |" for line in lines),
    )
