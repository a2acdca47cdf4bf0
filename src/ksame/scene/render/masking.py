"""Masks on faces in frames: the plain fill, and the methods that mask.

The plain fill keeps nothing of what it covers. The others promise nothing; their levels are those of the papers' faces,
134 pixels high, and grow with the face.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksame.arrays import ByteArray
from ksame.errors import UsageError
from ksame.methods.adhoc import scaled
from ksame.models import Face
from ksame.recipes import for_scenes
from ksame.scene.render.filling import fill, inside_outline, outline_of, window_of

FILL = "fill"
"""The mask of whoever cannot be replaced, and of whoever is masked where the method is no mask."""


@dataclass(frozen=True)
class Mask:
    """One kind of mask.

    Parameters
    ----------
    name : str
        A method that masks.
    level : float, optional
        Strength, for those that have one, on a face 134 pixels high.
    """

    name: str = FILL
    level: float | None = None

    def __post_init__(self) -> None:
        entry = for_scenes(self.name)
        if not entry.masks:
            raise UsageError(f"{self.name} gives people other faces; it is no mask.")
        entry.build(**entry.at(self.level))

    @property
    def needs_mesh(self) -> bool:
        """Whether it can only be put on a face whose eyes are known."""
        return for_scenes(self.name).scenes.needs_mesh

    def apply(self, out: ByteArray, face: Face, rng: np.random.Generator) -> None:
        """Mask a face in a frame, (height, width, 3), in place.

        What is read is ``out`` itself, so that nothing of the original comes back where faces overlap.
        """
        entry = for_scenes(self.name)
        outline, height = outline_of(face)
        if entry.scenes.fills:
            fill(out, outline)
            return
        window = window_of(outline, out.shape)
        part = out[window]
        if not part.size:
            return
        origin = np.array([window[1].start, window[0].start])
        points = None if face.mesh is None else (face.mesh.points[:, :2] - origin)[None]
        method = scaled(entry.build(**entry.at(self.level)), height, part.shape[0] * part.shape[1])
        pixels = method.apply(part[None].astype(np.float64) / 255, rng, points)[0]
        inside = inside_outline(part.shape[:2], outline - origin) > 0.5
        part[inside] = np.rint(pixels * 255).clip(0, 255).astype(np.uint8)[inside]
