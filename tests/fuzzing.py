"""Readers fed with broken files: a clear error and its exit code, never a traceback, nothing left half-written.

Valid files are changed where it hurts: values, names and structure of JSON, cells and lines of tables, single bytes.
Run one reader for as long as you like:

    PYTHONPATH=src:tests python tests/fuzzing.py certificate --seconds 600 --seed 1
"""

import argparse
import base64
import json
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from typer.testing import CliRunner

from drawn import drawn_faces
from ksame.app.cli import app, load
from ksame.app.config_file import read_config
from ksame.app.deidentify import DeidentifyCommand
from ksame.app.manifest import with_manifest
from ksame.errors import ExitCode, InputError
from ksame.faces.faceset import quantise
from ksame.faces.folder import list_entries
from ksame.faces.landmarks import EYES_AND_NOSE
from ksame.faces.reading import encode_png
from ksame.models import Source
from ksame.privacy.certificate import Certificate
from ksame.scene.at_risk import from_csv
from ksame.scene.boxes import read_boxes
from ksame.scene.certificate import SceneCertificate
from ksame.scene.linkage import read_linkage
from ksame.scene.track import read_tracks, write_tracks
from ksame.scene.track.tracks import N_POINTS, Person, Track, Tracks
from ksame.vault import (
    Recipients,
    Sealed,
    Vault,
    load_identity,
    new_identity,
    read_share,
    split,
    write_identity,
    write_vault,
)
from ksame.vault.container import wrap
from ksame.vault.log import log_of
from scene_release import write_scene_release

SLOWEST = 30.0
"""Seconds after which a single file counts as a hang."""

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 100, 2**31, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400),
    *(0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, 3.0000000001, float("nan"), float("inf"), -float("inf")),
    *("", " ", "0", "three", "NaN", "P1", "P99", "a/b", "..", "/", "\0", "\x1b[2J", "é" * 300, "x" * 70_000, "[red]"),
    *("faces/000001.png", "000001.png", "someone-else", "k-same-pixel", "blur", "k-anonymity", "\u202e", "=1+1"),
    *([], {}, [[]], [None], [1, 2], {"": None}, {"a": {"b": 1}}, [[1, "seen", 0, 0, 1, 1]]),
)


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Return a file that is broken in one to four places."""
    text = data.lstrip()[:1] == b"{"
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        change = rng.choices((_in_json if text else _in_table, _in_bytes), (5, 1))[0]
        try:
            data = change(data, rng)
        except (ValueError, IndexError, RecursionError):  # broken already
            data = _in_bytes(data, rng)
    return data


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in inside for place in _places(inner, (*path, key)))]


def _in_json(data: bytes, rng: random.Random) -> bytes:
    content = json.loads(data)
    places = _places(content)[1:]
    if not places:
        return _in_bytes(data, rng)
    by_length: dict[int, list[tuple[Any, ...]]] = {}
    for place in places:  # as often near the top as far down, where most values are
        by_length.setdefault(len(place), []).append(place)
    *way, last = rng.choice(by_length[rng.choice(list(by_length))])
    parent = content
    for part in way:
        parent = parent[part]
    kind = rng.randrange(9)
    if kind == 0:
        del parent[last]
    elif kind == 1 and isinstance(parent, dict):
        parent[rng.choice(("extra", "k", "name", "coding", "schema", ""))] = rng.choice(ODD)
    elif kind == 1:
        parent.append(rng.choice(ODD))
    elif kind == 2:
        other: Any = content
        for part in rng.choice(places):
            other = other[part]
        parent[last] = json.loads(json.dumps(other))
    elif kind == 3 and isinstance(parent[last], (int, float)) and not isinstance(parent[last], bool):
        step = rng.choice((-1, 1, 0.5, 1e-9, 10**6))
        parent[last] += int(step) if isinstance(parent[last], int) and abs(parent[last]) > 1 << 60 else step
    elif kind == 4 and isinstance(parent[last], list):
        rng.shuffle(parent[last])
    elif kind == 5 and isinstance(parent[last], (list, dict)):
        parent[last] = type(parent[last])()
    elif kind == 6 and isinstance(parent[last], str) and len(parent[last]) > 200:
        parent[last] = _packed_anew(parent[last], rng)
    elif kind == 7:
        return _with_a_name_twice(content, rng)
    else:
        parent[last] = rng.choice(ODD)
    return json.dumps(content).encode()


def _packed_anew(text: str, rng: random.Random) -> str:
    """Change bytes inside packed meshes or sealed pictures, or the stream they are packed in."""
    try:
        stored = base64.b64decode(text, validate=True)
    except ValueError:  # a sentence
        return text[: rng.randrange(len(text))]
    packed = stored[:1] == b"\x78"  # as zlib begins; pictures are stored as they are
    raw = bytearray(zlib.decompress(stored) if packed else stored)
    if rng.random() < 0.3:
        raw = bytearray(rng.choice((0, 4, len(raw) // 2, 2 * len(raw), 1 << 24)))
    for _ in range(rng.randrange(1, 20)):
        if raw:
            raw[rng.randrange(len(raw))] = rng.choice((0, 127, 128, 255))
    return base64.b64encode(zlib.compress(bytes(raw)) if packed else bytes(raw)).decode()


def _with_a_name_twice(content: dict[str, Any], rng: random.Random) -> bytes:
    name = rng.choice(list(content))
    return json.dumps(content)[:-1].encode() + f", {json.dumps(name)}: {json.dumps(rng.choice(ODD))}}}".encode()


def _in_table(data: bytes, rng: random.Random) -> bytes:
    rows = [line.split(",") for line in data.decode("utf-8", "surrogateescape").split("\n")]
    row = rng.choice(rows)
    at = rng.randrange(len(row))
    kind = rng.randrange(8)
    if kind == 0:
        rows.remove(row)
    elif kind == 1:
        rows.insert(rng.randrange(len(rows) + 1), list(row))
    elif kind == 2:
        del row[at]
    elif kind == 3:
        row.insert(at, str(rng.choice(ODD))[:200])
    elif kind == 4:
        row[at] = rng.choice(rng.choice(rows))
    elif kind == 5:
        row[at] = f'"{row[at]}' if rng.random() < 0.5 else f'{row[at]}"\n"'
    else:
        row[at] = str(rng.choice(ODD))
    return "\n".join(",".join(cells) for cells in rows).encode("utf-8", "surrogateescape")


def _in_bytes(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    kind = rng.randrange(7)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    if kind == 2:
        return data[:at] + rng.choice((b"[", b"{", b'{"a":', b'"', b",")) * rng.choice((1, 500, 100_000)) + data[at:]
    if kind == 3:
        return data[at:]
    if kind == 4:
        return data + data
    if kind == 5:
        return rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\0", b"\r", b"NaN")) + data
    return data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-32", "latin-1")), "replace")


@dataclass(frozen=True)
class Reader:
    """A file that somebody may give, and what is done with it.

    Attributes
    ----------
    targets : tuple of Path
        Files to be broken, one at a time.
    words : callable
        From the broken file to the words of a command.
    made : Path, optional
        What the command writes when all is well, and only then.
    """

    targets: tuple[Path, ...]
    words: Callable[[Path], list[list[object]]]
    made: Path | None = None
    quick: Callable[[Path], object] | None = None
    """Reads the file and nothing else; where it refuses, few commands are run, which take long."""


def _people(folder: Path) -> Path:
    folder.mkdir()
    faces = drawn_faces(6, width=24, height=32)
    points = [f"{point}_{axis}" for point in EYES_AND_NOSE for axis in "xy"]
    lines = [",".join(["file", "subject", "mood", *points])]
    for i, image in enumerate(quantise(faces.images)):
        (folder / f"{i}.png").write_bytes(encode_png(image))
        marks = [f"{value:.3f}" for value in faces.landmarks[i].ravel()]
        lines.append(",".join([f"{i}.png", faces.subjects[i], ("glad", "calm")[i % 2], *marks]))
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder


def _released(base: Path) -> tuple[Path, Path, Path]:
    """Write a release of faces; return its folder, its link table and the originals."""
    people = _people(base / "people")
    words = ["release", people, "-o", base / "release", "-k", 2, "--seed", 5, "--link-table", base / "link-faces.json"]
    assert CliRunner().invoke(app, [str(w) for w in words]).exit_code == 0
    return base / "release", base / "link-faces.json", people


def certificate(base: Path) -> Reader:
    """Certificates of both kinds."""
    faces, table, people = _released(base)
    scenes = write_scene_release(base)

    def words(path: Path) -> list[list[object]]:
        if path.suffix == ".csv" or path.parent == scenes:
            return [["verify", scenes, "--linkage", base / "link.json"], ["verify", scenes, "--json"]]
        return [["verify", faces, "--json"], ["verify", faces, "--linkage", table, "--originals", people]]

    def quick(path: Path) -> object:
        if path.suffix == ".csv":
            return from_csv(path.read_bytes())
        return (SceneCertificate if path.parent == scenes else Certificate).from_json(path.read_bytes())

    targets = (faces / "certificate.json", scenes / "certificate.json", scenes.with_name(f"{scenes.name}.at-risk.csv"))
    return Reader(targets, words, quick=quick)


def linkage(base: Path) -> Reader:
    """Link tables of both kinds."""
    faces, table, people = _released(base)
    scenes = write_scene_release(base)

    def words(path: Path) -> list[list[object]]:
        if path == table:
            linked: list[object] = ["verify", faces, "--linkage", path]
            return [linked, [*linked, "--json"], [*linked, "--originals", people]]
        return [["verify", scenes, "--linkage", path]]

    return Reader((table, base / "link.json"), words, quick=read_linkage)


def tracks(base: Path) -> Reader:
    """Who is where, as people edit it."""
    rng = np.random.default_rng(3)
    picture = base / "photo.png"
    Image.fromarray(rng.integers(0, 256, (96, 96, 3), dtype=np.uint8)).save(picture)
    points = rng.uniform(20, 70, (1, N_POINTS, 3)).astype(np.float32)
    shapes, poses = np.zeros((1, 52), np.float32), np.zeros((1, 3), np.float32)
    box, seen = np.array([[20, 20, 50, 50]], np.float32), np.array([Source.DETECTED], np.uint8)
    person = Person("P1", np.ones(128) / np.sqrt(128), ((1, 0),))
    cast = Tracks((96, 96), 1, (person,), (Track(1, "P1", 0, box, points, shapes, poses, seen),))
    write_tracks(cast, base / "tracks.json")
    out = base / "safe.png"

    def words(path: Path) -> list[list[object]]:
        return [["deidentify", picture, "-o", out, "-m", "fill", "--tracks", path, "--force"]]

    return Reader((base / "tracks.json",), words, out, lambda path: read_tracks(path, 1))


def labels(base: Path) -> Reader:
    """Tables of who is who."""
    people = _people(base / "people")
    (base / "labels.csv").write_bytes((people / "labels.csv").read_bytes())
    out = base / "out"

    def words(path: Path) -> list[list[object]]:
        plain: list[object] = ["release", people, "-o", out, "-k", 2, "--labels", path, "--force"]
        return [plain, [*plain, "--select", "mood"], [*plain, "--size", "24x32"]]

    return Reader((base / "labels.csv",), words, out, lambda path: list_entries(people, path))


def manifest(base: Path) -> Reader:
    """Jobs in files. They are only read: a broken one may name any place as its output."""
    options = {"method": "fill", "k": 3, "keep": ["P1"], "level": 0.5, "review": "/tmp/a.png", "keep_names": True}  # noqa: S108
    job = {"schema": "ksame/job", "version": 1, "media": ["a.png", "b"], "output": "out", "options": options}
    (base / "job.json").write_text(json.dumps(job))

    def quick(path: Path) -> object:
        return with_manifest(DeidentifyCommand(manifest=path))

    return Reader((base / "job.json",), lambda _: [], quick=quick)


def vault(base: Path) -> Reader:
    """Vaults, their logs, keys and shares; and indexes of vaults whose hashes were written anew."""
    me, person = new_identity(), new_identity()
    film = Sealed.of("film", Recipients((person.recipient,)).seal(b"film" * 99))
    case, key, share, index = (base / name for name in ("case.age", "key.txt", "share.txt", "index.json"))
    write_vault(case, [wrap(person, "P1", Recipients((me.recipient,))), film], {"safe.mp4": "ab" * 32}, 1)
    Vault.read(case).noted(action="open", people=("P1",), key=me.recipient)
    write_identity(key, me)
    split(me, 2, 3)[0].write(share)
    magic, line, _, body = case.read_bytes().split(b"\n", 3)
    index.write_bytes(line)
    forged = base / "forged.age"

    def quick(path: Path) -> object:
        if path == index:
            head = magic + b"\n" + path.read_bytes() + b"\n"
            forged.write_bytes(head + sha256(head).hexdigest().encode() + b"\n" + body)
            return Vault.read(forged)
        return load_identity(path) if path == key else read_share(path) if path == share else Vault.read(case)

    def words(path: Path) -> list[list[object]]:
        if path == share:
            return [["vault", "join", path, path, "-o", base / "again.txt"]]
        which = forged if path == index else case
        return [["vault", "list", which], ["vault", "verify", which, "--identity", key, "--json"]]

    return Reader((case, log_of(case), key, share, index), words, quick=quick)


def boxes(base: Path) -> Reader:
    """What another detector found: a table, a list, COCO."""
    picture = base / "photo.png"
    Image.fromarray(np.random.default_rng(3).integers(0, 256, (96, 96, 3), dtype=np.uint8)).save(picture)
    rows = [(0, "20", "20", "30", "30"), (0, "50.5", "10", "9", "9")]
    lines = ["frame,x,y,width,height,interpolate,score", *(",".join(map(str, (*row, "", 0.9))) for row in rows)]
    (base / "boxes.csv").write_text("\n".join(lines) + "\n")
    listed = [{"frame": 0, "bbox": [20, 20, 30, 30]}, {"frame": 0, "x1": 1, "y1": 2, "x2": 30, "y2": 40}]
    (base / "list.json").write_text(json.dumps(listed))
    coco = {
        "images": [{"id": 7, "file_name": "photo.png", "width": 96}],
        "annotations": [{"id": 1, "image_id": 7, "bbox": [20, 20, 30, 30], "category_id": 1}],
    }
    (base / "coco.json").write_text(json.dumps(coco))
    out = base / "safe.png"

    def words(path: Path) -> list[list[object]]:
        return [["deidentify", picture, "-o", out, "-m", "fill", "--boxes", path, "--force"]]

    return Reader((base / "boxes.csv", base / "list.json", base / "coco.json"), words, out, read_boxes)


def options(base: Path) -> Reader:
    """Options of a command in TOML. They are only read: a broken file may name any place as its output."""
    (base / "job.toml").write_text(
        'media = ["a.png", "b"]\noutput = "out"\nmethod = "fill"\nk = 3\nkeep-names = true\n'
    )

    def quick(path: Path) -> object:
        return read_config(path, "deidentify", load("deidentify").params)

    return Reader((base / "job.toml",), lambda _: [], quick=quick)


READERS: dict[str, Callable[[Path], Reader]] = {
    "certificate": certificate,
    "linkage": linkage,
    "tracks": tracks,
    "labels": labels,
    "manifest": manifest,
    "vault": vault,
    "boxes": boxes,
    "options": options,
}


def fuzz(name: str, base: Path, *, seed: int, cases: int | None = None, seconds: float | None = None) -> Counter[int]:
    """Feed a reader; return how often it ended with which exit code.

    Raises
    ------
    AssertionError
        With the seed of the case and the first broken promise.
    """
    os.environ["KSAME_STATE"] = str(base / "state")
    reader = READERS[name](base)
    whole = {path: path.read_bytes() for path in reader.targets}
    ended: Counter[int] = Counter()
    began, case = time.monotonic(), 0
    while (cases is None or case < cases) and (seconds is None or time.monotonic() - began < seconds):
        rng = random.Random(f"{seed}/{case}")  # noqa: S311 -- repeatable
        target = rng.choice(reader.targets)
        target.write_bytes(mutate(whole[target], rng))
        try:
            commands = reader.words(target) if _worth(reader, target, rng) else []
            for words in commands:
                ended[_tried(words, base, reader.made)] += 1
            ended[int(ExitCode.UNREADABLE)] += not commands
        except AssertionError as error:
            kept = Path(tempfile.gettempdir()) / f"ksame-fuzz-{name}-{seed}-{case}{target.suffix}"
            kept.write_bytes(target.read_bytes())
            raise AssertionError(f"{name}, seed {seed}, case {case}, kept in {kept}: {error}") from error
        finally:
            target.write_bytes(whole[target])
        case += 1
    return ended


def _worth(reader: Reader, target: Path, rng: random.Random) -> bool:
    """Return whether a command is tried: always where the file can be read, else now and then."""
    try:
        if reader.quick is not None:
            reader.quick(target)
    except InputError:
        return rng.random() < 0.05
    except Exception as error:
        raise AssertionError("".join(traceback.format_exception(error))) from error
    return True


def _tried(words: list[object], base: Path, made: Path | None) -> int:
    before = _listing(base, made)
    began = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CliRunner().invoke(app, [str(word) for word in words])
    took = time.monotonic() - began
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        lines = "".join(traceback.format_exception(*result.exc_info)) if result.exc_info else ""
        raise AssertionError(f"{words[0]}: a traceback\n{lines}")
    assert took < SLOWEST, f"{words[0]}: {took:.0f} seconds"
    code = result.exit_code
    assert code in {*ExitCode} - {ExitCode.FAILED, ExitCode.INTERRUPTED}, f"exit code {code}\n{result.output[-2000:]}"
    assert code in (0, ExitCode.WITHHELD, ExitCode.NOT_MET) or "error:" in result.output, result.output[-2000:]
    left = _listing(base, made) - before
    assert not left, f"{words[0]} left {sorted(left)[:5]}"
    if made is not None:
        good = code in (0, ExitCode.WITHHELD)
        assert made.exists() == good, f"exit code {code}, but {made.name} {'is' if made.exists() else 'is not'} there"
        _remove(made)
    return int(code)


def _listing(base: Path, made: Path | None) -> set[str]:
    """Return everything below, but for what the command is to make, the ledger and certificates beside an output."""
    ours = () if made is None else (made.stem,)
    found = (p.relative_to(base).parts[0] for p in base.rglob("*"))
    return {name for name in found if name != "state" and name.split(".")[0] not in ours}


def _remove(made: Path) -> None:
    import shutil

    for path in made.parent.glob(f"{made.stem}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def main() -> None:
    """Run one reader and tell what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reader", choices=[*READERS])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            ended = fuzz(given.reader, Path(folder), seed=given.seed, seconds=given.seconds)
        except AssertionError as error:
            sys.exit(f"{error}")
    told = ", ".join(f"{count} times {code}" for code, count in sorted(ended.items()))
    print(f"{given.reader}: {sum(ended.values())} readings; exit codes: {told}")


if __name__ == "__main__":
    main()
