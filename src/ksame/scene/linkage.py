"""The linkage of photographs and recordings: the secret of who became whom, and where they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal, cast

from pydantic import Field

from ksame.privacy.documents import Record
from ksame.privacy.linkage import Linkage, LinkTable, read_table
from ksame.scene.certificate import SceneCertificate
from ksame.scene.decide import Decision, Treatment
from ksame.scene.result import JobResult


class Place(Record):
    """Where a person is: original, output, and tracks in it."""

    source: str
    output: str
    tracks: tuple[int, ...]


class LinkedPerson(Record):
    """What became of one person, and where."""

    name: str
    treatment: Literal["replace", "mask", "keep"]
    masked_instead: bool = Field(
        alias="stands_in", description="masked because the person could not be replaced safely"
    )
    group: int | None = Field(description="people of one group share a surrogate")
    counts_as: int | None = Field(
        description="who are perhaps one person have one number in their group; null for whoever is not surely a person"
    )
    sure: bool = Field(description="surely a face; what is not is counted as nobody")
    shown: bool = Field(description="left as they are in at least one frame, so that nobody is hidden by them")
    cover: str | None
    likeness: float | None
    places: tuple[Place, ...]


class SceneLinkage(LinkTable):
    """Who became whom in photographs and recordings, and where they are."""

    expected: ClassVar[str] = "a link table of scenes"

    schema_: Literal["ksame/scene-linkage"] = Field("ksame/scene-linkage", alias="schema")
    version: Literal[2] = 2
    people: tuple[LinkedPerson, ...]


AnyLinkage = Linkage | SceneLinkage


def read_linkage(path: Path) -> AnyLinkage:
    """Read the link table of a release of faces, or of photographs and video."""
    return cast("AnyLinkage", read_table(path, Linkage, SceneLinkage))


def link(result: JobResult, certificate: SceneCertificate) -> SceneLinkage:
    """Return who became whom, and who was found and is no longer in the tracks."""
    names = dict.fromkeys([*result.people.ordered, *result.shown])
    people = tuple(_linked(result, name) for name in names)
    return SceneLinkage(release_digest=certificate.digest, seed=result.seed, people=people)


def _linked(result: JobResult, name: str) -> LinkedPerson:
    shown = result.shown.get(name)
    decision = result.plan.decisions.get(name) or Decision(Treatment.KEEP)  # the tracks may no longer have them
    return LinkedPerson(
        name=name,
        treatment=decision.treatment.value,
        masked_instead=decision.masked_instead,
        group=decision.group,
        counts_as=decision.counts_as,
        sure=name not in result.people.unconfirmed if shown is None else shown.confirmed,
        shown=shown is not None,
        cover=decision.cover.name if decision.treatment is Treatment.REPLACE else None,
        likeness=None if decision.likeness is None else round(decision.likeness, 4),
        places=tuple(_places(result, name)),
    )


def _places(result: JobResult, name: str) -> Iterator[Place]:
    there = {number: result.tracks_of(number).of(local) for number, local in result.people.keys(name)}
    for number, done in enumerate(result.files):
        if number in there or any(shown.person == name for shown in done.shown):
            tracks = tuple(track.number for track in there.get(number, ()))
            yield Place(source=str(done.source), output=done.output.name, tracks=tracks)
