"""What a job is told: which files, and how they are de-identified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from ksame.errors import UsageError, seed_number, whole_number
from ksame.heads.covers import HEAD, Cover
from ksame.recipes import METHODS
from ksame.scene.boxes import GivenBoxes
from ksame.scene.decide import SOMEONE_ELSE, check_method
from ksame.scene.media import DamagePolicy, EncoderConfig
from ksame.scene.media.regions import Region
from ksame.scene.render import FILL, Mask
from ksame.scene.store import key_of
from ksame.scene.track import TrackerConfig
from ksame.scheduling import LOCAL, MAX_WORKERS, check_scheduler
from ksame.version import __version__


@dataclass(frozen=True)
class JobConfig:
    """How photographs and recordings are de-identified.

    Parameters
    ----------
    method : str
        One of ``ksame.recipes.METHODS`` that works on scenes.
    k : int
        How many people share a face.
    cover : Cover
        How much of a head is invented.
    level : float, optional
        Strength of a mask.
    keep, only, mask : tuple of str
        People who stay as they are, who alone are replaced, who are masked.
    another : tuple of str
        People whose new face is drawn again, with that of whoever shares it; once for every time they are named.
    span : (float, float)
        Seconds between which faces are changed.
    regions : tuple of (x, y, width, height) or MovingRegion
        Rectangles that are filled in all files: in all frames, or where they are then.
    boxes : GivenBoxes, optional
        What another detector found: see :func:`ksame.scene.boxes.read_boxes`.
    judged : bool
        Whether a recogniser judges the surrogates.
    tracker : TrackerConfig
    encoding : EncoderConfig
    workers : int, optional
        Files worked on at the same time; by default as many as keep all processors busy.
    scheduler : str
        Where files are worked on: see :func:`ksame.scheduling.open_scheduler`. It changes no byte.
    device : str
        Where heads are invented: see :data:`ksame.models.runtime.DEVICES`.
    damaged : "refuse" or "mask"
        What becomes of a recording with damaged frames: nothing is written, or these frames are black.
    """

    method: str = SOMEONE_ELSE
    k: int = 10
    cover: Cover = HEAD
    level: float | None = None
    keep: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()
    another: tuple[str, ...] = ()
    span: tuple[float, float] = (0.0, np.inf)
    regions: tuple[Region, ...] = ()
    boxes: GivenBoxes | None = None
    judged: bool = True
    tracker: TrackerConfig = field(default_factory=TrackerConfig)
    encoding: EncoderConfig = field(default_factory=EncoderConfig)
    workers: int | None = None
    scheduler: str = LOCAL
    device: str = "auto"
    damaged: DamagePolicy = "refuse"

    def __post_init__(self) -> None:
        check_method(self.method, self.k)
        METHODS[self.method].at(self.level)
        Mask(self.masking, self.level)
        if self.another and not METHODS[self.method].scenes.judged:
            raise UsageError(f"--another draws a face again, and {self.method} draws none. Use it with {SOMEONE_ELSE}.")
        if self.workers is not None:
            whole_number("workers", "JobConfig", self.workers, 1, MAX_WORKERS)
        check_scheduler(self.scheduler)
        if not self.span[0] < self.span[1]:
            raise UsageError(f"--from must come before --to. Got {self.span[0]:g} and {self.span[1]:g} seconds.")

    @property
    def masking(self) -> str:
        """The mask for whoever is masked on request."""
        return self.method if METHODS[self.method].masks else FILL

    def key(self) -> str:
        """Return a hash of everything that decides pixels, the software's version included."""
        said = asdict(replace(self, boxes=None)) | {"boxes": None if self.boxes is None else self.boxes.digest}
        return key_of({n: v for n, v in said.items() if n not in ("workers", "scheduler", "device")}, __version__)


@dataclass(frozen=True)
class Job:
    """A batch to be de-identified."""

    files: Sequence[tuple[Path, Path]]  # source and output; outputs must differ
    work: Path  # folder for the work in progress; removed when everything is written
    config: JobConfig = field(default_factory=JobConfig)
    seed: int | None = None  # for the surrogates; a secret, drawn at random by default
    # of the only file, or a folder with those of each: read, if they exist; written there otherwise
    tracks: Path | None = None
    resume: bool = False  # go on with an interrupted run of the same job, if there is one
    force: bool = False  # replace outputs that exist
    recipients: tuple[str, ...] = ()  # public keys of age, for whom what is hidden is sealed; none without a vault

    def __post_init__(self) -> None:
        if not self.files:
            raise UsageError("There is nothing to de-identify.")
        places = [self.tracks_of(source) for source, _ in self.files]
        if self.tracks is not None and len(set(places)) < len(places):
            raise UsageError("Two files have one name, and so would their tracks. Rename one, or leave --tracks out.")
        if len(places) > 1 and self.tracks is not None and self.tracks.is_file():
            raise UsageError(f"{self.tracks} is a file, but the tracks of several files lie in a folder. Name another.")
        if self.seed is not None:
            seed_number("Job", self.seed)
        taken: dict[Path, Path] = {}
        for source, output in self.files:
            place = output.resolve()
            if place in taken:
                raise UsageError(f"{source} and {taken[place]} would both become {output}.")
            if place == source.resolve():
                raise UsageError(f"{source}: the original would be overwritten. Choose another name.")
            taken[place] = source

    def tracks_of(self, source: Path) -> Path | None:
        """Return where the tracks of a file are to be edited, or None."""
        if self.tracks is None or (len(self.files) == 1 and not self.tracks.is_dir()):
            return self.tracks
        return self.tracks / f"{source.name}.json"

    @property
    def edited(self) -> bool:
        """Whether somebody may have said who is where: there are tracks of at least one file."""
        if self.tracks is None or not self.tracks.is_dir():
            return self.tracks is not None and self.tracks.exists()
        names = {path.name for path in self.tracks.iterdir()}
        return any(f"{source.name}.json" in names for source, _ in self.files)
