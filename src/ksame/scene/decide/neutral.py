"""Neutral shapes: a face without expression, from the meshes of a track. No pixel is read."""

from __future__ import annotations

import numpy as np

from ksame.arrays import FloatArray, IntArray
from ksame.heads import Head, expression_of, neutral_shape
from ksame.models import Source
from ksame.scene.track.tracks import Track

_SAMPLES = 7  # frames over which a neutral shape is averaged, by choice
_FRONTAL = 30.0  # degrees of yaw within which a frame is good for an average, by choice


def neutral_of(track: Track) -> FloatArray | None:
    """Return the neutral shape, (478, 3), of whoever a track shows; None without a mesh.

    It is the average over frames in which the face is seen well, each without its expression.
    """
    rows = _sampled(track)
    if not len(rows):
        return None
    shapes = [
        neutral_shape(Head.of(np.asarray(track.points[row], np.float64)).aligned, expression_of(track.blendshapes[row]))
        for row in rows
    ]
    return np.asarray(np.mean(shapes, axis=0))


def _sampled(track: Track) -> IntArray:
    """Choose rows of a track, evenly spread, in which the face is seen well; any with a mesh where there are none."""
    good = track.poses.any(axis=1)  # as good as asking for meshes, without reading them all
    frontal = good & (abs(track.poses[:, 0]) < _FRONTAL) & (track.source == Source.DETECTED)
    rows = np.flatnonzero(frontal if frontal.any() else good)
    if len(rows) > _SAMPLES:
        rows = rows[np.linspace(0, len(rows) - 1, _SAMPLES).round().astype(int)]
    return rows
