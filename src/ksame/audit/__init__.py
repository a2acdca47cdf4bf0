"""Auditing any anonymisation: plan, result, report.

The package can be called: ``ksame.audit(originals, released)`` is :func:`ksame.audit.audit`.
"""

import sys
from types import ModuleType
from typing import Any

from ksame.audit.pairing import Pairing, pair_images
from ksame.audit.report import render_report, write_report
from ksame.audit.result import AuditResult, audit_schema
from ksame.audit.run import AuditConfig, audit

__all__ = [
    "AuditConfig",
    "AuditResult",
    "Pairing",
    "audit",
    "audit_schema",
    "pair_images",
    "render_report",
    "write_report",
]


class _Callable(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> AuditResult:
        return audit(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
