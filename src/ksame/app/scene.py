"""``ksame deidentify``: photographs and video."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ksame.app import talk
from ksame.app.config_file import ConfigOption
from ksame.app.options import (
    METADATA_HELP,
    SCHEDULER_HELP,
    DryRunOption,
    cover_help,
    level_help,
    method_help,
    scenes,
    with_options,
)
from ksame.errors import ExitCode, UsageError
from ksame.heads.covers import COVERS, HEAD
from ksame.scheduling import LOCAL

_FILES = "Input and output"
_FACES = "Faces"
_WHO = "Who, when and where"
_MEDIA = "Media"


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
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            show_default=False,
            help="File to write, or its URL; or a folder, whose name has no suffix or ends in a slash. With "
            "--codec png or jpeg a recording becomes a folder of frames.",
            rich_help_panel=_FILES,
        ),
    ] = None
    manifest: Annotated[
        Path | None,
        typer.Option(
            help="A job in a file, given alone: it is run, or goes on where it stopped. With MEDIA and options, the "
            "file is written. At the end it lists what became of each file. It names originals: secret!",
            rich_help_panel=_FILES,
        ),
    ] = None
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help=method_help(),
            rich_help_panel=_FACES,
        ),
    ] = "someone-else"
    k: Annotated[
        int,
        typer.Option(
            "--k",
            "-k",
            help="How many people share a face. Where there are fewer, people who do not exist fill up, and hide "
            "nobody; the certificate says how many are real (k_real).",
            rich_help_panel=_FACES,
        ),
    ] = 10
    cover: Annotated[
        str,
        typer.Option(help=cover_help(), rich_help_panel=_FACES),
    ] = HEAD.name
    level: Annotated[float | None, typer.Option(help=level_help(scenes()), rich_help_panel=_FACES)] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Leave this person as they are, by the name in ksame people.", rich_help_panel=_WHO),
    ] = None
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Replace this person only; all others stay as they are, but for those who were not seen well enough "
            "to be told from this person: they are masked.",
            rich_help_panel=_WHO,
        ),
    ] = None
    mask: Annotated[
        list[str] | None,
        typer.Option(help="Mask this person, by fill where the method is no mask.", rich_help_panel=_WHO),
    ] = None
    another: Annotated[
        list[str] | None,
        typer.Option(
            help="Draw another face for this person than last time, with the same --seed, and so for all who share it. "
            "Everyone else keeps theirs. Name them twice for the face after that.",
            rich_help_panel=_WHO,
        ),
    ] = None
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Change faces from here on: seconds or h:mm:ss. Before, everyone is as they were.",
            rich_help_panel=_WHO,
        ),
    ] = None
    end: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="Change faces up to here: seconds or h:mm:ss. After it, everyone is as they were.",
            rich_help_panel=_WHO,
        ),
    ] = None
    region: Annotated[
        list[str] | None,
        typer.Option(
            help="A rectangle x,y,width,height in pixels that is filled in: a screen, a number plate, a face that was "
            "not found. Always, or for a time: 0:05@20,40,200,120..0:12@60,44,200,120 moves straight from the one "
            "place to the other; 0:05@20,40,200,120..0:12 stands still.",
            rich_help_panel=_WHO,
        ),
    ] = None
    boxes: Annotated[
        Path | None,
        typer.Option(
            help="Boxes of another detector that are filled too, where ksame has found no face: CSV or JSON with frame "
            "(from 0), x, y, width, height in pixels, or COCO.",
            rich_help_panel=_WHO,
        ),
    ] = None
    audio: Annotated[
        str,
        typer.Option(
            help="keep or drop the sound, or disguise it: its pitch and formants move, words stay. A disguised voice "
            "is not anonymous: whoever finds out by how much can move it back.",
            rich_help_panel=_MEDIA,
        ),
    ] = "keep"
    codec: Annotated[
        str | None,
        typer.Option(help="h264, hevc, vp9, mpeg4, wmv2, ffv1; for frames png or jpeg.", rich_help_panel=_MEDIA),
    ] = None
    quality: Annotated[
        int | None,
        typer.Option(
            help="Video 0 (best) to 51; JPEG and WebP 1 to 100 (best).",
            rich_help_panel=_MEDIA,
        ),
    ] = None
    container: Annotated[
        str | None,
        typer.Option(help="mp4, mov, mkv, webm, avi, wmv or gif for outputs in a folder.", rich_help_panel=_MEDIA),
    ] = None
    keep_metadata: Annotated[
        list[str] | None,
        typer.Option(help=METADATA_HELP, rich_help_panel=_MEDIA),
    ] = None
    damaged: Annotated[
        str,
        typer.Option(
            help="refuse a recording with damaged frames, or mask: these frames become black.", rich_help_panel=_MEDIA
        ),
    ] = "refuse"
    frames: Annotated[
        bool,
        typer.Option("--frames", help="A folder is one recording in numbered pictures.", rich_help_panel=_FILES),
    ] = False
    keep_names: Annotated[
        bool,
        typer.Option(
            "--keep-names",
            help="Name outputs in a folder as the originals; by default they are numbered.",
            rich_help_panel=_FILES,
        ),
    ] = False
    tracks: Annotated[
        Path | None,
        typer.Option(
            help="Who is where, to be edited by hand: a file, or for several files a folder with one for each. Read if "
            "it exists, otherwise written. Its names are those of --keep. It is as secret as the originals.",
            rich_help_panel=_WHO,
        ),
    ] = None
    review: Annotated[
        Path | None,
        typer.Option(help="Contact sheet (.png, .jpg) to look through. It shows originals!", rich_help_panel=_FILES),
    ] = None
    link_table: Annotated[
        Path | None,
        typer.Option(help="Also write who became whom. Secret! Never overwritten.", rich_help_panel=_FILES),
    ] = None
    vault: Annotated[
        Path | None,
        typer.Option(
            help="Also seal everybody's originals and who became whom in this file, such as case.age: each --recipient "
            "can bring one person back with ksame vault open. Never overwritten.",
            rich_help_panel=_FILES,
        ),
    ] = None
    recipient: Annotated[
        list[str] | None,
        typer.Option(
            help="Public key, age1…, that opens the --vault; give it several times for several keys. Make one with: "
            "ksame vault keygen.",
            rich_help_panel=_FILES,
        ),
    ] = None
    sign: Annotated[
        Path | None,
        typer.Option(help="Ed25519 private key (PEM) to sign the certificate.", rich_help_panel=_FILES),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(
            help="Repeat a run of the same files and options on the same machine. A secret.", rich_help_panel=_FACES
        ),
    ] = None
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with an interrupted run of the same command.", rich_help_panel=_FILES),
    ] = False
    force: Annotated[bool, typer.Option("--force", help="Replace earlier outputs.", rich_help_panel=_FILES)] = False
    workers: Annotated[int | None, typer.Option(help="Files worked on at the same time.", rich_help_panel=_FILES)] = (
        None
    )
    scheduler: Annotated[str, typer.Option(help=SCHEDULER_HELP, rich_help_panel=_FILES)] = LOCAL
    device: Annotated[
        str, typer.Option(help="Where heads are invented: auto, cpu or cuda.", rich_help_panel=_FILES)
    ] = "auto"
    config: ConfigOption = None
    dry_run: DryRunOption = False
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False


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
    if release.exit_code is not ExitCode.DONE:
        raise typer.Exit(release.exit_code)
