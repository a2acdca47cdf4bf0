"""How well an attacker finds out, and undoes, what was done to portraits: the figures of docs/attacks.md.

    python -m benchmarks.attack_detection [--portraits FOLDER]

Spectra and priors are learned on every other portrait; what is measured was held out.
"""

import argparse
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.portraits import portraits
from ksame.attacks.detection import BlurDetector, Pixelation, detect_pixelation
from ksame.attacks.restoration import Prior, enhance
from ksame.faces.faceset import FaceSet, quantise
from ksame.faces.filters import blur, pixelate


def jpeg(image: NDArray[np.uint8], quality: int) -> NDArray[Any]:
    """Return a grey picture as JPEG leaves it."""
    packed = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return np.asarray(cv2.imdecode(packed, cv2.IMREAD_GRAYSCALE))[..., None]


def bicubic(images: NDArray[Any], p: int) -> NDArray[Any]:
    """Enlarge one pixel a block by p, block centres on block centres."""
    height, width = images.shape[1:3]
    move = np.array([[p, 0, (p - 1) / 2], [0, p, (p - 1) / 2]])
    large = [
        cv2.warpAffine(small, move, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        for small in images[:, ::p, ::p, 0].astype(np.float32)
    ]
    return np.stack(large)[..., None]


def psnr(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return 10 * np.log10(1 / ((a - b) ** 2).mean(axis=(1, 2, 3)))


def pixelation(images: NDArray[Any]) -> None:
    for p in (1, *range(2, 17)):
        seen = quantise(pixelate(images, p))
        expected = Pixelation(p) if p > 1 else None
        plain = np.mean([detect_pixelation(image / 255.0) == expected for image in seen])
        packed = np.mean([detect_pixelation(jpeg(image, 80) / 255.0) == expected for image in seen])
        print(f"p = {p:2d}: found in {plain:.1%}, after JPEG 80 in {packed:.1%} of {len(seen)}", flush=True)


def blurring(sharp: FaceSet, images: NDArray[Any]) -> None:
    detector = BlurDetector.learn(sharp)
    for sigma in (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0):
        found = np.array([detector.sigma(image / 255.0) for image in quantise(blur(images, sigma))])
        error = np.abs(found / sigma - 1)
        print(
            f"sigma = {sigma:4.1f}: within 15 % for {np.mean(error <= 0.15):.1%} of {len(found)}, "
            f"worst {error.max():.1%}, median of all {np.median(found):.2f}",
            flush=True,
        )


def restoration(known: FaceSet, images: NDArray[Any]) -> None:
    learned, smooth = Prior.learn(known), Prior.smooth(*known.shape[1:3])
    for p in (2, 4, 8):
        seen = quantise(pixelate(images, p)) / 255.0
        best = psnr(bicubic(seen, p), images)
        shown = {"pixelated": seen, "smooth prior": enhance(seen, Pixelation(p), smooth)}
        shown["learned prior"] = enhance(seen, Pixelation(p), learned)
        listed = ", ".join(f"{name} {psnr(value, images).mean():.2f}" for name, value in shown.items())
        ahead = np.mean(psnr(shown["learned prior"], images) > best)
        print(f"p = {p}: bicubic {best.mean():.2f} dB, {listed}; learned beats bicubic on {ahead:.1%}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--portraits", type=Path)
    faces = portraits(parser.parse_args(arguments).portraits)
    known, held_out = faces.take(np.arange(0, len(faces), 2)), faces.images[1::2].astype(np.float64)
    restoration(known, held_out)
    blurring(known, held_out)
    pixelation(faces.images)


if __name__ == "__main__":
    main()
