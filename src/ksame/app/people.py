"""``ksame people``: who is in photographs and video."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ksame.app import talk
from ksame.app.options import AsJson, Damaged, Frames
from ksame.errors import ExitCode


@talk.guarded
def people_command(
    media: Annotated[
        list[str],
        typer.Argument(metavar="MEDIA", help="Photographs, recordings, folders of them, or patterns in quotes."),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Contact sheet (.png, .jpg) to write. It shows originals!")
    ] = None,
    frames: Frames = False,
    damaged: Damaged = "refuse",
    tracks: Annotated[
        Path | None,
        typer.Option(help="List who is in these tracks, a file or a folder; where there are none, they are written."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a sheet that exists.")] = False,
    workers: Annotated[int | None, typer.Option(help="Files worked on at the same time.")] = None,
    as_json: AsJson = False,
) -> None:
    """List who is in photographs and video, by the names that ksame deidentify has for the same files.

    For one file these are also the names in its tracks. Where tracks were edited, give them here too with --tracks.
    """
    from ksame.app.people_listing import for_machines, listing, show
    from ksame.scene.config import JobConfig
    from ksame.scene.paths import find_inputs
    from ksame.scene.review import check_sheet, write_sheet

    config = JobConfig(workers=workers, damaged=damaged)  # type: ignore[arg-type]  # checked there
    if output is not None:
        check_sheet(output, may_exist=force)
    inputs = find_inputs(media, frames=frames)
    listed = listing(inputs, config, sheet=output is not None, tracks=tracks)
    if output is not None and listed.sheet is not None:
        write_sheet(listed.sheet, output)
        talk.warn_of_secret(f"{output} shows originals. Keep it.")
    if as_json:
        talk.emit(for_machines(listed))
    else:
        show(listed)
    if listed.failed:
        raise typer.Exit(ExitCode.WITHHELD)
