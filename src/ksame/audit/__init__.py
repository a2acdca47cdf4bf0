"""Auditing any anonymisation: plan, result, report."""

from ksame.audit.report import render_report, write_report
from ksame.audit.result import AuditResult, audit_schema
from ksame.audit.run import audit

__all__ = ["AuditResult", "audit", "audit_schema", "render_report", "write_report"]
