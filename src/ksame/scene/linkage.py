"""The linkage of photographs and recordings: the secret of who became whom, and where they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal, cast

from pydantic import Field

from ksame.privacy.documents import Record
from ksame.privacy.linkage import Linkage, LinkTable, read_table
from ksame.scene.at_risk import Shown
from ksame.scene.certificate import SceneCertificate
from ksame.scene.decide import Treatment
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
    stands_in: bool = Field(description="masked because the person could not be replaced safely")
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
    """Return who became whom."""
    return SceneLinkage(
        release_digest=certificate.digest,
        seed=result.seed,
        people=(
            *(_person(result, name, result.plan.groups) for name in result.everyone.people),
            *(_taken_out(result, one) for name, one in result.shown.items() if name not in result.plan.decisions),
        ),
    )


def _taken_out(result: JobResult, one: Shown) -> LinkedPerson:
    """Return somebody who was found, and whom the tracks no longer have."""
    there = (done for done in result.files if any(shown.person == one.person for shown in done.shown))
    return LinkedPerson(
        name=one.person,
        treatment="keep",
        stands_in=False,
        group=None,
        counts_as=None,
        sure=one.confirmed,
        shown=True,
        cover=None,
        likeness=None,
        places=tuple(Place(source=str(done.source), output=done.output.name, tracks=()) for done in there),
    )


def _person(result: JobResult, name: str, groups: Mapping[str, int]) -> LinkedPerson:
    plan = result.plan.decisions[name]
    like = result.plan.likeness.get(name)
    replaced = plan.treatment is Treatment.REPLACE
    return LinkedPerson(
        name=name,
        treatment=plan.treatment.value,
        stands_in=plan.masked_instead,
        group=groups.get(name) if replaced else None,
        counts_as=result.plan.counted.get(name) if replaced else None,
        sure=result.shown[name].confirmed if name in result.shown else name not in result.everyone.unconfirmed,
        shown=name in result.shown,
        cover=plan.cover.name if replaced else None,
        likeness=None if like is None else round(like, 4),
        places=tuple(
            Place(
                source=str(result.files[number].source),
                output=result.files[number].output.name,
                tracks=tuple(track.number for track in result.casts[number].of(local)),
            )
            for number, local in result.everyone.keys(name)
        ),
    )
