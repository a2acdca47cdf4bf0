"""What the studio keeps of a project and tells the browser: typed, and the same on disk and over HTTP."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ksame.errors import LARGEST_SEED
from ksame.privacy.documents import Record

Kind = Literal["scene", "faces", "audit"]
"""Photographs and video; a face set; two folders to be audited."""
Role = Literal["media", "faces", "labels", "originals", "released"]
"""What a file is for; pictures and recordings lie in a folder of that name."""
Wish = Literal["replace", "keep", "mask"]
Action = Literal["find", "run", "audit"]
JobState = Literal["running", "done", "withheld", "interrupted", "failed"]
"""Withheld: done, but a mask stands in somewhere, or something was left out; the messages say what."""

ROLES: dict[Kind, tuple[Role, ...]] = {
    "scene": ("media",),
    "faces": ("faces", "labels"),
    "audit": ("originals", "released"),
}

Name = Annotated[str, Field(min_length=1, max_length=200)]
Person = Annotated[str, Field(pattern=r"^\w[\w .'-]*$", max_length=60)]
Another = Annotated[tuple[Person, ...], Field(max_length=1000)]
"""People whose new face was drawn again, once for every time they are named."""
Number = Annotated[int, Field(ge=0, le=1 << 30)]
Pixels = Annotated[float, Field(ge=-1_000_000, le=1_000_000)]


class StoredFile(Record):
    """A file that was uploaded. Its name is for eyes only: on disk it has a number."""

    number: Number
    name: str
    role: Role
    suffix: str
    size: int
    kind: Literal["photograph", "video", "table"] = "photograph"
    width: int = 0
    height: int = 0
    n_frames: int = 1
    rate: float = 0.0

    @property
    def stored_as(self) -> str:
        """Its name on disk."""
        return "labels.csv" if self.role == "labels" else f"{self.number:06d}{self.suffix}"


class Settings(Record):
    """What is done, in the words of the command line."""

    method: str = Field("someone-else", max_length=40)
    k: int = Field(10, ge=2, le=1_000_000)
    level: float | None = None
    cover: str = Field("head", max_length=40)
    audio: Literal["keep", "disguise", "drop"] = "keep"
    recipient: str | None = Field(None, max_length=1000)
    """Public key of whoever can open the vault; without one none is written."""
    select: str | None = Field(None, max_length=60, pattern=r"^\w[\w .'-]*$")
    small_classes: Literal["error", "merge", "drop"] = "error"
    attackers: str = Field("eigenfaces,sface", max_length=200, pattern=r"^[\w-]+(,[\w-]+)*$")
    seed: int = Field(0, ge=0, le=LARGEST_SEED)
    """A secret: it repeats a run."""


class Project(Record):
    """A project as it lies in its folder."""

    schema_: Literal["ksame/studio"] = Field("ksame/studio", alias="schema")
    version: Literal[1] = 1
    id: str
    name: Name
    kind: Kind
    created: str
    settings: Settings = Settings()
    wishes: dict[Person, Wish] = Field(default_factory=dict)
    """Of people by name; whoever is not named is replaced."""
    another: Another = ()
    files: tuple[StoredFile, ...] = ()
    next_number: int = 1


class NewProject(Record):
    """What a project is begun with."""

    name: Name
    kind: Kind


class Change(Record):
    """What is changed of a project; what is left out stays."""

    name: Name | None = None
    settings: Settings | None = None
    wishes: dict[Person, Wish] | None = Field(None, max_length=10_000)
    another: Another | None = None


class Progress(Record):
    """How far a job is; ``total`` is 0 where that is not known."""

    what: str = ""
    done: int = 0
    total: int = 0


class Download(Record):
    """A file that a job wrote."""

    number: Number
    name: str
    size: int
    publish: bool
    """Whether it may be published; everything else shows or tells of originals."""
    about: str


class Job(Record):
    """A job: a command of ``ksame``, what became of it, and what it wrote."""

    number: Number
    action: Action
    state: JobState
    command: str
    """What to type for the same, in the folder of the project."""
    progress: Progress = Progress()
    messages: tuple[str, ...] = ()
    """Warnings and errors, as the command line prints them."""
    summary: tuple[str, ...] = ()
    """What came of it, in sentences."""
    at_risk: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()


class ProjectView(Record):
    """A project as the browser sees it."""

    project: Project
    folder: str
    found: bool
    """Whether people were looked for; corrections can be made then."""
    undo: int = 0
    """How many corrections can be taken back."""
    jobs: tuple[Job, ...] = ()


class Stretch(Record):
    """Consecutive frames of a track in which the same holds: found, filled between, masked, or not sure."""

    first: Number
    last: Number
    what: Literal["found", "filled", "masked", "unsure", "drawn"]


class TrackView(Record):
    """One face through consecutive frames of a file."""

    file: Number
    number: Number
    first: Number
    last: Number
    stretches: tuple[Stretch, ...]
    thumbs: tuple[Number, ...]
    """Frames that there is a picture of."""


class PersonView(Record):
    """Somebody, everywhere."""

    name: str
    confirmed: bool
    frames: int
    masked: int
    """Frames in which a mask will stand in, because the face was not seen well enough."""
    tracks: tuple[TrackView, ...]


class FaceBox(Record):
    """Where a face is in a frame, in pixels."""

    person: str
    track: Number
    x: float
    y: float
    width: float
    height: float


class Merge(Record):
    """Two people are one."""

    do: Literal["merge"]
    person: Person
    into: Person


class Split(Record):
    """From a frame on, a track shows somebody else; without a name, somebody new."""

    do: Literal["split"]
    file: Number
    track: Number
    frame: Number
    person: Person | None = None


class Draw(Record):
    """A face was missed: a box that is masked from one frame to another."""

    do: Literal["draw"]
    file: Number
    first: Number
    last: Number
    x: Pixels
    y: Pixels
    width: Annotated[float, Field(gt=0, le=1_000_000)]
    height: Annotated[float, Field(gt=0, le=1_000_000)]


class Discard(Record):
    """A track shows no face."""

    do: Literal["discard"]
    file: Number
    track: Number


class Undo(Record):
    """Take the last correction back."""

    do: Literal["undo"]


Correction = Annotated[Merge | Split | Draw | Discard | Undo, Field(discriminator="do")]


class Method(Record):
    """A method, in the registry's own words."""

    name: str
    summary: str
    promise: str
    bound: str
    needs: str
    masks: bool
    takes_k: bool
    level: str = ""
    """What its level is; empty where it has none."""
    draws: bool = False
    """Whether it draws faces, so that another can be drawn for somebody."""


class Choices(Record):
    """What there is to choose from."""

    scenes: tuple[Method, ...]
    faces: tuple[Method, ...]
    covers: tuple[tuple[str, str, str], ...]
    """Name, what is invented, what it leaves."""
    sounds: tuple[tuple[str, str], ...]
    """Name, what the certificate says of it."""
    attackers: tuple[tuple[str, str], ...]
    """Name, what it looks at."""
    max_upload: int


class Problem(Record):
    """What went wrong, and what to do next."""

    detail: str
