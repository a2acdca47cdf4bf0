"""Looking at every pair once: what attackers will be given, and what the pictures lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ksame.attacks import Restorer
from ksame.audit.material import Material, Missed, Pair, Picture
from ksame.audit.sight import Eye, Seen
from ksame.errors import InputError
from ksame.faces.faceset import FaceSet
from ksame.progress import Track, silent
from ksame.utility.geometry import MeshError, mesh_error
from ksame.utility.loss import Loss, entropy, measure_loss

NO_FACE = "no face found in it, so there is nothing to recognise"


@dataclass(frozen=True, eq=False)
class Looked:
    """A pair that could be judged.

    Attributes
    ----------
    pair : Pair
    before, after : Seen
        ``after`` may hold no face.
    loss : Loss or None
        None where the pictures differ in size.
    entropy_before : float
        Bits a pixel of the original.
    moved : MeshError or None
        None where either has no mesh.
    restored : mapping of str to Seen
        What is seen in the released picture after each restorer, by the restorer's hash.
    """

    pair: Pair
    before: Seen
    after: Seen
    loss: Loss | None
    entropy_before: float
    moved: MeshError | None
    restored: Mapping[str, Seen] = field(default_factory=dict)


@dataclass(eq=False)
class Sight:
    """Everything that was seen.

    Attributes
    ----------
    pairs : list of Looked
    further : list of (Picture, Seen)
        Other originals of the same people.
    missed : list of Missed
        Pictures that could not be judged.
    """

    pairs: list[Looked] = field(default_factory=list)
    further: list[tuple[Picture, Seen]] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)

    @property
    def unseen(self) -> list[Looked]:
        """Pairs whose released picture shows the attacker no face."""
        return [looked for looked in self.pairs if looked.after.tight is None]

    def through(self, restorer: Restorer | None) -> Sight:
        """Return what is seen once a restorer has been at the released pictures; this sight itself for None."""
        if restorer is None:
            return self
        pairs = [replace(looked, after=looked.restored[restorer.sha256]) for looked in self.pairs]
        return Sight(pairs, self.further, self.missed)


def look_at_all(
    material: Material,
    eye: Eye,
    *,
    restorers: Sequence[Restorer] = (),
    by_hand: bool = False,
    track: Track = silent,
) -> Sight:
    """Look at every pair, and at further originals of the same people.

    Released pictures are looked at as they are, and once more after each restorer.

    Raises
    ------
    InputError
        When no pair can be judged; when faces are asked of pictures that have none.
    """
    sight = Sight(missed=list(material.missed))
    known: dict[str, Seen | None] = {}
    for pair in track(material.pairs, "looking at pairs"):
        _look_at_pair(pair, eye, sight, known, restorers, by_hand=by_hand)
    for picture in track(material.further, "looking at further originals") if material.further else ():
        original = _load(picture, "original", eye, sight)
        seen = None if original is None else eye.look(original)
        if seen is not None and seen.tight is not None:
            sight.further.append((picture, seen))
    _require_enough(material, sight, eye)
    return sight


def _look_at_pair(
    pair: Pair,
    eye: Eye,
    sight: Sight,
    known: dict[str, Seen | None],
    restorers: Sequence[Restorer],
    *,
    by_hand: bool,
) -> None:
    original = _load(pair.original, "original", eye, sight)
    released = _load(pair.released, "released", eye, sight)
    if original is None or released is None:
        return
    if pair.original.name not in known:
        known[pair.original.name] = eye.look(original)
    before = known[pair.original.name]
    if before is None or before.tight is None:
        sight.missed.append(Missed(pair.original.name, "original", NO_FACE))
        return
    after = eye.look(released, like=before, by_hand=by_hand)
    loss = measure_loss(*_alike(original, released)) if original.shape[:2] == released.shape[:2] else None
    moved = None
    if before.mesh is not None and after.mesh is not None:
        moved = mesh_error(before.mesh, after.mesh, comparable=before.shape == after.shape)
    restored = {r.sha256: eye.look_restored(released, r, like=before, by_hand=by_hand) for r in restorers}
    sight.pairs.append(Looked(pair, before, after, loss, entropy(original), moved, restored))


def _load(picture: Picture, side: Literal["original", "released"], eye: Eye, sight: Sight) -> NDArray[Any] | None:
    try:
        pixels = picture.load()
    except InputError as error:
        sight.missed.append(Missed(picture.name, side, str(error)))
        return None
    if eye.size is not None and pixels.shape[:2] != eye.size:
        expected = f"{eye.size[1]}x{eye.size[0]}"
        reason = f"{pixels.shape[1]}x{pixels.shape[0]} pixels, while the registered faces have {expected}"
        sight.missed.append(Missed(picture.name, side, reason))
        return None
    return pixels


def _alike(before: NDArray[Any], after: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both with as many channels."""
    channels = max(before.shape[2], after.shape[2])
    first, second = (np.repeat(p, 3, axis=2) if p.shape[2] < channels else p for p in (before, after))
    return first, second


def _require_enough(material: Material, sight: Sight, eye: Eye) -> None:
    if len({looked.pair.original.subject for looked in sight.pairs}) >= 2:
        return
    n, first = len(material.pairs), sight.missed[0]
    hint = ""
    if any(m.reason == NO_FACE for m in sight.missed):
        hint = " If the pictures are registered face crops, say so with --view faces."
    raise InputError(
        f"{len(sight.pairs)} of {n} pairs could be judged, and an audit needs two people. "
        f"{first.side} {first.name}: {first.reason}.{hint}"
    )


def face_sets(sight: Sight, part: str) -> tuple[FaceSet, FaceSet | None]:
    """Return originals and released faces as attackers get them.

    Parameters
    ----------
    sight : Sight
    part : {"tight", "wide"}
        With ``wide``, faces carry their five points.

    Returns
    -------
    originals : FaceSet
    released : FaceSet or None
        Without the pictures in which there is no face; None where there is none in any.
    """
    first = {looked.pair.original.name: (looked.pair.original, looked.before) for looked in sight.pairs}
    first |= {picture.name: (picture, seen) for picture, seen in sight.further}
    originals = _face_set(list(first.values()), part, "original")
    seen = [(looked.pair.released, looked.after) for looked in sight.pairs if looked.after.tight is not None]
    return originals, _face_set(seen, part, "released") if seen else None


def _face_set(seen: Sequence[tuple[Picture, Seen]], part: str, side: str) -> FaceSet:
    points = None
    if part == "wide" and all(s.points is not None for _, s in seen):
        points = np.stack([s.points for _, s in seen if s.points is not None])
    images = np.stack([getattr(s, part) for _, s in seen]).astype(np.float32)
    images /= np.float32(255)  # here and not in the face set, which would go through doubles
    return FaceSet(
        images,
        np.array([picture.subject for picture, _ in seen]),
        points,
        names=tuple(f"{side}/{picture.name}" for picture, _ in seen),
    )
