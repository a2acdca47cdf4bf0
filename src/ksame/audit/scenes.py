"""Outputs of ``ksame deidentify`` as material for an audit: their certificate, link table and pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ksame.audit.result import Promise
from ksame.errors import UsageError
from ksame.scene.certificate import AnyCertificate, SceneCertificate
from ksame.scene.linkage import SceneLinkage


def promise_of(certificate: AnyCertificate) -> Promise:
    """Return what a certificate promises; of photographs and video nothing is bounded."""
    if isinstance(certificate, SceneCertificate):
        return Promise(
            model="invented region" if certificate.counts.replaced else "none",
            bound=None,
            scope="a recogniser may name people by what was not invented",
            statement=certificate.statement,
            not_promised=certificate.not_promised,
        )
    return Promise.model_validate(certificate.promise, from_attributes=True)


def scene_pairs(
    linkage: SceneLinkage, folder: Path, before: Sequence[str], after: Sequence[str]
) -> tuple[list[tuple[str, str]], Mapping[str, str]]:
    """Pair outputs with the originals that a link table names, and say whom originals show that show one person only.

    ``before`` are names of originals below the ``folder``, ``after`` those of released pictures.
    """
    places = {str((folder / name).resolve()): name for name in before}
    shown: dict[tuple[str, str], list[str]] = {}
    for person in linkage.people:
        for place in person.places:
            output = _only(after, place.output)
            original = places.get(str(Path(place.source).resolve())) or _only(before, Path(place.source).name)
            if output is not None and original is not None:
                shown.setdefault((original, output), []).extend([person.name] if person.sure else ())
    if not shown:
        raise UsageError(
            "The link table names no picture that is in both folders. Give the folder that was de-identified, and the "
            "one that was written; only pictures are audited."
        )
    return sorted(shown), {original: names[0] for (original, _), names in shown.items() if len(names) == 1}


def _only(names: Sequence[str], last: str) -> str | None:
    """Return the one name that ends in this part; None where there is none, or more than one."""
    same = [name for name in names if name.rsplit("/", 1)[-1] == last]
    return same[0] if len(same) == 1 else None
