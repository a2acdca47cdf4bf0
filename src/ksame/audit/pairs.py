"""Crop the faces of every pair once: what attackers are given, and what the pictures lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ksame.attacks import Restorer
from ksame.audit.crops import FaceCropper, FaceCrops
from ksame.audit.pairing import AuditInput, LazyImage, Pair
from ksame.audit.result import NotJudged
from ksame.errors import InputError
from ksame.faces.faceset import FaceSet
from ksame.progress import Progress, silent
from ksame.scheduling import Scheduler
from ksame.utility.geometry import MeshError, mesh_error
from ksame.utility.loss import Loss, entropy, measure_loss

NO_FACE = "no face found in it, so there is nothing to recognise"


@dataclass(frozen=True, eq=False)
class PairCrops:
    """A pair that could be judged."""

    pair: Pair
    # ``after`` may be empty
    before: FaceCrops
    after: FaceCrops
    loss: Loss | None  # None where the pictures differ in size
    entropy_before: float  # bits per pixel of the original
    mesh_error: MeshError | None  # None where either has no mesh
    # the released picture after each restorer, by the restorer's hash
    restored: Mapping[str, FaceCrops] = field(default_factory=dict)

    @property
    def subject(self) -> str:
        """Whom the pair shows."""
        return self.pair.original.subject


@dataclass(eq=False)
class AuditFaces:
    """The faces of all pictures."""

    pairs: list[PairCrops] = field(default_factory=list)
    further: list[tuple[LazyImage, FaceCrops]] = field(default_factory=list)  # other originals of the same people
    not_judged: list[NotJudged] = field(default_factory=list)

    @property
    def people(self) -> int:
        """How many people the pairs show."""
        return len({pair.subject for pair in self.pairs})

    @property
    def without_face(self) -> list[PairCrops]:
        """Pairs whose released picture shows the attacker no face."""
        return [pair for pair in self.pairs if pair.after.empty]

    def restored_by(self, restorer: Restorer | None) -> AuditFaces:
        """Return the faces with released pictures restored; these faces themselves for None."""
        if restorer is None:
            return self
        pairs = [replace(pair, after=pair.restored[restorer.sha256]) for pair in self.pairs]
        return AuditFaces(pairs, self.further, self.not_judged)


@dataclass(frozen=True, eq=False)
class _Cropping:
    """How pictures are cropped; can be sent to another process."""

    cropper: FaceCropper
    restorers: Sequence[Restorer]
    by_hand: bool


def crop_pairs(
    pictures: AuditInput,
    cropper: FaceCropper,
    *,
    restorers: Sequence[Restorer] = (),
    by_hand: bool = False,
    scheduler: Scheduler,
    progress: Progress = silent,
) -> AuditFaces:
    """Crop the faces of every pair, and of further originals of the same people.

    Released pictures are cropped as they are, and once more after each restorer. Raises InputError when no pair can be
    judged; when faces are asked of pictures that have none.
    """
    faces = AuditFaces(not_judged=list(pictures.not_paired))
    cropping = _Cropping(cropper, restorers, by_hand)
    for pair, crops in zip(
        pictures.pairs,
        scheduler.map(partial(_crop_pair, cropping), pictures.pairs, "detecting faces", progress=progress),
        strict=True,
    ):
        if isinstance(crops, InputError):
            faces.not_judged.append(NotJudged(name=pair.released.name, side="released", reason=str(crops)))
        elif isinstance(crops, PairCrops):
            faces.pairs.append(crops)
        else:
            faces.not_judged += crops
    if pictures.further:
        what = "detecting faces of further originals"
        more = scheduler.map(partial(_crop_further, cropping), pictures.further, what, progress=progress)
        for image, crop in zip(pictures.further, more, strict=True):
            if isinstance(crop, InputError):
                faces.not_judged.append(NotJudged(name=image.name, side="original", reason=str(crop)))
            elif isinstance(crop, NotJudged):
                faces.not_judged.append(crop)
            elif not crop.empty:
                faces.further.append((image, crop))
    _require_two_people(pictures, faces)
    return faces


def _crop_pair(cropping: _Cropping, pair: Pair) -> PairCrops | list[NotJudged]:
    """Crop one pair, or say why it cannot be judged."""
    cropper, by_hand = cropping.cropper, cropping.by_hand
    original, released = _load(pair.original, "original", cropper), _load(pair.released, "released", cropper)
    if isinstance(original, NotJudged) or isinstance(released, NotJudged):
        return [each for each in (original, released) if isinstance(each, NotJudged)]
    before = cropper.crop(original)
    if before.empty:
        return [NotJudged(name=pair.original.name, side="original", reason=NO_FACE)]
    after = cropper.crop(released, original=before, by_hand=by_hand)
    loss = measure_loss(*_alike(original, released)) if original.shape[:2] == released.shape[:2] else None
    restore = partial(cropper.crop_restored, released, original=before, by_hand=by_hand)
    restored = {restorer.sha256: restore(restorer) for restorer in cropping.restorers}
    return PairCrops(pair, before, after, loss, entropy(original), _mesh_error(before, after), restored)


def _crop_further(cropping: _Cropping, image: LazyImage) -> FaceCrops | NotJudged:
    pixels = _load(image, "original", cropping.cropper)
    return pixels if isinstance(pixels, NotJudged) else cropping.cropper.crop(pixels)


def _mesh_error(before: FaceCrops, after: FaceCrops) -> MeshError | None:
    first, second = (None if crops.face is None else crops.face.mesh for crops in (before, after))
    if first is None or second is None:
        return None
    return mesh_error(first, second, comparable=before.shape == after.shape)


def _load(image: LazyImage, side: Literal["original", "released"], cropper: FaceCropper) -> NDArray[Any] | NotJudged:
    """Return the pixels of an image, or why it cannot be judged."""
    try:
        pixels = image.load()
    except InputError as error:
        return NotJudged(name=image.name, side=side, reason=str(error))
    if cropper.size is not None and pixels.shape[:2] != cropper.size:
        expected = f"{cropper.size[1]}x{cropper.size[0]}"
        reason = f"{pixels.shape[1]}x{pixels.shape[0]} pixels, while the registered faces have {expected}"
        return NotJudged(name=image.name, side=side, reason=reason)
    return pixels


def _alike(before: NDArray[Any], after: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both with the same number of channels."""
    channels = max(before.shape[2], after.shape[2])
    first, second = (np.repeat(p, 3, axis=2) if p.shape[2] < channels else p for p in (before, after))
    return first, second


def _require_two_people(pictures: AuditInput, faces: AuditFaces) -> None:
    if faces.people >= 2:
        return
    first = faces.not_judged[0]
    hint = ""
    if any(picture.reason == NO_FACE for picture in faces.not_judged):
        hint = " If the pictures are registered face crops, say so with --view faces."
    raise InputError(
        f"{len(faces.pairs)} of {len(pictures.pairs)} pairs could be judged, and an audit needs two people. "
        f"{first.side} {first.name}: {first.reason}.{hint}"
    )


def face_sets(faces: AuditFaces, part: str) -> tuple[FaceSet, FaceSet | None]:
    """Return originals and released faces as attackers get them; ``wide`` faces carry their five points.

    Released pictures in which there is no face are left out; None stands for a release without any.
    """
    before = {pair.pair.original.name: (pair.pair.original, pair.before) for pair in faces.pairs}
    before |= {image.name: (image, crops) for image, crops in faces.further}
    after = [(pair.pair.released, pair.after) for pair in faces.pairs if not pair.after.empty]
    return _face_set(list(before.values()), part, "original"), _face_set(after, part, "released") if after else None


def _face_set(faces: Sequence[tuple[LazyImage, FaceCrops]], part: str, side: str) -> FaceSet:
    points = None
    if part == "wide" and all(crops.points is not None for _, crops in faces):
        points = np.stack([crops.points for _, crops in faces if crops.points is not None])
    images = np.stack([getattr(crops, part) for _, crops in faces]).astype(np.float32)
    images /= np.float32(255)  # here and not in the face set, which would go through doubles
    return FaceSet(
        images,
        np.array([image.subject for image, _ in faces]),
        points,
        names=tuple(f"{side}/{image.name}" for image, _ in faces),
    )
