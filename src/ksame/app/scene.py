"""``ksame deidentify`` and ``ksame people``: photographs and video."""

from __future__ import annotations

import os
import re
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ksame.app import talk
from ksame.errors import ExitCode, PrivacyWarning, UsageError, parameter_error, seed_number, whole_number

if TYPE_CHECKING:
    from ksame.app.gathering import Places
    from ksame.heads.head import Cover
    from ksame.scene.pipeline import Options, Result

_FILES = "Input and output"
_FACES = "Faces"
_WHO = "Who, when and where"
_MEDIA = "Media"
_FAR = 1_000_000  # pixels: more than any picture has across
_PICTURES = (".png", ".jpg", ".jpeg")


@talk.guarded
def deidentify_command(
    media: Annotated[
        list[str],
        typer.Argument(metavar="MEDIA", help="Photographs, recordings, folders of them, or patterns in quotes."),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="File to write; or a folder, whose name has no suffix or ends in a slash. With --codec png or jpeg a "
            "recording becomes a folder of frames.",
            rich_help_panel=_FILES,
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="someone-else, k-same-m, k-diff, or a mask: fill, blackout, pixelate, blur, threshold, noise, "
            "noise-bw, bar-mask, t-mask.",
            rich_help_panel=_FACES,
        ),
    ] = "someone-else",
    k: Annotated[
        int,
        typer.Option(
            "--k",
            "-k",
            help="How many people share a face. Where there are fewer, people who do not exist fill up, and hide "
            "nobody; the certificate says how many are real (k_real).",
            rich_help_panel=_FACES,
        ),
    ] = 10,
    cover: Annotated[
        str,
        typer.Option(
            help="What is invented: the whole head, or the face alone. With face, hair and outline stay, and by them "
            "recognisers still pick out many people.",
            rich_help_panel=_FACES,
        ),
    ] = "head",
    level: Annotated[float | None, typer.Option(help="Strength of a mask.", rich_help_panel=_FACES)] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Leave this person as they are, by the name in ksame people.", rich_help_panel=_WHO),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Replace this person only; all others stay as they are, but for those who were not seen well enough "
            "to be told from this person: they are masked.",
            rich_help_panel=_WHO,
        ),
    ] = None,
    mask: Annotated[
        list[str] | None,
        typer.Option(help="Mask this person, by fill where the method is no mask.", rich_help_panel=_WHO),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Change faces from here on: seconds or h:mm:ss. Before, everyone is as they were.",
            rich_help_panel=_WHO,
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="Change faces up to here: seconds or h:mm:ss. After it, everyone is as they were.",
            rich_help_panel=_WHO,
        ),
    ] = None,
    region: Annotated[
        list[str] | None,
        typer.Option(
            help="A rectangle x,y,width,height in pixels that is always filled in: a screen, a number plate, a face "
            "that was not found.",
            rich_help_panel=_WHO,
        ),
    ] = None,
    audio: Annotated[str, typer.Option(help="keep or drop the sound.", rich_help_panel=_MEDIA)] = "keep",
    codec: Annotated[
        str | None,
        typer.Option(help="h264, hevc, vp9, mpeg4, wmv2, ffv1; for frames png or jpeg.", rich_help_panel=_MEDIA),
    ] = None,
    quality: Annotated[
        int | None,
        typer.Option(
            help="Video 0 (best) to 51; JPEG and WebP 1 to 100 (best).",
            rich_help_panel=_MEDIA,
        ),
    ] = None,
    container: Annotated[
        str | None,
        typer.Option(help="mp4, mov, mkv, webm, avi, wmv or gif for outputs in a folder.", rich_help_panel=_MEDIA),
    ] = None,
    keep_metadata: Annotated[
        list[str] | None,
        typer.Option(help="An entry that goes over, such as title, Copyright, subtitles.", rich_help_panel=_MEDIA),
    ] = None,
    damaged: Annotated[
        str,
        typer.Option(
            help="refuse a recording with damaged frames, or mask: these frames become black.", rich_help_panel=_MEDIA
        ),
    ] = "refuse",
    frames: Annotated[
        bool,
        typer.Option("--frames", help="A folder is one recording in numbered pictures.", rich_help_panel=_FILES),
    ] = False,
    keep_names: Annotated[
        bool,
        typer.Option(
            "--keep-names",
            help="Name outputs in a folder as the originals; by default they are numbered.",
            rich_help_panel=_FILES,
        ),
    ] = False,
    tracks: Annotated[
        Path | None,
        typer.Option(
            help="Who is where in one file, to be edited by hand: read if it exists, otherwise written. Its names are "
            "those of --keep. It holds the geometry of faces, and is as secret as the originals.",
            rich_help_panel=_WHO,
        ),
    ] = None,
    review: Annotated[
        Path | None,
        typer.Option(help="Contact sheet (.png, .jpg) to look through. It shows originals!", rich_help_panel=_FILES),
    ] = None,
    link_table: Annotated[
        Path | None,
        typer.Option(help="Also write who became whom. Secret! Never overwritten.", rich_help_panel=_FILES),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(help="Ed25519 private key (PEM) to sign the certificate.", rich_help_panel=_FILES),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Repeat a run of the same files and options on the same machine. A secret.", rich_help_panel=_FACES
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with an interrupted run of the same command.", rich_help_panel=_FILES),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier outputs.", rich_help_panel=_FILES)] = False,
    workers: Annotated[
        int | None, typer.Option(help="Files worked on at the same time.", rich_help_panel=_FILES)
    ] = None,
    device: Annotated[
        str, typer.Option(help="Where heads are invented: auto, cpu or cuda.", rich_help_panel=_FILES)
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Give everyone in photographs and video another face, keep everything else, and certify the result.

    People are found, followed and told apart. Each group of k gets one face, by default of somebody who does not exist,
    which moves, speaks and looks as they did. A face that cannot be replaced is masked. Sound stays; metadata goes. The
    exit code is 3 where a mask stood in, a file could not be read, or no face was found in it.
    """
    from ksame.app.gathering import gather, make_folders, places
    from ksame.privacy.signing import load_private_key
    from ksame.scene.media import EncoderConfig
    from ksame.scene.pipeline import Job, Options, deidentify_scenes

    options = Options(
        method=method,
        k=k,
        cover=parse_cover(cover),
        level=level,
        keep=tuple(keep or ()),
        only=tuple(only or ()),
        mask=tuple(mask or ()),
        span=(parse_time(start, 0.0), parse_time(end, float("inf"))),
        regions=tuple(parse_region(text) for text in region or ()),
        encoding=EncoderConfig(codec, quality, audio, tuple(keep_metadata or ())),  # type: ignore[arg-type]  # checked there
        workers=workers,
        device=device,
        damaged=damaged,  # type: ignore[arg-type]  # checked there
    )
    if seed is not None:
        seed_number("deidentify", seed)
    found, many = gather(media, frames=frames, output=Path(output))
    wanted = places(found, output, many=many, keep_names=keep_names, container=container, codec=codec, resume=resume)
    _check_places(wanted, review, link_table, tracks, resume=resume, force=force)
    key = None if sign is None else load_private_key(sign)
    _warn(options)
    jobs = [Job(one.path, place) for one, place in zip(found, wanted.destinations, strict=True)]
    made = make_folders(wanted)

    def finish(result: Result) -> None:
        from ksame.app.scene_report import publish

        publish(result, options, wanted, key=key, review=review, link_table=link_table, resumed=resume)

    try:
        result = deidentify_scenes(
            jobs,
            options,
            work=wanted.work,
            seed=seed,
            tracks=tracks,
            resume=resume,
            force=force,
            track=talk.track,
            on_done=finish,
        )
    except KeyboardInterrupt as error:
        talk.say("[bold red]interrupted[/]; repeat the command with [bold]--resume[/] to go on.")
        raise typer.Exit(ExitCode.INTERRUPTED) from error
    finally:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
    from ksame.app.scene_report import exit_code, for_machines, show

    if as_json:
        talk.emit(for_machines(result, options, wanted))
    else:
        show(result, wanted)
    if exit_code(result) is not ExitCode.DONE:
        raise typer.Exit(exit_code(result))


@talk.guarded
def people_command(
    media: Annotated[
        list[str],
        typer.Argument(metavar="MEDIA", help="Photographs, recordings, folders of them, or patterns in quotes."),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Contact sheet (.png, .jpg) to write. It shows originals!")
    ] = None,
    frames: Annotated[bool, typer.Option("--frames", help="A folder is one recording in numbered pictures.")] = False,
    damaged: Annotated[
        str, typer.Option(help="refuse a recording with damaged frames, or mask: these frames become black.")
    ] = "refuse",
    tracks: Annotated[
        Path | None, typer.Option(help="List who is in these tracks, perhaps edited, instead of looking.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a sheet that exists.")] = False,
    workers: Annotated[int | None, typer.Option(help="Files looked at at the same time.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List who is in photographs and video, by the names that ksame deidentify has for the same files.

    For one file these are also the names in its tracks. Once these are edited, name them with --tracks here too.
    """
    from ksame.app.gathering import gather
    from ksame.app.people import for_machines, listing, show
    from ksame.scene.pipeline import MOST_WORKERS
    from ksame.scene.review import write_sheet

    if workers is not None:
        whole_number("workers", "people", workers, 1, MOST_WORKERS)
    if output is not None:
        _check_sheet(output, may_exist=force)
    found, _ = gather(media, frames=frames)
    busy = workers or max(1, (os.cpu_count() or 1) // 2)
    show_sheet = output is not None
    listed = listing(found, workers=busy, sheet=show_sheet, damaged=damaged, tracks=tracks)  # type: ignore[arg-type]
    if output is not None and listed.sheet is not None:
        write_sheet(listed.sheet, output)
        warnings.warn(f"{output} shows originals. Keep it.", PrivacyWarning, stacklevel=2)
    if as_json:
        talk.emit(for_machines(listed))
    else:
        show(listed)
    if listed.failed:
        raise typer.Exit(ExitCode.WITHHELD)


def _check_sheet(path: Path, *, may_exist: bool) -> None:
    if path.suffix.lower() not in _PICTURES:
        raise UsageError(f"{path}: the contact sheet is a picture; its name ends in {', '.join(_PICTURES)}.")
    if path.exists() and not may_exist:
        raise UsageError(f"{path} exists. Choose another name, or replace it with --force.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist. Make it first.")


def _warn(options: Options) -> None:
    """Tell what will stay as it is, before anything is done."""
    if options.span != (0.0, float("inf")):
        begin, end = options.span
        until = "the end" if end == float("inf") else f"{end:g} s"
        warnings.warn(
            f"Faces are changed from {begin:g} s to {until} only. Before and after, everyone can be recognised.",
            PrivacyWarning,
            stacklevel=2,
        )
    if options.keep or options.only:
        who = f"{', '.join(options.keep)} stay" if options.keep else f"Everyone but {', '.join(options.only)} stays"
        warnings.warn(
            f"{who} as they are, and can be recognised. Somebody taken for two people has two names: look at them all "
            "with ksame people.",
            PrivacyWarning,
            stacklevel=2,
        )


def _check_places(
    wanted: Places, review: Path | None, link_table: Path | None, tracks: Path | None, *, resume: bool, force: bool
) -> None:
    """Refuse, before any work, what must not be replaced and what must not lie among the outputs."""
    from ksame.scene.work import can_resume

    going_on = resume and can_resume(wanted.work)
    for file in (wanted.certificate, wanted.at_risk):
        if file.exists() and not force and not going_on:
            raise UsageError(f"{file} exists. Choose another place, or replace it with --force.")
    if link_table is not None and link_table.exists() and not going_on:
        raise UsageError(f"{link_table} exists; a link table is never overwritten. Choose another name.")
    if review is not None:
        _check_sheet(review, may_exist=force or going_on)
    secrets = [("link table", link_table), ("contact sheet", review), ("file of tracks", tracks)]
    for name, path in secrets:
        if path is None:
            continue
        if wanted.folder is not None and path.resolve().is_relative_to(wanted.folder.resolve()):
            raise UsageError(f"The {name} undoes the work; it must not lie in the folder of the outputs.")
        if not path.absolute().parent.is_dir():
            raise UsageError(f"{path}: the folder {path.parent} does not exist. Make it first.")
        if path.resolve() in {place.resolve() for place in wanted.destinations}:
            raise UsageError(f"{path}: the {name} and an output cannot have one name.")


def parse_cover(text: str) -> Cover:
    """Return the cover of a name."""
    from ksame.heads.head import Cover

    try:
        return Cover(text)
    except ValueError:
        raise parameter_error("cover", "deidentify", f"one of {', '.join(c.value for c in Cover)}", text) from None


def parse_time(text: str | None, default: float) -> float:
    """Return the seconds of a time such as 75, 1:15 or 0:01:15.5.

    Examples
    --------
    >>> parse_time("1:02:03.5", 0.0)
    3723.5
    """
    if text is None:
        return default
    if re.fullmatch(r"(\d{1,9}:){0,2}\d{1,9}(\.\d{0,9})?", text) is None:
        raise parameter_error("time", "deidentify", "seconds, m:ss or h:mm:ss, such as 75 or 1:15", text)
    seconds = 0.0
    for part in text.split(":"):
        seconds = 60 * seconds + float(part)
    return seconds


def parse_region(text: str) -> tuple[float, float, float, float]:
    """Return x, y, width and height of a rectangle.

    Examples
    --------
    >>> parse_region("10,20,30,40")
    (10.0, 20.0, 30.0, 40.0)
    """
    try:
        x, y, width, height = (float(part) for part in text.split(","))
    except ValueError:
        raise parameter_error("region", "deidentify", "x,y,width,height in pixels", text) from None
    if not (0 < width <= _FAR and 0 < height <= _FAR and abs(x) <= _FAR and abs(y) <= _FAR):
        expected = f"x,y,width,height in pixels, none beyond {_FAR}, width and height above 0"
        raise parameter_error("region", "deidentify", expected, text)
    return x, y, width, height
