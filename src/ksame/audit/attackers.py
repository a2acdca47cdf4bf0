"""The attackers of an audit, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ksame.attacks import Eigenfaces, Embedding, Mahalanobis, OnRestored, Recogniser, Restorer
from ksame.errors import UsageError
from ksame.models import DlibResNet, OnnxRecogniser, SFace


@dataclass(frozen=True)
class Attacker:
    """A recogniser and the crop it gets."""

    name: str
    part: str  # {"tight", "wide"}: see :func:`ksame.audit.pairs.face_sets`
    build: Callable[[], Recogniser]  # makes the recogniser
    restorer: Restorer | None = None  # what restores the released faces before the recogniser gets them


KNOWN: Mapping[str, Attacker] = {
    attacker.name: attacker
    for attacker in (
        Attacker("eigenfaces", "tight", Eigenfaces),
        Attacker("mahalanobis", "tight", Mahalanobis),
        Attacker("sface", "wide", lambda: Embedding(SFace())),
        Attacker("dlib", "wide", lambda: Embedding(DlibResNet())),
    )
}
"""All by name; a path to an ONNX file is one as well, and so is each of them on restored faces."""

PIXELS = "tight"
"""The crop for recognisers of pixels."""

DEFAULT = ("eigenfaces", "sface")

RESTORED = "restored="
"""Goes before the ONNX file of a restorer."""


def attacker(name: str) -> Attacker:
    """Return the attacker called ``name``, or the network in the ONNX file of that name.

    ``restored=FILE`` is SFace on faces that the network in ``FILE`` restored, and ``dlib+restored=FILE`` is another
    attacker on them.

    Raises
    ------
    UsageError
        When the attacker is unknown.
    ModelError
        When the file of a restorer is missing or holds something else.
    """
    if name in KNOWN:
        return KNOWN[name]
    who, mark, file = name.partition(RESTORED)
    if mark and (not who or who.endswith("+")):
        return _on_restored(attacker(who[:-1] or "sface"), file)
    if name.lower().endswith(".onnx"):
        return Attacker(Path(name).stem, "wide", lambda: Embedding(OnnxRecogniser(Path(name))))
    raise UsageError(
        f"Unknown attacker {name!r}. Choose one of: {', '.join(KNOWN)}, the path of an ONNX file, or {RESTORED}FILE."
    )


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
