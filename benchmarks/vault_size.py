"""How large the vault of a clip is, and how large it would be with other encoders: python -m benchmarks.vault_size."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np

import ksame
from ksame.scene.media import EncoderConfig, open_media
from ksame.scene.release import ReleaseOptions
from ksame.scene.sealing import film
from ksame.scene.sealing.film import Blocks, Film, FilmWriter, Planes
from ksame.scene.sealing.restore import records
from ksame.scene.sealing.sealer import Originals
from ksame.vault import Identity, Vault, new_identity

_X264 = {"preset": "slow", "bf": "0", "threads": "1"}
_NEARLY = "no-deblock=1:weightp=0:mbtree=0:aq-mode=0:ipratio=1"
ENCODERS = {
    "FFV1": ("ffv1", "ffv1", {"level": "3"}),
    "x264 lossless": ("libx264", "h264", {**_X264, "qp": "0"}),
    **{
        f"x264 qp {qp} and fixes": ("libx264", "h264", {**_X264, "qp": str(qp), "x264-params": _NEARLY})
        for qp in (4, 8, 10, 12, 14)
    },
}


def sealed(clip: Path, folder: Path, identity: Identity) -> Vault:
    options = ReleaseOptions(vault=folder / "case.age", recipients=(identity.recipient,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ksame.deidentify_media(clip, folder / "safe.mp4", options=options, seed=1)
    return Vault.read(folder / "case.age")


def masks(vault: Vault, identity: Identity, shapes: list[tuple[int, ...]]) -> Iterator[tuple[Film, list[Blocks]]]:
    """Yield every film, and its masks."""
    keys = vault.keys(identity)
    numbers = {entry.sha256: number for number, entry in enumerate(vault.index.entries)}
    films = {each.sha256: each for record in records(vault, keys).values() for each in record.films}
    for record in films.values():
        data = vault.open(numbers[record.sha256], [keys[name] for name in reversed(record.holders)])
        opened = Film.read(data)
        yield opened, [mask.copy() for _, mask in opened.frames(shapes)]


def encoded(frames: list[Planes], films: list[tuple[Film, list[Blocks]]], name: str) -> int:
    """Return the bytes that all films take with an encoder."""
    total, size = 0, frames[0][0].shape[:2]
    with patch.object(film, "_encoder", lambda _: ENCODERS[name]):
        for opened, kept in films:
            writer = FilmWriter(opened.head.first, opened.window, opened.head.pixel_format, size)
            for index, mask in enumerate(kept, opened.head.first):
                blocks = np.zeros(frames[index][-1].shape, dtype=bool)
                blocks[opened.window.slices(blocks.shape, size)] = mask
                writer.add(frames[index], blocks)
            total += len(writer.finish())
    return total


def main() -> None:
    default = Path(os.environ.get("KSAME_SHARED", "")) / "clips" / "openface_multi_face.avi"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clip", type=Path, nargs="?", default=default)
    clip = parser.parse_args().clip
    identity, own = new_identity(), clip.stat().st_size
    with tempfile.TemporaryDirectory() as folder:
        vault = sealed(clip, Path(folder), identity)
        size = vault.path.stat().st_size
        print(f"{clip.name}: {own} bytes; its vault: {size} bytes, {size / own:.2f} times as much")
        media = open_media(clip)
        originals = Originals(media, Path("safe.mp4"), EncoderConfig())
        frames = [[plane.copy() for plane in originals.planes(frame)] for frame in media.frames()]
        films = list(masks(vault, identity, [plane.shape for plane in frames[0]]))
        for name in ENCODERS:
            begun = time.perf_counter()
            n = encoded(frames, films, name)
            print(f"{name}: {n} bytes, {n / own:.2f} times the clip, {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
