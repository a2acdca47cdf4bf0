"""Tracks to be edited by a person: written for all files of a job, and who is who by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ksame.files import make_folder, sha256_of
from ksame.scene.stages import JobFile, StageRun, cast_of
from ksame.scene.track import People, by_name, join_files, write_tracks
from ksame.scene.track.corrections import renamed
from ksame.scene.track.tracks import Tracks


def write_all_tracks(run: StageRun, files: Sequence[JobFile], casts: Sequence[Tracks]) -> None:
    """Write the tracks of all files, to be edited, or of none; people have the names that they have in the batch."""
    everyone = join_files(casts, run.config.tracker.same_person)
    paths = [path for file in files if (path := run.job.tracks_of(file.source)) is not None]
    if len(files) > 1:
        make_folder(paths[0].parent)
    try:
        for index, (file, path) in enumerate(zip(files, paths, strict=True)):
            names = {local: name for (number, local), name in everyone.names.items() if number == index}
            write_tracks(replace(renamed(cast_of(run, file), names), source=file.fingerprint), path)
    except BaseException:
        for path in paths:
            path.unlink(missing_ok=True)
        raise


def hash_of_tracks(run: StageRun, files: Sequence[JobFile]) -> str:
    """Return a hash of the tracks that may have been edited; empty where there are none."""
    paths = [path for file in files if (path := run.job.tracks_of(file.source)) is not None]
    return sha256_of(*paths) if paths else ""


def who_is_who(run: StageRun, casts: Sequence[Tracks]) -> People:
    """Tell who is who in all files: by their faces, or by the names in tracks that may have been edited."""
    if run.job.tracks is not None:
        return by_name(casts)
    return join_files(casts, run.config.tracker.same_person)
