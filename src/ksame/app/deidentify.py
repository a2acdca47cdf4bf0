"""``ksame deidentify``: photographs and video."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ksame.app import talk
from ksame.app.config_file import ConfigOption
from ksame.app.options import (
    SCHEDULER_HELP,
    AsJson,
    Damaged,
    Device,
    DryRun,
    Frames,
    PublicKeys,
    Sign,
    cover_help,
    face_option,
    file_option,
    level_help,
    media_option,
    method_help,
    run_option,
    scenes,
    who_option,
    with_options,
)
from ksame.errors import ExitCode, UsageError
from ksame.heads.covers import COVERS, HEAD
from ksame.scheduling import LOCAL


@dataclass(frozen=True)
class DeidentifyCommand:
    """What ``ksame deidentify`` is told."""

    media: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MEDIA",
            help="Photographs, recordings, folders of them, patterns in quotes, or URLs such as s3://bucket/folder.",
            show_default=False,
        ),
    ] = None
    output: str | None = file_option(
        None,
        "File to write, or its URL; or a folder, whose name has no suffix or ends in a slash. With --codec png or jpeg "
        "a recording becomes a folder of frames.",
        *("--output", "-o"),
    )
    manifest: Path | None = file_option(
        None,
        "A file that holds the job. With MEDIA and options it is written; given alone it is run, or goes on where it "
        "stopped. At the end it lists what became of each file. It names originals: secret!",
    )
    method: str = face_option("someone-else", method_help(), "--method", "-m")
    k: int = face_option(
        10,
        "How many people share a face. Where there are fewer, people who do not exist fill the group; they hide "
        "nobody, and the certificate says how many are real (k_real).",
        *("--k", "-k"),
    )
    cover: str = face_option(HEAD.name, cover_help())
    level: float | None = face_option(None, level_help(scenes()))
    keep: list[str] | None = who_option(None, "Leave this person as they are, by the name in ksame people.")
    only: list[str] | None = who_option(
        None,
        "Replace this person only; all others stay as they are, but for those who were not seen well enough to be told "
        "from this person: they are masked.",
    )
    mask: list[str] | None = who_option(None, "Mask this person, by fill where the method is no mask.")
    another: list[str] | None = who_option(
        None,
        "Draw another face for this person than last time, with the same --seed, and so for all who share it. Everyone "
        "else keeps theirs. Name them twice for the face after that.",
    )
    start: str | None = who_option(
        None, "Change faces from this time on: seconds or h:mm:ss. Before it, everyone stays as they were.", "--from"
    )
    end: str | None = who_option(
        None, "Change faces up to this time: seconds or h:mm:ss. After it, everyone stays as they were.", "--to"
    )
    region: list[str] | None = who_option(
        None,
        "A rectangle x,y,width,height in pixels that is filled in: a screen, a number plate, a face that was not "
        "found. Always, or for a time: 0:05@20,40,200,120..0:12@60,44,200,120 moves straight from the one place to the "
        "other; 0:05@20,40,200,120..0:12 stands still.",
    )
    boxes: Path | None = who_option(
        None,
        "Boxes of another detector that are filled too, where ksame has found no face: CSV or JSON with frame (from "
        "0), x, y, width, height in pixels, or COCO.",
    )
    audio: str = media_option(
        "keep",
        "keep or drop the sound, or disguise it: its pitch and formants move, words stay. A disguised voice is not "
        "anonymous: whoever finds out by how much can move it back.",
    )
    codec: str | None = media_option(None, "h264, hevc, vp9, mpeg4, wmv2, ffv1; for frames png or jpeg.")
    quality: int | None = media_option(None, "Video 0 (best) to 51; JPEG and WebP 1 to 100 (best).")
    container: str | None = media_option(None, "mp4, mov, mkv, webm, avi, wmv or gif for outputs in a folder.")
    keep_metadata: list[str] | None = media_option(
        None,
        "An entry that goes over, such as title, Copyright, subtitles; or a group. date: when it was made. location: "
        "where. all: dates, camera, names and notes, but no place and no serial number. Thumbnails never go over.",
    )
    damaged: Damaged = "refuse"
    frames: Frames = False
    keep_names: bool = file_option(False, "Name outputs in a folder as the originals; by default they are numbered.")
    tracks: Path | None = who_option(
        None,
        "Who is where, to be edited by hand: a file, or for several files a folder with one for each. Read if it "
        "exists, otherwise written. Its names are those of --keep. It is as secret as the originals.",
    )
    review: Path | None = file_option(None, "Contact sheet (.png, .jpg) to look through. It shows originals!")
    link_table: Path | None = file_option(None, "Also write who became whom. Secret! Never overwritten.")
    vault: Path | None = file_option(
        None,
        "Also seal everybody's originals and who became whom in this file, such as case.age: each --recipient can "
        "bring one person back with ksame vault open. Never overwritten.",
    )
    recipient: PublicKeys = None
    sign: Sign = None
    seed: int | None = face_option(None, "Repeat a run of the same files and options on the same machine. A secret.")
    resume: bool = file_option(False, "Go on with an interrupted run of the same command.")
    force: bool = file_option(False, "Replace earlier outputs.")
    workers: int | None = run_option(None, "Files worked on at the same time.")
    scheduler: str = run_option(LOCAL, SCHEDULER_HELP)
    device: Device = "auto"
    config: ConfigOption = None
    dry_run: DryRun = False
    as_json: AsJson = False


@talk.guarded
@with_options
def deidentify_command(options: DeidentifyCommand) -> None:
    """Give everyone in photographs and video another face, keep everything else, and certify the result.

    People are found, followed and told apart. Each group of k gets one face, by default of somebody who does not exist,
    which moves, speaks and looks as they did. A face that cannot be replaced is masked. Sound stays; metadata goes. The
    exit code is 3 where a mask stood in, a file could not be read, or no face was found in it.
    """
    from ksame.app.manifest import with_manifest
    from ksame.app.places import parse_region, parse_time
    from ksame.app.rehearsal import rehearse
    from ksame.app.scene_report import for_machines, show
    from ksame.privacy.signing import load_private_key
    from ksame.scene.boxes import read_boxes
    from ksame.scene.config import JobConfig
    from ksame.scene.media import EncoderConfig
    from ksame.scene.release import ReleaseOptions, deidentify_media

    options, described = with_manifest(options)
    if not options.media or options.output is None:
        raise UsageError("Name MEDIA and -o OUTPUT, or a --manifest that has them.")
    config = JobConfig(
        method=options.method,
        k=options.k,
        cover=COVERS[options.cover],
        level=options.level,
        keep=tuple(options.keep or ()),
        only=tuple(options.only or ()),
        mask=tuple(options.mask or ()),
        another=tuple(options.another or ()),
        span=(parse_time(options.start, 0.0), parse_time(options.end, float("inf"))),
        regions=tuple(parse_region(text) for text in options.region or ()),
        boxes=None if options.boxes is None else read_boxes(options.boxes),
        encoding=EncoderConfig(
            options.codec,
            options.quality,
            options.audio,  # type: ignore[arg-type]  # checked there
            tuple(options.keep_metadata or ()),
        ),
        workers=options.workers,
        scheduler=options.scheduler,
        device=options.device,
        damaged=options.damaged,  # type: ignore[arg-type]  # checked there
    )
    beside = ReleaseOptions(
        frames=options.frames,
        keep_names=options.keep_names,
        container=options.container,
        tracks=options.tracks,
        review=options.review,
        link_table=options.link_table,
        vault=options.vault,
        recipients=tuple(options.recipient or ()),
        manifest=options.manifest,
        described=described,
        sign=None if options.sign is None else load_private_key(options.sign),
        resume=options.resume,
        force=options.force,
    )
    if options.dry_run:
        rehearsal = rehearse(options.media, options.output, config, beside)
        talk.emit(rehearsal.as_dict()) if options.as_json else rehearsal.show()
        raise typer.Exit(rehearsal.exit_code)
    try:
        with talk.bars() as on_progress:
            release = deidentify_media(
                options.media, options.output, config=config, options=beside, seed=options.seed, on_progress=on_progress
            )
    except KeyboardInterrupt as error:
        how = "repeat the command with [bold]--resume[/]" if options.manifest is None else "run its manifest"
        talk.say(f"[bold red]interrupted[/]; {how} to go on.")
        raise typer.Exit(ExitCode.INTERRUPTED) from error
    if options.as_json:
        talk.emit(for_machines(release, options.media))
    else:
        show(release, options.media)
    raise typer.Exit(release.exit_code)
