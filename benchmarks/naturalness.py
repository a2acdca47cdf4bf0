"""How far released faces are from photographs: kernel distance (Binkowski et al. 2018), EfficientNet-Lite0's features.

``python -m benchmarks.naturalness FACES RELEASED... -o SCRATCH [--originals FOLDER]`` where FACES holds ``portraits``
(one photograph per person, named by subject) and ``heldout.txt`` (subjects of whom released pictures may be judged).
The real faces are the portraits of everybody else. RELEASED are folders of whole pictures named as their originals,
which are the portraits or lie in ``--originals``. All crops are cut where the *original's* face is. Features of the
real faces are kept in SCRATCH. Untouched portraits of other people score about 0.

``python -m benchmarks.naturalness --crops REAL CHANGED...`` compares folders of crops that are cut already.

Needs onnx and onnxruntime (the extra ``dev``); PyTorch is not needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.efficientnet import SIDE, EfficientNetLite0
from benchmarks.released import CROP, Reader, Released, cut, kept, picture_files, read
from ksame.faces.faceset import ByteArray, FloatArray
from ksame.pictures import read_rgb

_WINDOW = (48, 28, 208, 228)  # the part of a crop that the network sees: the head, little of what is round it


def seen_part(crop: ByteArray) -> ByteArray:
    """Return what the network is shown of a crop, (224, 224, 3)."""
    whole = Image.fromarray(crop).resize((CROP, CROP))
    return np.asarray(whole.crop(_WINDOW).resize((SIDE, SIDE), Image.Resampling.BICUBIC))


def distance(real: FloatArray, changed: FloatArray) -> tuple[float, float]:
    """Return the kernel distance between two sets of features and its standard error over the changed ones.

    Parameters
    ----------
    real, changed : ndarray of shape (n, n_features) and (m, n_features)

    Returns
    -------
    value : float
        The unbiased estimate of the squared distance, by a polynomial kernel of degree 3; it may fall below 0.
    error : float
        By leaving out one changed face at a time.
    """
    mean, spread = real.mean(axis=0), real.std(axis=0, ddof=1) + 1e-6
    x, y = (real - mean) / spread, (changed - mean) / spread
    inner, rows = kernel(x, x), kernel(y, y)
    np.fill_diagonal(inner, 0)
    np.fill_diagonal(rows, 0)
    n, m, across = len(x), len(y), kernel(x, y).mean(axis=0)
    constant = inner.sum() / (n * (n - 1))
    value = constant + rows.sum() / (m * (m - 1)) - 2 * across.mean()
    if m < 3:
        return float(value), float("nan")
    without = (rows.sum() - 2 * rows.sum(axis=0)) / ((m - 1) * (m - 2)) - 2 * (across.sum() - across) / (m - 1)
    return float(value), float(np.sqrt((m - 1) * without.var()))


def kernel(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the polynomial kernel, (n, m), of two sets of features."""
    return np.asarray((x @ y.T / x.shape[1] + 1) ** 3)


class Judge:
    """Cuts faces out of pictures and turns them into features; meshes of originals are found once."""

    def __init__(self) -> None:
        self.network, self._reader = EfficientNetLite0(), Reader()
        self._points: dict[Path, FloatArray | None] = {}

    def features(self, originals: Sequence[Path], released: Released | None = None) -> FloatArray:
        """Return features of originals, or of what became of them, where there is a face in the original."""
        return self.network.features(self._parts(originals, released))

    def _parts(self, originals: Sequence[Path], released: Released | None) -> Iterator[ByteArray]:
        for path in originals:
            points = self._mesh(path)
            if points is not None:
                yield seen_part(cut(read(path if released is None else released.made[path.stem]), points))

    def _mesh(self, path: Path) -> FloatArray | None:
        if path not in self._points:
            mesh = self._reader.mesh(read(path))
            self._points[path] = None if mesh is None else mesh.points
            if mesh is None:
                print(f"<!-- {path.name}: no face in the original; left out -->")
        return self._points[path]


def compare_crops(folders: Sequence[Path]) -> None:
    """Print the distances of folders of crops from the first one."""
    network = EfficientNetLite0()
    real, *rest = (network.features(map(seen_part, _crops(folder))) for folder in folders)
    for folder, changed in zip(folders[1:], rest, strict=True):
        print("{}: {:.3f} ± {:.3f}".format(folder, *distance(real, changed)))


def _crops(folder: Path) -> Iterator[ByteArray]:
    for path in picture_files(folder):
        yield read_rgb(path)


def compare_released(faces: Path, folders: Iterable[Path], scratch: Path, originals: Path | None) -> None:
    """Print the distances of released pictures, and of their originals, from portraits of other people."""
    judge, heldout = Judge(), set((faces / "heldout.txt").read_text(encoding="utf-8").split())
    others = [path for path in picture_files(faces / "portraits") if path.stem not in heldout]
    real = kept(scratch / "real-faces.npz", others, lambda: judge.features(others))
    print(f"Real faces: {len(real)} of {len(others)} portraits of people who are not held out.\n")
    pool = picture_files(faces / "portraits" if originals is None else originals)
    pool = [path for path in pool if originals is not None or path.stem in heldout]
    print("| released | pictures | distance | the same, untouched |")
    print("| --- | --- | --- | --- |")
    for folder in folders:
        stems = {path.stem for path in picture_files(folder)}
        chosen = [path for path in pool if path.stem in stems]
        if not chosen:
            raise SystemExit(f"{folder}: no picture is named as one of the {len(pool)} originals")
        changed, before = judge.features(chosen, Released.of(chosen, folder)), judge.features(chosen)
        after, untouched = distance(real, changed), distance(real, before)
        print("| {} | {} | {:.3f} ± {:.3f} | {:.3f} ± {:.3f} |".format(folder.name, len(changed), *after, *untouched))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("-o", "--output", type=Path, help="scratch folder, which is kept between runs")
    parser.add_argument("--originals", type=Path, help="folder of the originals, if not FACES/portraits")
    parser.add_argument("--crops", action="store_true", help="folders are crops: the real ones first")
    options = parser.parse_args()
    if len(options.folders) < 2:
        parser.error("give at least two folders")
    if options.crops:
        compare_crops(options.folders)
    elif options.output is None:
        parser.error("-o SCRATCH is missing")
    else:
        compare_released(options.folders[0], options.folders[1:], options.output, options.originals)


if __name__ == "__main__":
    main()
