"""The attackers that an audit knows by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ksame.attacks import Eigenfaces, Embedding, Mahalanobis, Recogniser
from ksame.errors import UsageError
from ksame.models import DlibResNet, OnnxRecogniser, SFace


@dataclass(frozen=True)
class Attacker:
    """A recogniser and what it looks at.

    Attributes
    ----------
    name : str
    part : {"tight", "wide"}
        See :func:`ksame.audit.looking.face_sets`.
    build : callable
        Makes the recogniser.
    """

    name: str
    part: str
    build: Callable[[], Recogniser]


KNOWN: Mapping[str, Attacker] = {
    attacker.name: attacker
    for attacker in (
        Attacker("eigenfaces", "tight", Eigenfaces),
        Attacker("mahalanobis", "tight", Mahalanobis),
        Attacker("sface", "wide", lambda: Embedding(SFace())),
        Attacker("dlib", "wide", lambda: Embedding(DlibResNet())),
    )
}
"""All by name; a path to an ONNX file is one as well."""

PIXELS = "tight"
"""The part that recognisers of pixels look at."""

DEFAULT = ("eigenfaces", "sface")


def attacker(name: str) -> Attacker:
    """Return the attacker called ``name``, or the network in the ONNX file of that name."""
    if name in KNOWN:
        return KNOWN[name]
    if name.lower().endswith(".onnx"):
        return Attacker(Path(name).stem, "wide", lambda: Embedding(OnnxRecogniser(Path(name))))
    raise UsageError(f"There is no attacker {name!r}. Known: {', '.join(KNOWN)}, or the path of an ONNX file.")
