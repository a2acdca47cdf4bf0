"""The last stage: a file is rendered and written, whole or in parts by several workers, and sealed where asked for."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.errors import InputError
from ksame.files import hash_tree
from ksame.scene.at_risk import DAMAGED, NOBODY, AtRisk, Shown, shown, stretches, without_faces
from ksame.scene.decide import Decision
from ksame.scene.media import CONTAINERS, SEGMENT, Frame, Output, OutputFrame, Pixels, Voice, WorkFolder, open_part
from ksame.scene.memory import give_back_memory
from ksame.scene.render import STEP, MaskedInstead, Renderer, changed_region, first_needed, render_frames
from ksame.scene.result import FileResult
from ksame.scene.sealing import Originals, Sealer, pieces_in
from ksame.scene.stages import JobFile, StageRun
from ksame.scene.store import OUTPUT
from ksame.scene.track.tracks import in_order
from ksame.scene.workers import CancelledError

_LARGE = 16 << 20  # bytes of a frame after which memory is given back at once: holes between such frames add up
_FILES = 2  # after which memory is given back: after each takes longer, and 200 portraits without took 0.2 GB more


@dataclass(frozen=True, eq=False)
class WriteTask:
    """A file to be written, what becomes of whom in it, their names in the batch, and what all of it is made from."""

    file: JobFile
    decisions: Mapping[str, Decision]
    names: Mapping[str, str]
    key: str
    segment_length: int = SEGMENT  # frames
    sealed_for: Mapping[str, str] = field(default_factory=dict)  # public keys of people; none without a vault
    segments: range | None = None  # by number, where only these are to be rendered

    def __str__(self) -> str:
        if self.segments is None:
            return str(self.file)
        return f"{self.file}, frames from {self.segments.start * self.segment_length} on"

    def folder(self, run: StageRun) -> WorkFolder:
        """Return where the work in progress lies."""
        out = run.store.place(OUTPUT, self.file.number) / "out"
        return WorkFolder(out, resume=True, run_key=self.key, segment_length=self.segment_length)


def write_file(run: StageRun, task: WriteTask) -> FileResult:
    """Render and write one file; what stands complete under its final name is not written again."""
    file, names, decisions, key = task.file, task.names, task.decisions, task.key
    run.check(file)
    people = tuple(sorted(set(names.values()), key=in_order))
    pieces = run.store.place(OUTPUT, file.number) / f"sealed-{key[:16]}"
    note = run.store.value(OUTPUT, file.number, key)
    if note is not None and hash_tree(file.output) == note["files"]:
        return _result(file, people, note, pieces)
    may_replace = run.store.may_replace(file.number)
    folder = task.folder(run)
    if may_replace and file.output.exists():  # it may have got its name before the interruption, or not
        shutil.rmtree(folder.path, ignore_errors=True)
    config, tracks = run.config, run.tracks(file)
    renderer = run.renderer(file.source, tracks, decisions)
    voice, force = Voice.drawn(run.store.seed), run.job.force or may_replace
    with Output(file.media, file.output, config.encoding, folder, force=force, voice=voice) as output:
        begin = output.next_frame
        sealer = None
        if task.sealed_for:
            originals = Originals(file.media, file.output, config.encoding)
            sealer = Sealer(pieces, originals, renderer, names, task.sealed_for)
            with closing(file.media.frames(sealer.next_frame)) as frames:
                for frame in islice(frames, max(0, begin - sealer.next_frame)):
                    sealer.add(frame)  # written by a worker, or before an interruption, but not sealed

        def write(frame: Frame, pixels: Pixels, touched: NDArray[np.bool_]) -> None:
            output.write(pixels, frame.native, touched)
            if sealer is not None:
                sealer.add(frame, touched)

        masked = _write_frames(run, file.media.frames(first_needed(begin), late=True), renderer, write, begin)
        n_frames = output.next_frame
        if n_frames != tracks.n_frames:
            raise InputError(
                f"{file.media.path}: it has {n_frames} frames, but tracks for {tracks.n_frames}. "
                "Were these tracks made for another recording?"
            )
        times = [float(file.media.timestamp(i).pts * file.media.time_base) for i in range(n_frames)]
        if run.tools.token.cancelled:
            raise CancelledError("stopped while writing")
        if sealer is not None:  # all of it, before anything has its name
            sealer.finish()
        run.store.renaming(file.number)
        output.finish()
    if file.number % _FILES == 0:
        give_back_memory()
    earlier = [mask for i in range(begin) for mask in renderer.masked_instead(i, times[i])]
    masked = [replace(mask, person=names[mask.person]) for mask in (*earlier, *masked)]
    black = (MaskedInstead(frame, NOBODY, DAMAGED) for frame in file.media.damaged)
    unchanged = (replace(s, person=names.get(s.person, s.person)) for s in shown(tracks, decisions, config.span, times))
    note = {
        "n_frames": n_frames,
        "files": hash_tree(file.output),
        "at_risk": [asdict(risk) for risk in stretches([*black, *masked], times) + without_faces(tracks, times)],
        "losses": list(output.losses),
        "shown": [asdict(person) for person in unchanged],
    }
    run.store.finish(OUTPUT, file.number, key, note)
    return _result(file, people, note, pieces)


def parts_of(run: StageRun, task: WriteTask, n_frames: int, n_parts: int) -> list[WriteTask]:
    """Cut a recording into parts for several workers; none where it is short, or stands complete."""
    file, n_segments = task.file, -(-n_frames // task.segment_length)
    count = min(n_parts, n_segments)
    named = run.store.may_replace(file.number) and file.output.exists()  # by an earlier run of this job
    if count < 2 or file.output.suffix.lower() not in CONTAINERS or named:
        return []
    task.folder(run).prepare(file.media, file.output, run.config.encoding)  # here, not by all of them at once
    edges = [number * n_segments // count for number in range(count + 1)]
    return [replace(task, segments=range(first, last)) for first, last in pairwise(edges)]


def render_part(run: StageRun, task: WriteTask) -> None:
    """Render some segments of a recording, the same to the bit as where it is rendered from its beginning.

    What stands complete is not rendered again. Whoever writes the file renders what is missing.
    """
    file, segments = task.file, task.segments or range(0)
    run.check(file)
    tracks = run.tracks(file)
    renderer = run.renderer(file.source, tracks, task.decisions)
    end = min(segments.stop * task.segment_length, tracks.n_frames)
    with open_part(file.media, file.output, run.config.encoding, task.folder(run), segments) as writer:
        begin = writer.next_frame
        if begin >= end:
            return
        # The first frame of the next block too: heads before it are interpolated towards those in it.
        n_needed = first_needed(end + STEP - 1) + 1 - first_needed(begin)
        frames = islice(file.media.frames(first_needed(begin), late=True), n_needed)

        def write(frame: Frame, pixels: Pixels, touched: NDArray[np.bool_]) -> None:
            writer.write(OutputFrame(pixels, frame.native, touched))

        _write_frames(run, frames, renderer, write, begin, end)


def _write_frames(
    run: StageRun,
    frames: Iterable[Frame],
    renderer: Renderer,
    write: Callable[[Frame, Pixels, NDArray[np.bool_]], None],
    begin: int,
    end: int | None = None,
) -> list[MaskedInstead]:
    """Render and write frames from number ``begin`` on, and before ``end``; return whoever is masked in them.

    The frames given are those from ``first_needed(begin)`` on.
    """
    masked: list[MaskedInstead] = []
    first = first_needed(begin)
    with closing(render_frames(run.tools.progress(frames, "writing"), renderer, run.tools.pictures)) as rendered:
        for frame, pixels in islice(rendered, begin - first, None if end is None else end - first):
            write(frame, pixels, changed_region(renderer, frame, pixels))
            masked += renderer.masked_instead(frame.index, frame.time)
            large = pixels.nbytes > _LARGE
            del frame, pixels  # not held while the next one is made
            if large:
                give_back_memory()
    return masked


def _result(file: JobFile, people: tuple[str, ...], note: Mapping[str, Any], pieces: Path) -> FileResult:
    """Return what became of a file, from what the store has noted, and what lies sealed there."""
    at_risk = tuple(AtRisk(**risk) for risk in note["at_risk"])
    unchanged = tuple(Shown(**person) for person in note["shown"])
    losses = tuple(note["losses"])
    sealed = tuple(pieces_in(pieces))
    return FileResult(
        file.source, file.output, note["n_frames"], people, at_risk, note["files"], losses, unchanged, sealed
    )
