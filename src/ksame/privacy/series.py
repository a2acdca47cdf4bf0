"""A series of releases: people join and leave, and no two releases together tell more than one.

A later release repeats every face of the earlier ones, byte for byte and in as many copies, and adds faces that only
newcomers share. Who stayed and who left changes no byte of it: there is nothing to subtract and nothing to intersect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ksame import scratch
from ksame.arrays import ByteArray
from ksame.errors import GuaranteeError, InputError, UsageError
from ksame.faces.faceset import FaceSet
from ksame.privacy.certificate import Certificate, Check, Counts, MethodRecord, PromiseRecord, Series, release_digest
from ksame.privacy.linkage import Linkage, LinkedFace, PastRelease, WithheldFace, count_faces
from ksame.privacy.models import Evidence, KAnonymity
from ksame.privacy.release import Release, encoded_once, face_name, release_order
from ksame.version import software

NEWER = "the face of this person is repeated from an earlier release; newer pictures are not used"


@dataclass(frozen=True, eq=False)
class Split:
    """Faces given for a later release."""

    newcomers: FaceSet | None
    unused: tuple[WithheldFace, ...]  # newer pictures of people who were released before


def split(faces: FaceSet, after: Linkage) -> Split:
    """Tell newcomers from people who were released before."""
    known = np.isin(faces.subjects, list(after.people))
    stood_for = {source for face in after.faces for source in face.sources}
    unused = tuple(
        WithheldFace(source=faces.names[i], subject=str(faces.subjects[i]), reason=NEWER)
        for i in np.flatnonzero(known)
        if faces.names[i] not in stood_for
    )
    return Split(None if known.all() else faces.take(~known), unused)


@dataclass(frozen=True)
class Occasion:
    """What the certificate of a later release says besides its faces."""

    method: MethodRecord
    unreadable: int
    warnings: tuple[str, ...]


def continued(
    after: Linkage, added: tuple[Release, Linkage] | None, occasion: Occasion, waiting: Sequence[WithheldFace]
) -> tuple[Release, Linkage]:
    """Repeat the faces of the latest release of a series and add those of the newcomers' own, where there is one.

    Raises GuaranteeError when some face would stand for fewer people than promised.
    """
    number = after.history[-1].number + 1
    images, linked, k = after.shown(), list(after.faces), after.history[-1].k
    if added is not None:
        images, linked, k = _joined(images, linked, k, added, number)
    order = release_order(images)
    images, linked = scratch.take(images, order), [linked[i] for i in order]
    hashes, kept = encoded_once(images, keep=True)
    digest = release_digest(hashes)
    newcomers = [face for face in waiting if face.subject not in after.people]  # who left is never counted
    promise = KAnonymity(k)
    evidence = Evidence.of_bytes(images, [face.subject for face in linked])
    violations = promise.check(evidence)
    if violations:
        raise GuaranteeError(f"In the series a face {violations[0].reason}. Nothing was written.")
    certificate = Certificate(
        method=occasion.method,
        counts=Counts(**count_faces(linked, newcomers), unreadable=occasion.unreadable),
        promise=PromiseRecord.of(promise),
        figures=promise.measure(evidence),
        checks=(Check.of(promise, series=True),),
        warnings=occasion.warnings,
        files=hashes,
        digest=digest,
        software=software("numpy"),
        series=Series(number=number, repeated=len(after.faces), after=after.release_digest),
    )
    names = [{"released": face_name(i), "face": hashes[face_name(i)]} for i in range(len(linked))]
    return Release(images, certificate), Linkage(
        release_digest=digest,
        seed=after.seed if added is None else added[1].seed,
        faces=tuple(face.model_copy(update=new) for face, new in zip(linked, names, strict=True)),
        withheld=tuple(waiting),
        kept=kept,
        history=(*after.history, PastRelease(number=number, digest=digest, k=k)),
    )


def _joined(
    images: ByteArray, linked: list[LinkedFace], k: int, added: tuple[Release, Linkage], number: int
) -> tuple[ByteArray, list[LinkedFace], int]:
    """Put the newcomers' faces beside the others, with groups counted on; the weakest promise holds for all."""
    release, linkage = added
    promise = release.certificate.promise.rebuild()
    if not isinstance(promise, KAnonymity):
        raise UsageError(f"A series goes on with k-anonymity only; {release.certificate.method.name} promises less.")
    if release.faces.shape[1:] != images.shape[1:]:
        raise InputError(
            f"The faces of the series have the shape {images.shape[1:]}, those of the newcomers "
            f"{release.faces.shape[1:]}. Register them to one size with --size."
        )
    first = 1 + max((face.group for face in linked if face.group is not None), default=-1)
    groups = (None if face.group is None else face.group + first for face in linkage.faces)
    new = [f.model_copy(update={"since": number, "group": g}) for f, g in zip(linkage.faces, groups, strict=True)]
    together = scratch.empty((len(images) + len(release.faces), *images.shape[1:]), np.uint8)
    together[: len(images)], together[len(images) :] = images, release.faces
    return together, [*linked, *new], min(k, promise.real)
