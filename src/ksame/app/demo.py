"""``ksame demo``: what ksame does, on people who do not exist."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ksame.app import talk


@talk.guarded
def demo_command(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path("ksame-demo"),
    people: Annotated[int, typer.Option(help="How many people, the astronaut included.")] = 40,
    k: Annotated[int, typer.Option("--k", "-k", help="How many people share a face.")] = 5,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier demo.")] = False,
) -> None:
    """Release people who do not exist and one real photograph, attack the result; then de-identify a film."""
    from ksame.app.demo_faces import demo_faces
    from ksame.app.demo_scenes import demo_scenes

    demo_faces(output, people=people, k=k, force=force)
    demo_scenes(output / "scenes", force=force)
