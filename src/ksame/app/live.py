"""``ksame live``: cameras, streams, and files as if they were live."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ksame.app import talk
from ksame.app.options import Device, face_option, option, picture_option, with_options
from ksame.errors import ExitCode, real_number, seed_number

if TYPE_CHECKING:
    from ksame.live import Statistics

_EVERY = 2.0  # seconds between two lines that tell how it goes
_MAX_SECONDS = 1e9  # more than thirty years


@dataclass(frozen=True)
class LiveCommand:
    """What ``ksame live`` is told."""

    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A camera by its number (0) or device (/dev/video0), a stream (rtsp://HOST/PATH, http://...), or a "
            "recording, which is played at its own rate.",
            show_default=False,
        ),
    ]
    output: str = option(
        ...,
        "A folder for numbered segments (out/), a virtual camera (camera, camera:/dev/video2; needs ksame\\[live]), or "
        "a page on this machine only (http://127.0.0.1:8089).",
        *("--output", "-o"),
        metavar="SINK",
    )
    method: str = face_option("someone-else", "someone-else, or a mask: see ksame methods.", "--method", "-m")
    k: int = face_option(
        10,
        "How many people share a face, in the order in which they come, before another one is drawn. The first has it "
        "alone until the second comes.",
        *("--k", "-k"),
    )
    cover: str = face_option("head", "What is invented: head or face.")
    level: float | None = face_option(None, "Strength of a mask.")
    seed: int | None = face_option(None, "Draws the surrogates. A secret. It does not make a live run repeatable.")
    device: Device = "auto"
    latency: float = picture_option(
        0.3,
        "Seconds after which a frame is dropped, not shown. Half of it is for meshes: faces that have none by then are "
        "masked.",
    )
    fps: float = picture_option(15.0, "Frames per second, at most. Fewer leave more of the processor for heads.")
    max_side: int = picture_option(
        1280,
        "Longest side in pixels; larger frames are reduced. Every frame is searched for faces from 24 pixels on, which "
        "takes time in proportion to its area.",
    )
    segment: float = picture_option(10.0, "Seconds in a segment.")
    seconds: float | None = picture_option(None, "End after so many seconds; Ctrl-C ends it too.")
    as_json: bool = option(False, "Print the statistics as JSON at the end.", "--json")


@talk.guarded
@with_options
def live_command(options: LiveCommand) -> None:
    """Replace everyone who is found in a live picture, with a bounded delay.

    Every frame that is shown was searched for faces first. Whoever is found is masked at once, and gets another face as
    soon as it was chosen, judged and invented. A frame that is too late is dropped. Faces below 24 pixels, and heads
    upside down or on their side, take longer to find, and are shown until then. There is no sound, and no certificate.

    The exit code is 3 where no frame could be shown in time, or somebody could never be replaced.
    """
    from ksame.heads.covers import COVERS
    from ksame.live import LiveConfig, Statistics, open_sink, open_source, run_live
    from ksame.live.sources import shown_address
    from ksame.scene.config import JobConfig

    seconds = options.seconds
    if seconds is not None:
        real_number("seconds", "live", seconds, 0, _MAX_SECONDS, above=True)
    if options.seed is not None:
        seed_number("live", options.seed)
    job = JobConfig(
        method=options.method, k=options.k, cover=COVERS[options.cover], level=options.level, device=options.device
    )
    config = LiveConfig(
        latency=options.latency,
        fps=options.fps,
        max_side=options.max_side,
        segment=options.segment,
        job=job,
    )
    statistics = Statistics()
    source = open_source(options.source, statistics)
    sink = open_sink(options.output, config.segment)
    talk.say(f"{talk.plain(shown_address(options.source))} → {talk.plain(options.output)}; Ctrl-C ends it.")
    told = time.monotonic()

    def tell(now: Statistics) -> None:
        nonlocal told
        if time.monotonic() - told >= _EVERY:
            told = time.monotonic()
            talk.say(_line(now))

    run_live(
        source,
        sink,
        config,
        seed=options.seed,
        seconds=float("inf") if seconds is None else seconds,
        statistics=statistics,
        on_progress=tell,
    )
    if options.as_json:
        talk.emit(statistics.for_machines())
    else:
        _summarise(statistics)
    if not statistics.shown or statistics.never_replaced:
        raise typer.Exit(ExitCode.WITHHELD)


def _line(statistics: Statistics) -> str:
    """Return how it goes, in a line."""
    p50, p99 = statistics.percentile(0.5), statistics.percentile(0.99)
    late = "no frame shown yet" if p50 is None or p99 is None else f"latency {p50:.0f} ms (p50), {p99:.0f} ms (p99)"
    return (
        f"{statistics.seconds:.0f} s: {statistics.fps:.1f} frames per second, {late}; "
        f"{statistics.people} people, faces replaced {statistics.replaced}, masked {statistics.masked.total()}"
    )


def _summarise(statistics: Statistics) -> None:
    """Print what happened."""
    talk.say(_line(statistics))
    talk.say(
        f"frames: {statistics.captured} captured, {statistics.shown} shown, {statistics.skipped} skipped for newer "
        f"ones, {statistics.late} too late, {statistics.damaged} damaged; {statistics.reconnects} reconnects"
    )
    for reason, count in statistics.masked.most_common():
        talk.say(f"masked {count} times: {talk.plain(reason)}")
    if statistics.k_real is not None:
        talk.say(f"at the end, the rarest face was shared by {statistics.k_real} people who were there (k_real)")
    if not statistics.shown:
        talk.say("[bold yellow]no frame was shown[/]: none came, or all were too late. Try a larger --latency.")
    if statistics.never_replaced:
        talk.say(f"[bold yellow]{statistics.never_replaced} people were masked only[/]: the judge knew them always.")
    for failure, count in statistics.failures.most_common():
        talk.say(f"[bold yellow]failed {count} times:[/] {talk.plain(failure)}")
