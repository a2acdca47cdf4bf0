"""The promise for heads that are invented in photographs and video."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray
from ksame.privacy.models import Violation

STATEMENT = (
    "Inside the region the picture is a function of the surrogate, of the pose, expression and place of the head, and "
    "of what lies outside"
)
_ROUNDS = 2  # of noise


@dataclass(frozen=True)
class InventedRegion:
    """Nothing inside a region is read: what is shown there would be the same whoever was there."""

    def statement(self) -> str:
        """Return the promise in one sentence."""
        return f"{STATEMENT}: no pixel that was there is read."

    def not_promised(self) -> tuple[str, ...]:
        """Return what a reader might believe, and should not."""
        return (
            "Pose, expression and movement are the person's own, and may tell who they are.",
            "What lies outside the region is the original's: hair beyond it, body, clothes, place, company.",
            "Age, gender and skin tone of the surrogate are like those of the people who share it.",
        )

    def check(
        self,
        render: Callable[[ByteArray], ByteArray],
        frame: ByteArray,
        region: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> list[Violation]:
        """Fill the region, (height, width), with noise, render again, and return a violation if any byte differs.

        ``render`` has the same tracks and the same plan each time; ``frame`` is the original, (height, width, 3).
        """
        expected = render(frame)
        for _ in range(_ROUNDS):
            noisy = frame.copy()
            noisy[region] = rng.integers(0, 256, noisy[region].shape, dtype=np.uint8)
            differing = int((render(noisy) != expected).any(axis=2).sum())
            if differing:
                return [Violation(None, f"{differing} pixels depend on what was inside the region")]
        return []
