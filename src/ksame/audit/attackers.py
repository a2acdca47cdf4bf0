"""The attackers of an audit, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ksame.attacks import Eigenfaces, Embedding, Mahalanobis, OnRestored, Recogniser, Restorer
from ksame.errors import UsageError
from ksame.models import RECOGNISERS, OnnxRecogniser
from ksame.models import Recogniser as Network
from ksame.registry import Registry


@dataclass(frozen=True)
class Attacker:
    """A recogniser and the crop it gets."""

    name: str
    part: str  # {"tight", "wide"}: see :func:`ksame.audit.pairs.face_sets`
    build: Callable[[], Recogniser]  # makes the recogniser
    restorer: Restorer | None = None  # what restores the released faces before the recogniser gets them


PIXELS, WHOLE = "tight", "wide"
"""The part that recognisers of pixels look at, and the one for networks."""

ON_PIXELS: Registry[Attacker] = Registry("attacker")
"""Attackers that learn from the pictures themselves, by name."""
ON_PIXELS.add(Attacker("eigenfaces", PIXELS, Eigenfaces))
ON_PIXELS.add(Attacker("mahalanobis", PIXELS, Mahalanobis))

DEFAULT = ("eigenfaces", "sface")

RESTORED = "restored="
"""Goes before the ONNX file of a restorer."""


def known() -> Registry[Attacker]:
    """Return all attackers by name: those on pixels, and every recogniser of the package."""
    attackers: Registry[Attacker] = Registry("attacker")
    for each in ON_PIXELS.values():
        attackers.add(each)
    for entry in RECOGNISERS.values():
        attackers.add(Attacker(entry.name, WHOLE, _embedding(entry.build)))
    return attackers


def _embedding(build: Callable[[], Network]) -> Callable[[], Recogniser]:
    return lambda: Embedding(build())


def attacker(name: str) -> Attacker:
    """Return the attacker called ``name``, or the network in the ONNX file of that name.

    ``restored=FILE`` is SFace on faces that the network in ``FILE`` restored, and ``dlib+restored=FILE`` is another
    attacker on them. Raises UsageError when the attacker is unknown. Raises ModelError when the file of a restorer is
    missing or holds something else.
    """
    named = known()
    if name in named:
        return named[name]
    who, mark, file = name.partition(RESTORED)
    if mark and (not who or who.endswith("+")):
        return _on_restored(attacker(who[:-1] or "sface"), file)
    if name.lower().endswith(".onnx"):
        return Attacker(Path(name).stem, WHOLE, _embedding(lambda: OnnxRecogniser(Path(name))))
    return named.choose(name, also=f", the path of an ONNX file, {RESTORED}FILE")


def _on_restored(base: Attacker, file: str) -> Attacker:
    if not file:
        raise UsageError(f"{RESTORED} needs the path of a network that restores faces: {RESTORED}FILE.onnx.")
    restorer = Restorer(Path(file))
    return replace(
        base,
        name=f"{base.name} on faces restored by {restorer.name}",
        build=lambda: OnRestored(base.build(), restorer),
        restorer=restorer,
    )
