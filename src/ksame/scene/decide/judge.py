"""The judge: a recogniser that compares people with their heads as they will be published."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksame.arrays import FloatArray
from ksame.heads.covers import HEAD, Cover
from ksame.heads.drawing import Invention
from ksame.heads.head import Head
from ksame.heads.invention import invent, taken_away
from ksame.heads.surrogate import Surrogate
from ksame.models import Recogniser, five_points
from ksame.models.finisher import Finisher
from ksame.scene.decide.subject import Subject, View

MARGIN = 0.05
"""How far below the recogniser's own threshold a likeness must be: room for frames that are not judged, by choice."""
_SIZE = 128  # pixels at which heads are finished to be judged: the smallest of the finisher; recognisers see 112


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges published heads: the finisher makes them, the recogniser compares them with the originals."""

    recogniser: Recogniser
    finisher: Finisher
    cover: Cover = HEAD

    @property
    def limit(self) -> float:
        """The cosine above which a person counts as recognised."""
        return self.recogniser.threshold - MARGIN

    def embed(self, view: View, surrogate: Surrogate) -> FloatArray:
        """Return the embedding, (d,), of a view with a surrogate's head in it."""
        out, points, neutral = view.load()
        invention = Invention.of(surrogate.looks, Head.of(points), neutral, self.cover)
        region = invention.region
        invent(out, taken_away(out.shape, [region.outline]), invention, self.finisher, _SIZE)
        placed = (invention.points - region.matrix[:, 2]) @ np.linalg.inv(region.matrix[:, :2]).T
        return self.recogniser.embed(out, five_points(placed))

    def likeness(self, person: Subject, surrogate: Surrogate) -> float:
        """Return the highest cosine, over a person's views, between the original and the view with a surrogate.

        Where they are recognised in one view, the others are not looked at.
        """
        highest = -1.0
        for view in person.views:
            highest = max(highest, float(self.embed(view, surrogate) @ view.embedding))
            if highest > self.limit:
                break
        return highest
