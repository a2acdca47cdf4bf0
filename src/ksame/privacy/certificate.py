"""The public certificate: aggregates and hashes, and nothing that would undo the release."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import Field

from ksame.errors import InputError
from ksame.files import remove_parts, write_atomic
from ksame.privacy.documents import Document, Record, read_bytes, read_document
from ksame.privacy.maps import EpsilonKMap, EpsilonMap, WrongMap, ZeroRecognition
from ksame.privacy.models import KAnonymity, NoGuarantee, PrivacyModel
from ksame.privacy.signing import sign

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Kind = TypeVar("Kind", bound="CertificateCore")

PROMISES: Mapping[str, type[PrivacyModel]] = {
    model.name: model for model in (KAnonymity, WrongMap, ZeroRecognition, EpsilonMap, EpsilonKMap, NoGuarantee)
}

LEARNED_ON = "other faces"
"""What a certificate says of a coding that was not learned on the faces it was used on."""


class MethodRecord(Record):
    """What was done: recipe and public parameters."""

    name: str
    params: dict[str, Any]
    coding: str
    coding_params: dict[str, Any]
    reference: Literal["the faces themselves", "other people"] = "the faces themselves"
    labels: str | None = Field(None, description="where selected labels were predicted: how, and how often rightly")


class Counts(Record):
    """How many went in, came out, and did not."""

    originals: int = Field(ge=1)
    subjects: int = Field(ge=1)
    released: int = Field(ge=1)
    subjects_released: int = Field(ge=1)
    merged: int = Field(0, ge=0, description="originals that share one released copy with others of the same person")
    withheld: int = Field(0, ge=0)
    unreadable: int = Field(0, ge=0)
    masked: int = Field(0, ge=0)


class PromiseRecord(Record):
    """What is promised, in numbers and in words."""

    model: str
    params: dict[str, Any]
    bound: float | None
    scope: str
    statement: str
    not_promised: tuple[str, ...]

    @classmethod
    def of(cls, promise: PrivacyModel) -> PromiseRecord:
        """Describe a promise."""
        bound = promise.risk_bound()
        return cls(
            model=promise.name,
            params=promise.params(),
            bound=bound.value,
            scope=bound.scope,
            statement=promise.statement(),
            not_promised=promise.not_promised(),
        )

    def rebuild(self) -> PrivacyModel:
        """Return the promise, or say that this record does not describe one."""
        try:
            promise = PROMISES[self.model](**self.params)
            same = PromiseRecord.of(promise) == self
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise InputError(f"the certificate's promise {self.model!r} cannot be rebuilt ({error})") from error
        if not same:
            raise InputError("the certificate's words do not match its own promise")
        return promise


class Check(Record):
    """One thing that was checked before the release was written."""

    name: str
    how: str
    passed: bool

    @classmethod
    def of(cls, promise: PrivacyModel, *, series: bool = False) -> Check:
        """Describe the check that every release has passed; a series is judged by bytes and people alone."""
        how = "on the 8-bit images, encoded again, with linkage and originals"
        if series:
            how = (
                "on the 8-bit images of the whole series, with linkage: faces of earlier releases are repeated byte "
                "for byte, new ones stand for newcomers only"
            )
        return cls(name=promise.name, how=how, passed=True)


class Series(Record):
    """The place of a release among others of the same people."""

    number: int = Field(ge=2)
    repeated: int = Field(ge=1, description="faces of earlier releases that are here again, byte for byte")
    after: str = Field(description="digest of the release before it")


SEALED = (
    "A sealed vault exists: whoever has a key to it can bring back what it holds of the originals, or who became whom. "
    "Without a key it tells how many people it holds, and how much, and nothing else."
)


class VaultRecord(Record):
    """That there is a vault from which the release can be undone."""

    root: str = Field(
        pattern=r"^[0-9a-f]{64}$",
        description="hash of all that the vault seals; changing its recipients does not change it",
    )
    statement: str = SEALED


class CertificateCore(Document):
    """What the certificates of faces and of scenes have in common."""

    expected: ClassVar[str] = "a valid certificate"

    method: Record
    counts: Record
    warnings: tuple[str, ...]
    files: dict[str, str] = Field(description="SHA-256 of every released file")
    digest: str = Field(description="SHA-256 over the names and hashes of all released files")
    software: dict[str, str]
    vault: VaultRecord | None = Field(None, description="null where nothing was sealed")

    def to_json(self) -> bytes:
        """Return the certificate file; what is long and for machines comes last."""
        content = self.model_dump(mode="json", by_alias=True)
        last = {name: content.pop(name) for name in ("warnings", "files", "digest", "software")}
        return (json.dumps({**content, **last}, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()

    @classmethod
    def from_json(cls: type[Kind], data: bytes) -> Kind:
        """Read a certificate file."""
        return read_document(cls, data, cls.expected)

    @classmethod
    def read(cls: type[Kind], path: Path) -> Kind:
        """Read the certificate of this kind at a path, which is named where that fails."""
        data = read_bytes(path, "the certificate", plain=True)
        try:
            return cls.from_json(data)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    def write(self, path: Path, key: Ed25519PrivateKey | None = None) -> None:
        """Write a certificate, and with a key its signature; one that was there is replaced."""
        data, signature = self.to_json(), signature_of(path)
        for file in (path, signature):
            remove_parts(file)
        if key is None:
            signature.unlink(missing_ok=True)
        else:
            write_atomic(signature, sign(data, key), constant_time=True)
        write_atomic(path, data, constant_time=True)

    @classmethod
    def shipped_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema that ships with the package."""
        room = files(cls.__module__.rpartition(".")[0])
        schema: dict[str, Any] = json.loads(room.joinpath("certificate.schema.json").read_text(encoding="utf-8"))
        return schema


class Certificate(CertificateCore):
    """What the publisher claims about a release, and how anyone can check it."""

    schema_: Literal["ksame/certificate"] = Field("ksame/certificate", alias="schema")
    version: Literal[1] = 1
    method: MethodRecord
    counts: Counts
    promise: PromiseRecord
    figures: dict[str, int | float]
    checks: tuple[Check, ...]
    series: Series | None = Field(None, description="where this release continues earlier ones")


def signature_of(certificate: Path) -> Path:
    """Return where the detached signature of a certificate lies."""
    return certificate.with_suffix(".sig")


def release_digest(hashes: Mapping[str, str]) -> str:
    """Return one hash for a whole release.

    Examples
    --------
    >>> release_digest({"b": "2", "a": "1"}) == release_digest({"a": "1", "b": "2"})
    True
    """
    return sha256("".join(f"{name}\0{hashes[name]}\n" for name in sorted(hashes)).encode()).hexdigest()
