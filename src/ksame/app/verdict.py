"""What ``ksame verify`` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer
from rich.table import Table

from ksame.app import talk
from ksame.errors import ExitCode, UsageError
from ksame.privacy.findings import Finding, conclusion, passed
from ksame.privacy.signing import load_public_key


def verify_scene_command(
    certificate: Path, linkage: Path | None, key: Path | None, *, repeated: bool, as_json: bool
) -> None:
    """Check photographs and recordings against their certificate."""
    from ksame.scene.linkage import SceneLinkage
    from ksame.scene.verification import verify_scenes

    if repeated:
        raise UsageError(
            "--originals is for releases of faces. To compare photographs and video byte for byte, repeat the command "
            "with the seed in the link table."
        )
    with talk.working("verifying"):
        findings = verify_scenes(
            certificate,
            key=None if key is None else load_public_key(key),
            linkage=None if linkage is None else SceneLinkage.read(linkage),
        )
    tell_findings(certificate, findings, as_json=as_json)


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
