"""Feed damaged files to the readers of photographs and recordings.

Whatever a file holds, reading it either works or ends in an error of ksame's own, and then nothing stands under the
name of the output.

    python tools/fuzz_media.py --minutes 10     # random damage of all kinds; names every file that breaks this
    python tools/fuzz_media.py --flips 40       # how much visible damage by flipped bits is noticed, by codec
"""

from __future__ import annotations

import argparse
import multiprocessing
import queue
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from PIL import Image, features

from ksame.errors import InputError, KsameError
from ksame.scene.media import EncoderConfig, Output, WorkFolder, open_media

VIDEOS = {
    "h264.mp4": ("libx264", {"preset": "veryfast", "g": "12"}),
    "h264.mkv": ("libx264", {"preset": "veryfast", "g": "12", "bf": "3"}),
    "baseline.mov": ("libx264", {"profile": "baseline"}),
    "hevc.mp4": ("libx265", {"preset": "veryfast", "x265-params": "log-level=none:bframes=0"}),
    "mpeg4.avi": ("mpeg4", {"qmin": "4", "qmax": "4"}),
    "vp9.webm": ("libvpx-vp9", {"deadline": "realtime", "cpu-used": "8"}),
    "wmv2.wmv": ("wmv2", {"qmin": "4", "qmax": "4"}),
    "mjpeg.avi": ("mjpeg", {"qmin": "3", "qmax": "4"}),
    "clip.ts": ("libx264", {"preset": "veryfast"}),
}
_PATIENCE = 60
"""Seconds after which a file counts as one that hangs."""


def frames(n: int, size: tuple[int, int]) -> Iterator[np.ndarray]:
    """Yield a texture that moves."""
    width, height = size
    texture = np.random.default_rng(3).integers(0, 256, (height // 4 + n, width // 4 + n, 3), dtype=np.uint8)
    large = np.kron(texture, np.ones((8, 8, 1), dtype=np.uint8))
    for i in range(n):
        yield np.ascontiguousarray(large[2 * i : 2 * i + height, 3 * i : 3 * i + width])


def write_video(path: Path, codec: str, options: dict[str, str], n: int = 24, size: tuple[int, int] = (96, 80)) -> Path:
    """Write a clip."""
    pixels = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = *size, pixels
        for i, picture in enumerate(frames(n, size)):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format=pixels)
            frame.pts, frame.time_base = i, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def write_samples(folder: Path) -> list[Path]:
    """Write whole files of every kind."""
    found = [write_video(folder / name, *how) for name, how in VIDEOS.items()]
    pictures = [Image.fromarray(picture) for picture in frames(6, (96, 80))]
    exif = Image.Exif()
    exif[0x0112], exif[0x8298] = 6, "somebody"
    stills = ["a.jpg", "a.png", "a.webp", "a.tif", "a.bmp", *(["a.avif"] if features.check("avif") else [])]
    for name in stills:
        pictures[0].save(folder / name, **({} if name == "a.bmp" else {"exif": exif}))
        found.append(folder / name)
    pictures[0].save(folder / "progressive.jpg", progressive=True)
    pictures[0].convert("CMYK").save(folder / "cmyk.jpg")
    pictures[0].quantize(16).save(folder / "palette.png", transparency=3)
    pictures[0].save(folder / "lzw.tif", compression="tiff_lzw")
    Image.fromarray(np.asarray(pictures[0].convert("L")).astype(np.uint16) * 257).save(folder / "deep.png")
    found += [folder / name for name in ("progressive.jpg", "cmyk.jpg", "palette.png", "lzw.tif", "deep.png")]
    for name in ("moving.webp", "moving.png", "moving.gif"):
        pictures[0].save(folder / name, save_all=True, append_images=pictures[1:], duration=80)
        found.append(folder / name)
    return found


def spoilt(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a file with some damage: bits, bytes, numbers, lost, repeated, exchanged or foreign parts."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, min(len(changed), 400) if rng.random() < 0.5 else len(changed)))
        length = int(rng.integers(1, 64))
        kind = int(rng.integers(7))
        if kind == 0:
            changed[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            changed[at : at + length] = rng.bytes(len(changed[at : at + length]))
        elif kind == 2:
            changed[at : at + 4] = [b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\0\0\0\1"][
                int(rng.integers(4))
            ][: len(changed[at : at + 4])]
        elif kind == 3:
            del changed[at : at + length]
        elif kind == 4:
            changed[at:at] = changed[at : at + length]
        elif kind == 5:
            del changed[max(16, at) :]
        else:
            changed[at : at + length] = bytes(len(changed[at : at + length]))
        if not changed:
            changed = bytearray(b"\0")
    return bytes(changed)


def attempt(path: Path, folder: Path, *, damaged: str) -> str:
    """Copy a file frame by frame; return what came of it, and raise what must not happen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            media = open_media(path, damaged)  # type: ignore[arg-type]
            if media.size[0] * media.size[1] > 1 << 24:
                return "large"
            destination = folder / ("out.png" if media.kind == "photograph" else "out.mp4")
            destination.unlink(missing_ok=True)
            try:
                with Output(
                    media, destination, EncoderConfig(speed="ultrafast"), WorkFolder(folder / "work")
                ) as output:
                    for frame in media.frames():
                        if frame.index > 500:
                            return "long"
                        untouched = np.zeros(frame.pixels.shape[:2], dtype=bool)
                        output.write(frame.pixels, frame.native, untouched)
                    output.finish()
            except KsameError:
                if destination.exists():
                    raise AssertionError(f"{destination} stands there after an error") from None
                raise
            return "written"
        except KsameError as error:
            return type(error).__name__


def case(samples: list[Path], seed: int) -> tuple[str, bytes]:
    """Return the name and the bytes of a damaged file."""
    rng = np.random.default_rng(seed)
    sample = samples[int(rng.integers(len(samples)))]
    return sample.name, spoilt(sample.read_bytes(), rng)


def run_case(samples: list[Path], seed: int, folder: Path) -> tuple[str, str]:
    """Make a damaged file and try it; return its name and what came of it."""
    name, data = case(samples, seed)
    path = folder / f"{seed}-{name}"
    path.write_bytes(data)
    outcome = attempt(path, folder, damaged="mask" if seed % 4 == 0 else "refuse")
    path.unlink()
    return name, outcome


def _worker(samples: list[Path], first: int, results: multiprocessing.Queue) -> None:
    with tempfile.TemporaryDirectory(prefix="ksame-fuzz-") as folder:
        for seed in range(first, 1 << 62):
            results.put((seed, None, None))
            try:
                results.put((seed, *run_case(samples, seed, Path(folder))))
            except BaseException:  # every kind is a finding
                results.put((seed, "trouble", traceback.format_exc()))


def fuzz(minutes: float, first: int) -> int:
    """Try damaged files for some minutes; return how many broke the rule."""
    until, counts, troubles = time.monotonic() + 60 * minutes, Counter(), 0
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="ksame-samples-") as folder:
        samples = write_samples(Path(folder))
        seed, worker = first, None
        while time.monotonic() < until:
            if worker is None:
                results = context.Queue()
                worker = context.Process(target=_worker, args=(samples, seed, results), daemon=True)
                worker.start()
            try:
                seed, name, outcome = results.get(timeout=_PATIENCE)
            except queue.Empty:
                name, outcome = "trouble", "hangs" if worker.is_alive() else f"dies ({worker.exitcode})"
                worker.kill()
                worker = None
            if name == "trouble":
                troubles += 1
                print(f"seed {seed} ({case(samples, seed)[0]}): {outcome}", flush=True)
                seed += worker is None
            elif name is not None:
                counts[outcome] += 1
        if worker is not None:
            worker.kill()
    print(f"{sum(counts.values())} files: {dict(counts)}; {troubles} in trouble")
    return troubles


def flips(n: int) -> None:
    """Print for each kind of file how many of ``n`` visibly damaged ones were noticed."""
    with tempfile.TemporaryDirectory(prefix="ksame-flips-") as name:
        folder = Path(name)
        for file, how in VIDEOS.items():
            path = write_video(folder / file, *how, n=48, size=(320, 240))
            with av.open(str(path)) as container:
                packets = [(p.pos, p.size) for p in container.demux(video=0) if p.size and p.pos is not None]
            _measure(path, packets[len(packets) // 4 : 3 * len(packets) // 4], n)
        for file in ("a.jpg", "progressive.jpg", "a.png", "a.webp", "lzw.tif", "a.avif"):
            path = folder / file
            options = {"progressive": True} if "progressive" in file else {}
            options |= {"compression": "tiff_lzw"} if "lzw" in file else {}
            Image.fromarray(next(frames(1, (320, 240)))).save(path, **options)
            size = path.stat().st_size
            _measure(path, [(size // 4, size // 2)], n)


def _measure(path: Path, places: list[tuple[int, int]], n: int) -> None:
    """Flip three bits in one of some places until ``n`` files look different."""
    whole = _thumbnails(path)
    rng, seen, noticed = np.random.default_rng(1), 0, 0
    hurt = path.with_name(f"hurt-{path.name}")
    for _ in range(4 * n):
        if seen == n:
            break
        data = bytearray(path.read_bytes())
        start, size = places[int(rng.integers(len(places)))]
        for _ in range(3):
            data[start + int(rng.integers(min(5, size - 1), size))] ^= 1 << int(rng.integers(8))
        hurt.write_bytes(data)
        try:
            now = _thumbnails(hurt)
        except InputError:
            seen, noticed = seen + 1, noticed + 1
            continue
        gap = max((int(np.abs(a - b).max()) for a, b in zip(whole, now, strict=False)), default=0)
        seen += gap > 24 or len(now) != len(whole)
    print(f"{path.name}: {noticed} of {seen} noticed", flush=True)


def _thumbnails(path: Path) -> list[np.ndarray]:
    return [frame.pixels[::4, ::4].astype(int) for frame in open_media(path).frames()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--first", type=int, default=0, help="seed to begin with")
    parser.add_argument("--flips", type=int, help="measure how many of so many damaged files are noticed")
    words = parser.parse_args()
    av.logging.set_level(None)
    if words.flips:
        flips(words.flips)
    elif fuzz(words.minutes, words.first):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
