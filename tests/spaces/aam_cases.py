"""Small made-up faces for the tests of the appearance model: smooth textures on a warped grid of points."""

import cv2
import numpy as np

GRID = np.stack(np.meshgrid(np.linspace(0, 60, 5), np.linspace(0, 72, 6)), axis=-1).reshape(-1, 2)


def bend(points, amounts):
    """Move grid points smoothly by three made-up modes."""
    x, y = (points - points.mean(axis=0)).T / 36.0
    fields = [(0.2 * x * np.abs(y), 0 * y), (0 * x, 0.25 * (x**2 - 0.4)), (0.2 * y**2, 0.1 * x * y)]
    return points + 36.0 * sum(a * np.stack(f, axis=1) for a, f in zip(amounts, fields, strict=True))


def paint_blobs(points, weights, size):
    """Draw one soft blob for each of a few points; ``weights`` say how bright each is."""
    yy, xx = np.mgrid[: size[0], : size[1]]
    spots = points[[6, 8, 16, 12, 22, 2, 27]]
    picture = np.full((*size, 3), 0.35)
    for i, ((x, y), w) in enumerate(zip(spots, weights, strict=True)):
        blob = np.exp(-((xx - x) ** 2 + (yy - y) ** 2) / (2 * 7.0**2))
        picture += w * blob[..., None] * np.array([1.0, 0.8 - 0.1 * (i % 3), 0.6 + 0.1 * (i % 2)])
    return cv2.GaussianBlur(picture.clip(0, 1).astype(np.float32), (0, 0), 1.0)


def made_up_faces(n=12, seed=0, size=(130, 120)):
    """Return images (n, height, width, 3) and landmarks (n, 30, 2)."""
    rng = np.random.default_rng(seed)
    images, landmarks = [], []
    for _ in range(n):
        angle, scale = rng.normal(0, 0.05), rng.uniform(0.95, 1.1)
        turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        points = bend(GRID, rng.normal(0, 0.3, 3))
        points = (points - GRID.mean(axis=0)) @ turn.T + np.array([60.0, 64.0]) + rng.normal(0, 2, 2)
        images.append(paint_blobs(points, 0.35 + rng.normal(0, 0.12, 7), size))
        landmarks.append(points)
    return np.stack(images), np.stack(landmarks)
