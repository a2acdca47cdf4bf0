"""How long an audit of 600 portraits takes, and how much memory: naive, reverse, parrot by Eigenfaces and SFace.

The pictures are blurred and pixelated by Pillow, as another tool would. Run: ``python -m benchmarks audit_portraits``.
"""

import os
import resource
import tempfile
import time
from pathlib import Path

from PIL import Image, ImageFilter

from ksame.audit import audit, write_report
from ksame.pictures import read_rgb

SHARED = Path(os.environ.get("KSAME_SHARED", Path(__file__).parents[2] / "shared"))


def blur(picture: Image.Image) -> Image.Image:
    return picture.filter(ImageFilter.GaussianBlur(8))


def mosaic(picture: Image.Image) -> Image.Image:
    small = picture.resize((picture.width // 16, picture.height // 16), Image.Resampling.BOX)
    return small.resize(picture.size, Image.Resampling.NEAREST)


def main() -> None:
    portraits = SHARED / "faces" / "portraits"
    with tempfile.TemporaryDirectory() as folder:
        for change in (blur, mosaic):
            released = Path(folder) / change.__name__
            released.mkdir()
            for path in sorted(portraits.glob("*.jpg")):
                change(Image.fromarray(read_rgb(path))).save(released / path.name, quality=90)
            began, worked = time.perf_counter(), time.process_time()
            result = audit(
                portraits,
                released,
                scenarios=["naive", "reverse", "parrot"],
                labels=SHARED / "faces" / "labels.csv",
            )
            write_report(result, Path(folder) / f"report-{change.__name__}" / "report.html")
            took, cpu = time.perf_counter() - began, time.process_time() - worked
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{change.__name__}: {took:.0f} s, {cpu:.0f} s of processor time, at most {most:.0f} MB")
            print(f"  {result.counts.pairs} pairs, {result.counts.without_face} without a face for the attacker")
            for attack in result.attacks:
                low, high = attack.interval
                print(f"  {attack.scenario:8} {attack.recogniser:11} {attack.rank1:6.1%}  [{low:.1%}, {high:.1%}]")
            print(f"  {result.verdict.line}")


if __name__ == "__main__":
    main()
