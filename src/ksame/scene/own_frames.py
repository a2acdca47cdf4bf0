"""De-identify frames of one's own, given as arrays: all stages, without any file."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from ksame.arrays import ByteArray
from ksame.errors import InputError, PrivacyWarning, seed_number
from ksame.models import RECOGNISERS
from ksame.recipes import METHODS
from ksame.scene.at_risk import stretches
from ksame.scene.config import JobConfig
from ksame.scene.decide import JUDGE, collect_views, decide
from ksame.scene.media import Frame
from ksame.scene.render import Renderer, render_frames
from ksame.scene.stages import renderer_for
from ksame.scene.track import Tracks, by_name, find_tracks
from ksame.scene.workers import picture_pool

_FRAMES = Path("frames")
"""What boxes without the name of a file are for."""


def deidentify_frames(
    frames: Iterable[ByteArray], *, fps: float = 25.0, config: JobConfig | None = None, seed: int | None = None
) -> list[ByteArray]:
    """Return frames in which everyone is replaced; whoever cannot be replaced is masked, with a warning.

    There is no certificate, and no promise beyond that: :func:`ksame.deidentify_media` writes one. All frames are kept
    in memory.

    Parameters
    ----------
    frames : iterable of ndarray of shape (height, width, 3), uint8
        RGB, in order, all of one size. A single one is a photograph.
    fps : float
        Frames per second.
    config : JobConfig, optional
        What it says of files (encoding, damage, workers) has no effect.
    seed : int, optional
        For the surrogates. A secret; drawn at random by default.

    Returns
    -------
    rendered : list of ndarray of shape (height, width, 3), uint8
        As many. The frames that were given are not changed.

    Warns
    -----
    PrivacyWarning
        Where no face is found, and where faces are masked because they cannot be replaced.
    """
    config = config or JobConfig()
    seed = secrets.randbits(63) if seed is None else seed_number("deidentify_frames", seed)
    if not (np.isfinite(fps) and fps > 0):
        raise InputError(f"The 'fps' parameter of deidentify_frames must be a number above 0. Got {fps!r}.")
    given = [Frame(i, i / fps, _checked(pixels, i)) for i, pixels in enumerate(frames)]
    if not given:
        return []
    height, width = given[0].pixels.shape[:2]
    if config.boxes is not None:
        config.boxes.check({_FRAMES: (width, height)})
        config.boxes.of(_FRAMES, len(given))  # those of frames that are not there are refused before any work
    with picture_pool() as pictures, threadpool_limits(1, "blas"):
        still = len(given) == 1
        tracks = find_tracks(
            lambda start: given[start:], (width, height), None, config.tracker, still=still, map=pictures.map
        )
        judge = RECOGNISERS[JUDGE].build()
        views = []
        if not METHODS[config.method].masks:
            views.append(collect_views(lambda _: given, tracks, judge, config.tracker.detector))
        plan = decide(
            views,
            by_name([tracks]),
            config,
            seed,
            recogniser=judge,
            executor=pictures,
        )
        renderer = renderer_for(config, seed, _FRAMES, tracks, plan.decisions)
        with closing(render_frames(given, renderer, pictures)) as rendered:
            out = [pixels.copy() if pixels is frame.pixels else pixels for frame, pixels in rendered]
    _warn(renderer, tracks, given)
    return out


def _checked(pixels: ByteArray, index: int) -> ByteArray:
    frame = np.asarray(pixels)
    if frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8 or not frame.size:
        raise InputError(
            f"Frame {index} must be an array of shape (height, width, 3) and type uint8. "
            f"Got {frame.shape} and {frame.dtype}."
        )
    return frame


def _warn(renderer: Renderer, tracks: Tracks, frames: list[Frame]) -> None:
    """Say who is masked instead, and that nobody was found; ``deidentify_frames`` is two calls up."""
    if not tracks.tracks:
        warnings.warn("No face was found: whoever is there after all is as they were.", PrivacyWarning, stacklevel=3)
    masked = (face for frame in frames for face in renderer.masked_instead(frame.index, frame.time))
    for risk in stretches(masked, [frame.time for frame in frames]):
        warnings.warn(
            f"{risk.person} is masked in frames {risk.first} to {risk.last}: {risk.reason}.",
            PrivacyWarning,
            stacklevel=3,
        )
