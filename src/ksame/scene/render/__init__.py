"""Render frames: a frame, tracks and decisions in, a frame out.

``Renderer(tracks, decisions).render(frame) -> pixels`` of shape (height, width, 3), 8-bit RGB. It is pure: the same
frame comes out the same, whatever was rendered before. :func:`render_frames` renders a recording in order on an
executor that is handed in; no thread is started here. :func:`changed_region` tells which pixels, (height, width), it
answers for.
"""

from ksame.scene.render.changed import changed_region, filled_parts, owned_parts
from ksame.scene.render.filling import fill, outline_of, rectangle
from ksame.scene.render.masking import FILL, Mask
from ksame.scene.render.renderer import FramePlan, MaskedInstead, Renderer
from ksame.scene.render.sequence import STEP, first_needed, render_frames

__all__ = [
    "FILL",
    "STEP",
    "FramePlan",
    "Mask",
    "MaskedInstead",
    "Renderer",
    "changed_region",
    "fill",
    "filled_parts",
    "first_needed",
    "outline_of",
    "owned_parts",
    "rectangle",
    "render_frames",
]
