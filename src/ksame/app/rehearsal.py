"""``ksame deidentify --dry-run``: all that is checked before any work, and what would be done. Writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape

from ksame.app import talk
from ksame.errors import ExitCode, UsageError
from ksame.recipes import METHODS
from ksame.remote import is_url
from ksame.scene.config import Job, JobConfig
from ksame.scene.job import check_job
from ksame.scene.media.encoding import CONTAINERS
from ksame.scene.paths import OutputPaths
from ksame.scene.release import ReleaseOptions, prepare

_SOUND = {"keep": "sound kept", "disguise": "voice disguised", "drop": "sound left out"}


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What a run would read and write."""

    job: Job
    places: OutputPaths
    options: ReleaseOptions
    files: tuple[dict[str, Any], ...]
    refused: dict[str, str]

    @property
    def exit_code(self) -> ExitCode:
        """WITHHELD where some files cannot be read."""
        return ExitCode.WITHHELD if self.refused else ExitCode.DONE

    @property
    def beside(self) -> dict[str, str]:
        """What would be written beside the outputs, by what it is."""
        own = {"certificate": self.places.certificate, "frames at risk, if any": self.places.at_risk}
        secret = {"contact sheet": self.options.review, "link table": self.options.link_table}
        tracks = self.options.tracks
        secret |= {"tracks": tracks if tracks is not None and not tracks.exists() else None}
        secret |= {"manifest": self.options.manifest}
        return {what: str(path) for what, path in {**own, **secret}.items() if path is not None}

    def as_dict(self) -> dict[str, Any]:
        """Return it for machines."""
        return {
            "schema": "ksame/dry-run",
            "version": 1,
            "method": self.job.config.method,
            "files": list(self.files),
            "beside": self.beside,
            "unreadable": self.refused,
        }

    def show(self) -> None:
        """Print it for people."""
        for file in self.files:
            width, height = file["size"]
            frames = "" if file["kind"] == "photograph" else f", about {file['frames']} frames"
            sound = f", {file['sound']}" if file["sound"] else ""
            talk.say(f"would read   {escape(file['source'])}: {file['kind']}, {width}x{height}{frames}{sound}")
            talk.say(f"would write  {escape(file['output'])}{' over what is there' if file['replaces'] else ''}")
        for what, path in self.beside.items():
            talk.say(f"would write  {escape(path)} ({what})")
        if self.places.folder is not None and not self.options.keep_names:
            talk.say("             Numbers of outputs are drawn at random, each time anew.")
        talk.say(f"method       {_method(self.job.config)}")
        for reason in self.refused.values():
            talk.say(f"[yellow]left out[/]     {escape(reason)}")
        talk.say("Nothing was written, and no face was looked for.")


def _method(config: JobConfig) -> str:
    if METHODS[config.method].masks:
        return f"{config.method}, a mask{'' if config.level is None else f' of level {config.level:g}'}"
    return f"{config.method}, k = {config.k}, the {config.cover.name} is invented"


def rehearse(media: list[str], output: str, config: JobConfig, options: ReleaseOptions) -> Rehearsal:
    """Check a job and tell what it would do; raises what the job itself would raise before any work."""
    if any(map(is_url, (*media, output))):
        raise UsageError("--dry-run looks at local files. Leave it out, or name files instead of URLs.")
    places, job = prepare(media, output, config, options, None)
    opened, failed = check_job(job)
    files = []
    for file in opened:
        container = CONTAINERS.get(file.output.suffix.lower())
        heard = file.media.has_sound and container is not None and container.audio_encoder is not None
        files.append(
            {
                "source": str(file.source),
                "output": str(file.output),
                "kind": "frames" if file.media.kind == "folder" else file.media.kind,
                "size": list(file.media.size),
                "frames": file.media.n_frames,
                "sound": _SOUND[config.encoding.audio] if heard else "",
                "replaces": Path(file.output).exists(),
            }
        )
    return Rehearsal(job, places, options, tuple(files), {str(source): why for source, why in failed.items()})
