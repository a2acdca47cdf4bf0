"""The vault of a job: a key for each person, and what it opens: who they became, where they are, and their films."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from random import SystemRandom
from typing import Any, ClassVar, Literal

from pydantic import Field

from ksame.errors import UsageError
from ksame.privacy.documents import Document, Record
from ksame.scene.decide import Decision
from ksame.scene.linkage import LinkedPerson, SceneLinkage
from ksame.scene.result import JobResult
from ksame.vault import Entry, Recipients, Sealed, Vault, new_identity, write_vault
from ksame.vault.container import LINK_TABLE, wrap


class SurrogateRecord(Record):
    """Whose face somebody was given; people of one group have the same."""

    group: int | None
    looks: str = Field(description="SHA-256 of the shape, texture and eyes of the surrogate")


class FilmRecord(Record):
    """A sealed film, by the hash of its age file."""

    sha256: str
    output: str = Field(description="the released file that it belongs to, as in the certificate")
    first: int = Field(ge=0, description="frame in which it begins")
    holders: tuple[str, ...] = Field(description="people whose keys it takes, the innermost first")


class PersonRecord(Document):
    """What the key of one person opens."""

    expected: ClassVar[str] = "the record of a person in a vault"

    schema_: Literal["ksame/vault-person"] = Field("ksame/vault-person", alias="schema")
    version: Literal[1] = 1
    release_digest: str
    linkage: LinkedPerson
    surrogate: SurrogateRecord | None
    films: tuple[FilmRecord, ...]


def new_keys(people: Iterable[str], recipients: Recipients) -> dict[str, dict[str, Any]]:
    """Make a key for each person and for the link table, and wrap it at once.

    Returned is, for JSON, the public key and the secret one wrapped for the recipients: all that is kept of it.
    """
    keys = {}
    for name in (LINK_TABLE, *people):
        identity = new_identity()
        wrapped = wrap(identity, name, recipients)
        entry, data = wrapped.entry.model_dump(), b64encode(wrapped.read()).decode()
        keys[name] = {"recipient": identity.recipient, "entry": entry, "wrapped": data}
    return keys


def seal_case(
    path: Path, result: JobResult, linkage: SceneLinkage, folder: Path, recipients: Recipients, *, again: bool = False
) -> str:
    """Write the vault of a job, and return its root; outputs are named from the ``folder`` of the certificate.

    With ``again``, a vault of the same release may be there: a resumed run has written it before.
    """
    if again and path.exists() and Vault.read(path).index.release != linkage.release_digest:
        raise UsageError(f"{path} exists; a vault is never overwritten. Choose another name.")
    films: dict[str, list[FilmRecord]] = {person.name: [] for person in linkage.people}
    entries: list[Sealed] = []
    public = {name: str(key["recipient"]) for name, key in result.keys.items()}
    for done in result.files:
        name = done.output.relative_to(folder).as_posix()
        for piece in done.sealed:
            entry = Sealed.of("film", piece.path)
            entries.append(entry)
            film = FilmRecord(sha256=entry.entry.sha256, output=name, first=piece.first, holders=piece.holders)
            for holder in piece.holders:
                films[holder].append(film)
    entries.append(_record(linkage.model_dump_json(by_alias=True).encode(), public[LINK_TABLE]))
    owners = [LINK_TABLE]
    for person in linkage.people:
        if person.name not in public:  # the tracks no longer have them: nothing of them was changed
            continue
        owners.append(person.name)
        record = PersonRecord(
            release_digest=linkage.release_digest,
            linkage=person,
            surrogate=_surrogate(result.plan.decisions.get(person.name)),
            films=tuple(films[person.name]),
        )
        entries.append(_record(record.model_dump_json(by_alias=True).encode(), public[person.name]))
    wraps = [result.keys[name] for name in owners]
    entries += [Sealed(Entry(**each["entry"]), b64decode(each["wrapped"])) for each in wraps]
    SystemRandom().shuffle(entries)  # their order tells nothing
    files = {
        (done.output.parent.relative_to(folder) / name).as_posix(): digest
        for done in result.files
        for name, digest in done.files.items()
    }
    return write_vault(path, entries, files, len(recipients.names), replace=again)


def _record(data: bytes, recipient: str) -> Sealed:
    return Sealed.of("record", Recipients((recipient,)).seal(data))


def _surrogate(decision: Decision | None) -> SurrogateRecord | None:
    if decision is None or decision.surrogate is None:
        return None
    looks = decision.surrogate.looks
    digest = sha256(looks.shape.tobytes() + looks.texture.tobytes() + bytes(looks.iris))
    return SurrogateRecord(group=decision.group, looks=digest.hexdigest())
