"""What ``ksame verify`` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer
from rich.table import Table

from ksame.app import talk
from ksame.errors import ExitCode
from ksame.privacy.findings import Finding, conclusion, passed


def tell_findings(what: Path, findings: Sequence[Finding], *, as_json: bool) -> None:
    """Print findings, and end with the exit code they mean."""
    good = passed(findings)
    if as_json:
        talk.emit(
            {
                "schema": "ksame/verification",
                "version": 1,
                "passed": good,
                "conclusion": conclusion(findings),
                "findings": [asdict(f) for f in findings],
            }
        )
    else:
        table = Table("check", "result", "detail", title=talk.plain(str(what)))
        words = {True: "[green]passed[/]", False: "[bold red]FAILED[/]", None: "[yellow]not judged[/]"}
        for finding in findings:
            table.add_row(finding.name, words[finding.passed], talk.plain(finding.detail))
        talk.show(table)
        talk.say(f"[bold]{conclusion(findings)}[/]")
    if not good:
        raise typer.Exit(ExitCode.NOT_MET)
