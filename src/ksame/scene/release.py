"""Photographs and recordings in, a release out: outputs, certificate, frames at risk, review sheet, link table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ksame.errors import ExitCode, InputError, PrivacyWarning, UsageError
from ksame.files import set_constant_time, sha256_of, write_atomic
from ksame.privacy.certificate import VaultRecord
from ksame.progress import silent, told
from ksame.remote import Staged, staged
from ksame.scene.at_risk import as_csv
from ksame.scene.certificate import SceneCertificate, certify, kept_words
from ksame.scene.config import Job, JobConfig
from ksame.scene.job import run
from ksame.scene.linkage import link
from ksame.scene.manifest import Manifest
from ksame.scene.media.output import remove
from ksame.scene.options import ReleaseOptions, check_places, check_vault
from ksame.scene.paths import OutputPaths, find_inputs, output_paths
from ksame.scene.result import FileResult, JobResult
from ksame.scene.review import review_sheet, write_sheet
from ksame.scene.sealing.casefile import seal_case
from ksame.vault import Recipients

__all__ = ["MediaRelease", "ReleaseOptions", "deidentify_media"]


@dataclass(frozen=True, eq=False)
class MediaRelease:
    """What was written.

    Attributes
    ----------
    files : tuple of FileResult
        What became of each file. They name originals: for the publisher's eyes.
    failed : mapping of source to reason
        Files for which nothing was written.
    certificate : SceneCertificate
    paths : OutputPaths
        Where certificate, outputs and the list of frames at risk are.
    result : JobResult
        Who became whom. Secret.
    name : callable
        Returns what a file is called: its URL, where it was fetched from one or stored at one.
    """

    files: tuple[FileResult, ...]
    failed: Mapping[Path, str]
    certificate: SceneCertificate
    paths: OutputPaths
    result: JobResult = field(repr=False)
    name: Callable[[Path], str] = field(default=str, repr=False)

    @property
    def exit_code(self) -> ExitCode:
        """WITHHELD where anything was masked instead, lost, left out, or holds no face; DONE otherwise."""
        instead = any(decision.masked_instead for decision in self.result.plan.decisions.values())
        incomplete = any(file.at_risk or file.losses for file in self.files)
        return ExitCode.WITHHELD if instead or incomplete or self.failed else ExitCode.DONE


def deidentify_media(
    paths: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    config: JobConfig | None = None,
    people: Mapping[str, str] | None = None,
    options: ReleaseOptions | None = None,
    seed: int | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> MediaRelease:
    """Give everyone in photographs and recordings another face, and certify the result.

    Parameters
    ----------
    paths : path or sequence of paths
        Photographs, recordings, folders of them, or patterns; or URLs of them, such as s3://bucket/folder.
    output : path
        A file, or a URL; or a folder, whose name has no suffix or ends in a slash.
    config : JobConfig, optional
        Method, k, cover and how files are written.
    people : mapping of name to treatment, optional
        "keep", "mask" or "replace", by the names of ``ksame people``; "others" stands for everyone else.
    options : ReleaseOptions, optional
    seed : int, optional
        Repeats a run of the same files. A secret; drawn at random by default.
    on_progress : callable, optional
        Called with what is being done, how many items are done and how many there are (0 where that is not known).

    Examples
    --------
    >>> release = ksame.deidentify_media("party.jpg", "safe.jpg")  # doctest: +SKIP
    >>> release.certificate.k_real  # doctest: +SKIP
    1
    """
    config, options = config or JobConfig(), options or ReleaseOptions()
    config = _with_wishes(config, people) if people else config
    paths = [paths] if isinstance(paths, (str, Path)) else paths
    with staged(paths, output, resume=options.resume, force=options.force) as stage:
        places, job = prepare(stage.paths, stage.output, config, options, seed, remote=bool(stage.called))
        made = places.make_folders()
        certificates: list[SceneCertificate] = []

        def publish(result: JobResult) -> None:
            certificates.append(_publish(result, config, places, options))
            stage.upload()
            record("done")

        record = _recorder(options, paths, output, stage, job)
        try:
            record("running")
            result = run(job, progress=told(on_progress) if on_progress else silent, on_done=publish)
        except BaseException as error:
            useless = isinstance(error, (InputError, UsageError)) and not options.resume
            record("failed" if isinstance(error, Exception) else "interrupted", str(error), useless=useless)
            raise
        finally:
            for folder in made:
                with suppress(OSError):  # an output is in it
                    folder.rmdir()
        return MediaRelease(result.files, result.failed, certificates[0], places, result, stage.name)


def prepare(
    paths: Sequence[str | Path],
    output: str | Path,
    config: JobConfig,
    options: ReleaseOptions,
    seed: int | None,
    *,
    remote: bool = False,
) -> tuple[OutputPaths, Job]:
    """Return where everything goes and the job that does it; refuse places that are taken. Nothing is written."""
    inputs = find_inputs(paths, frames=options.frames, output=Path(output))
    places = output_paths(
        inputs,
        output,
        keep_names=options.keep_names,
        container=options.container,
        codec=config.encoding.codec,
        resume=options.resume,
    )
    check_vault(options, places, remote=remote)
    check_places(places, options)
    _warn(config)
    files = [(item.path, path) for item, path in zip(inputs.files, places.outputs, strict=True)]
    job = Job(files, places.work, config, seed, options.tracks, options.resume, options.force, options.recipients)
    return places, job


def _recorder(
    options: ReleaseOptions, media: Sequence[str | Path], output: str | Path, stage: Staged, job: Job
) -> Callable[..., None]:
    """Return what writes the manifest anew: that of the job which is there, or a new one."""
    path = options.manifest
    if path is None:
        return lambda *_, **__: None
    new = not path.exists()
    described = Manifest(media=tuple(map(str, media)), output=str(output), options=options.described)
    manifest = described if new else Manifest.read(path)

    def record(state: str, reason: str = "", *, useless: bool = False) -> None:
        if new and useless:  # as the store: the right command can be given with the same name
            path.unlink(missing_ok=True)
        else:
            manifest.record(path, job, stage.name, state, reason)

    return record


def _with_wishes(config: JobConfig, people: Mapping[str, str]) -> JobConfig:
    """Return the settings with what was asked for people by name, and for all others."""
    for name, wish in people.items():
        allowed = ("keep", "replace") if name == "others" else ("keep", "mask", "replace")
        if wish not in allowed:
            raise UsageError(f"{name}: a person can be one of {', '.join(allowed)}. Got {wish!r}.")
    named: dict[str, list[str]] = {"keep": [], "mask": [], "replace": []}
    for name, wish in people.items():
        named[wish] += [] if name == "others" else [name]
    if people.get("others") == "keep":
        return replace(config, only=tuple(named["replace"]), mask=tuple(named["mask"]))
    return replace(config, keep=tuple(named["keep"]), mask=tuple(named["mask"]))


def _warn(config: JobConfig) -> None:
    """Tell what will stay as it is, before anything is done."""
    if config.span != (0.0, float("inf")):
        begin, end = config.span
        until = "the end" if end == float("inf") else f"{end:g} s"
        warnings.warn(
            f"Faces are changed from {begin:g} s to {until} only. Before and after, everyone can be recognised.",
            PrivacyWarning,
            stacklevel=3,
        )
    if config.keep or config.only:
        who = f"{', '.join(config.keep)} stay" if config.keep else f"Everyone but {', '.join(config.only)} stays"
        warnings.warn(
            f"{who} as they are, and can be recognised. Somebody taken for two people has two names: look at them all "
            "with ksame people.",
            PrivacyWarning,
            stacklevel=3,
        )


def _publish(result: JobResult, config: JobConfig, places: OutputPaths, options: ReleaseOptions) -> SceneCertificate:
    """Write certificate, frames at risk, review sheet and link table; the first two can be published."""
    folder = places.certificate.parent
    certificate = certify(result, config, folder)
    if options.vault is not None:
        certificate = _sealed(result, certificate, folder, options.vault, options)
    if places.folder is not None:
        _remove_replaced(places.certificate, certificate)
    if any(file.at_risk for file in result.files):
        table = as_csv((file.output.relative_to(folder).as_posix(), file.at_risk) for file in result.files)
        write_atomic(places.at_risk, table.encode(), constant_time=True)
    else:
        places.at_risk.unlink(missing_ok=True)
    if options.review is not None:
        write_sheet(review_sheet(result), options.review)
        _secret(f"{options.review} shows originals beside what became of them. Keep it.")
    certificate.write(places.certificate, options.sign)
    if places.folder is not None:
        for path in {places.folder, *(output.parent for output in places.outputs)}:
            set_constant_time(path)
    if result.shown:
        who = ", ".join(f"{person.person} ({person.reason})" for person in result.shown.values())
        _secret(f"{' '.join(kept_words(certificate.counts))} They can be recognised: {who}.")
    if options.link_table is not None:
        link(result, certificate).write(options.link_table, again=options.resume)
        _secret(f"{options.link_table} tells who became whom. Keep it apart from the outputs, or delete it.")
    return certificate


def _sealed(
    result: JobResult, certificate: SceneCertificate, folder: Path, vault: Path, options: ReleaseOptions
) -> SceneCertificate:
    """Write the vault and return the certificate that tells of it; where that fails, no output keeps its name."""
    recipients = Recipients(options.recipients)
    try:
        root = seal_case(vault, result, link(result, certificate), folder, recipients, again=options.resume)
    except BaseException:
        for file in result.files:
            remove(file.output)
        raise
    _secret(f"{vault} holds the originals of everybody who was changed, sealed. Keep it apart from the outputs.")
    return certificate.model_copy(update={"vault": VaultRecord(root=root)})


def _secret(text: str) -> None:
    warnings.warn(text, PrivacyWarning, stacklevel=4)


def _remove_replaced(path: Path, certificate: SceneCertificate) -> None:
    """Remove outputs of the run that is being replaced, unless they were changed since."""
    try:
        earlier = SceneCertificate.read(path)
    except InputError:
        return
    for name in set(earlier.files) - set(certificate.files):
        file = path.parent / name
        if file.is_file() and not file.is_symlink() and sha256_of(file) == earlier.files[name]:
            file.unlink()
