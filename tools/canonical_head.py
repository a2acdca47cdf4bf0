"""Take the canonical head out of MediaPipe's face_landmarker.task (Apache-2.0).

    python -m tools.canonical_head -o src/ksame/data/canonical_head.npz

Its points, triangles and weights are in a protocol-buffers message (GeometryPipelineMetadata). The points that the
expression network reads are listed in MediaPipe's source only.
"""

from __future__ import annotations

import argparse
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ksame.arrays import FloatArray, IntArray
from ksame.errors import ModelError
from ksame.models import Store
from ksame.models.blocked import varint

# kLandmarksSubsetIdxs of face_blendshapes_graph.cc
# fmt: off
BLENDSHAPE_POINTS = (
    0, 1, 4, 5, 6, 7, 8, 10, 13, 14, 17, 21, 33, 37, 39, 40, 46, 52, 53, 54, 55, 58, 61, 63, 65, 66, 67,
    70, 78, 80, 81, 82, 84, 87, 88, 91, 93, 95, 103, 105, 107, 109, 127, 132, 133, 136, 144, 145, 146,
    148, 149, 150, 152, 153, 154, 155, 157, 158, 159, 160, 161, 162, 163, 168, 172, 173, 176, 178, 181,
    185, 191, 195, 197, 234, 246, 249, 251, 263, 267, 269, 270, 276, 282, 283, 284, 285, 288, 291, 293,
    295, 296, 297, 300, 308, 310, 311, 312, 314, 317, 318, 321, 323, 324, 332, 334, 336, 338, 356, 361,
    362, 365, 373, 374, 375, 377, 378, 379, 380, 381, 382, 384, 385, 386, 387, 388, 389, 390, 397, 398,
    400, 402, 405, 409, 415, 454, 466, 468, 469, 470, 471, 472, 473, 474, 475, 476, 477,
)
# fmt: on


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    with zipfile.ZipFile(Store().path("face-landmarker")) as archive:
        head, triangles, weights = geometry(archive.read("geometry_pipeline_metadata_landmarks.binarypb"))
    np.savez_compressed(
        options.output,
        points=head.astype(np.float32),
        weights=weights.astype(np.float32),
        triangles=triangles.astype(np.int16),
        blendshape_points=np.array(BLENDSHAPE_POINTS, dtype=np.int16),
    )


def geometry(message: bytes) -> tuple[FloatArray, IntArray, FloatArray]:
    """Decode head, triangles and weights out of a GeometryPipelineMetadata message."""
    vertices: list[float] = []
    corners: list[int] = []
    weighted: dict[int, float] = {}
    for number, value in _fields(message):
        if number == 1 and isinstance(value, bytes):  # canonical_mesh
            for part, item in _fields(value):
                if part == 3:
                    vertices.append(float(item))
                elif part == 4:
                    corners.append(int(item))
        elif number == 2 and isinstance(value, bytes):  # procrustes_landmark_basis
            reference = dict(_fields(value))
            weighted[int(reference.get(1, 0))] = float(reference[2])
    head = np.array(vertices).reshape(-1, 5)[:, :3]  # a vertex is a position and a place in the texture
    weights = np.zeros(len(head))
    weights[list(weighted)] = list(weighted.values())
    triangles = np.array(corners, dtype=np.intp).reshape(-1, 3)
    return head, triangles, weights


def _fields(message: bytes) -> Iterator[tuple[int, bytes | float | int]]:
    """Yield number and value of every field of a protocol-buffers message.

    Examples
    --------
    >>> list(_fields(bytes([0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69])))
    [(1, 150), (2, b'hi')]
    """
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            whole, at = varint(message, at)
            yield number, whole
        elif kind == 2:
            length, at = varint(message, at)
            yield number, message[at : at + length]
            at += length
        elif kind == 5:
            yield number, struct.unpack_from("<f", message, at)[0]
            at += 4
        else:
            raise ModelError(f"face_landmarker.task: field {number} has the unexpected wire type {kind}.")


if __name__ == "__main__":
    main()
