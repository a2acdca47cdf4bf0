"""``ksame deidentify``: what becomes of odd files, odd names and odd places."""

import csv
import json
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from PIL import Image

from app.test_deidentify_command import FRAMES, film, left_in, nobody, photo, pixels  # noqa: F401 -- fixtures


@pytest.fixture
def damaged(film, tmp_path):  # noqa: F811
    """The film with bytes flipped in its middle."""
    with av.open(str(film)) as container:
        pos, size = [(p.pos, p.size) for p in container.demux(video=0) if p.size][FRAMES // 2]
    data = bytearray(film.read_bytes())
    for at in range(10, size, 7):
        data[pos + at] ^= 0x5A
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "damaged.mp4"
    path.write_bytes(data)
    return path


def test_a_damaged_recording_is_refused(damaged, run, tmp_path):
    result = run("deidentify", damaged, "-o", tmp_path / "safe.mp4", "-m", "fill", code=5)
    assert "--damaged mask" in result.output.replace("\n", " ")
    assert left_in(tmp_path) == {"in", "in/damaged.mp4"}
    run("people", damaged, code=5)


def test_damaged_frames_can_be_made_black_and_are_named(damaged, run, tmp_path):
    words = ("deidentify", damaged, "-o", tmp_path / "safe.mkv", "-m", "fill", "--codec", "ffv1", "--damaged", "mask")
    result = run(*words, code=3)
    assert "damaged here" in result.output.replace("\n", " ")
    black = [i for i, frame in enumerate(pixels(tmp_path / "safe.mkv")) if frame.max() == 0]
    assert 0 < len(black) < FRAMES
    assert len(pixels(tmp_path / "safe.mkv")) == FRAMES
    certificate = json.loads((tmp_path / "safe.certificate.json").read_text())
    assert certificate["counts"]["frames_damaged"] == len(black) > 0
    rows = list(csv.DictReader((tmp_path / "safe.at-risk.csv").read_text().splitlines()))
    listed = [
        i for row in rows if row["person"] == "-" for i in range(int(row["first_frame"]), int(row["last_frame"]) + 1)
    ]
    assert listed == black
    run("deidentify", damaged, "-o", tmp_path / "two.mkv", "--damaged", "perhaps", code=2)


def test_a_name_without_suffix_is_a_folder(film, run, tmp_path):  # noqa: F811
    run("deidentify", film, "-o", tmp_path / "out", "-m", "fill", code=0)
    assert left_in(tmp_path / "out") == {"000001.mp4", "certificate.json"}
    with av.open(str(tmp_path / "out" / "000001.mp4")) as container:
        assert container.streams.audio
    run("deidentify", film, "-o", tmp_path / "frames", "-m", "fill", "--codec", "png", code=0)
    assert len(list((tmp_path / "frames").glob("*.png"))) == FRAMES


def test_the_name_of_a_file_is_no_folder_for_several(photo, nobody, run, tmp_path):  # noqa: F811
    result = run("deidentify", photo, nobody, "-o", tmp_path / "two.jpg", "-m", "fill", code=2)
    assert "two.jpg is the name of one file" in result.output.replace("\n", " ")
    assert left_in(tmp_path) == set()
    (tmp_path / "in").mkdir()
    shutil.copy(nobody, tmp_path / "in" / "only.png")
    run("deidentify", tmp_path / "in", "-o", tmp_path / "one.png", "-m", "fill", code=3)
    assert (tmp_path / "one.png").is_file()


def test_a_photograph_and_a_recording_of_one_name_have_their_own_certificates(film, nobody, run, tmp_path):  # noqa: F811
    run("deidentify", nobody, "-o", tmp_path / "a.png", "-m", "fill", code=3)
    run("deidentify", film, "-o", tmp_path / "a.mp4", "-m", "fill", code=0)
    assert left_in(tmp_path) == {"a.png", "a.certificate.json", "a.at-risk.csv", "a.mp4", "a.mp4.certificate.json"}
    for name in ("a.png", "a.mp4"):
        assert "as certified" in run("verify", tmp_path / name, code=0).output
    run("deidentify", film, "-o", tmp_path / "a.mp4", "-m", "fill", "--force", code=0)
    run("deidentify", nobody, "-o", tmp_path / "a.png", "-m", "fill", "--force", code=3)
    assert left_in(tmp_path) == {"a.png", "a.certificate.json", "a.at-risk.csv", "a.mp4", "a.mp4.certificate.json"}


def test_names_that_are_too_long(nobody, run, tmp_path):  # noqa: F811
    result = run("deidentify", nobody, "-o", tmp_path / f"{'n' * 240}.png", code=2)
    assert "too long" in result.output
    (tmp_path / "in").mkdir()
    for letter in "ab":
        shutil.copy(nobody, tmp_path / "in" / f"{'n' * 240}{letter}.png")
    run("deidentify", tmp_path / "in", "-o", tmp_path / "out", "-m", "fill", "--keep-names", code=3)
    assert len(list((tmp_path / "out").glob("nnn*.png"))) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--keep-metadata", "everything"), "no entry 'everything'"),
        (("--keep-metadata", "Copyrihgt"), "Entries that can be kept: Artist, Copyright"),
        (("--keep-metadata", "Orientation"), "no entry 'Orientation'"),
        (("--region", "5000,10,20,20"), "outside"),
        (("--region=-50,10,20,20",), "outside"),
    ],
)
def test_what_would_have_no_effect_is_refused(words, told, photo, run, tmp_path):  # noqa: F811
    result = run("deidentify", photo, "-o", tmp_path / "safe.jpg", "-m", "fill", *words, code=2)
    assert told in result.output.replace("\n", " ")
    assert left_in(tmp_path) == set()


def test_a_region_may_reach_over_the_edge(nobody, run, tmp_path):  # noqa: F811
    run("deidentify", nobody, "-o", tmp_path / "safe.png", "-m", "fill", "--region=-10,-10,40,40", code=3)


def test_boxes_of_another_detector_are_filled(nobody, run, tmp_path):  # noqa: F811
    (tmp_path / "boxes.csv").write_text("file,x,y,width,height\nnobody.png,10,10,40,30\n")
    words = ("deidentify", nobody, "-o", tmp_path / "safe.png", "-m", "fill", "--boxes", tmp_path / "boxes.csv")
    run(*words, code=3)
    with Image.open(nobody) as before, Image.open(tmp_path / "safe.png") as after:
        changed = (np.asarray(before) != np.asarray(after)).any(axis=2)
    assert changed[12:38, 12:48].mean() > 0.5
    changed[5:45, 5:55] = False
    assert not changed.any()
    assert json.loads((tmp_path / "safe.certificate.json").read_text())["method"]["regions"] == 1
    run("verify", tmp_path / "safe.png")
    (tmp_path / "boxes.csv").write_text("file,x,y,width,height\nnobody.png,10,10,40,wide\n")
    assert "line 2: height must be a number" in run(*words, "--force", code=5).output.replace("\n", " ")


def test_a_voice_is_disguised_by_the_seed_and_the_certificate_says_what_that_is_worth(film, run, tmp_path):  # noqa: F811
    def sound(path):
        with av.open(str(path)) as container:
            return [bytes(packet) for packet in container.demux(audio=0) if packet.size]

    for name, seed in (("one", 7), ("same", 7), ("other", 8)):
        words = ("deidentify", film, "-o", tmp_path / f"{name}.mp4", "-m", "fill", "--audio", "disguise")
        run(*words, "--seed", seed, code=0)
    one, same, other = (sound(tmp_path / f"{name}.mp4") for name in ("one", "same", "other"))
    assert one == same
    assert len({b"".join(each) for each in (one, other, sound(film))}) == 3
    limits = json.loads((tmp_path / "one.certificate.json").read_text())["not_promised"]
    assert any("disguised, not anonymous" in limit for limit in limits)
    run("verify", tmp_path / "one.mp4", code=0)


FULL_DISK = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
from ksame.app.cli import main
main()
"""


@pytest.mark.parametrize("room", [0, 300, 30000])
def test_a_full_disk_is_told_plainly(room, film, tmp_path):  # noqa: F811
    words = ["deidentify", film, "-o", tmp_path / "safe.mp4", "-m", "fill"]
    command = [sys.executable, "-c", FULL_DISK, str(room), *map(str, words)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 1, result.stderr
    assert "Traceback" not in result.stderr
    assert "work folder" not in result.stderr.replace("\n", " ")
    assert not (tmp_path / "safe.mp4").exists()


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    """Sixteen pictures without faces."""
    folder = tmp_path_factory.mktemp("batch")
    rng = np.random.default_rng(5)
    for i in range(16):
        Image.fromarray(rng.integers(60, 90, (24, 32, 3), dtype=np.uint8)).save(folder / f"{i}.png")
    return folder


def numbers_of(told):
    """Return the number of each output, in the order of the originals' hashes."""

    def content(one):
        return sha256(Path(one["source"]).read_bytes()).hexdigest()

    return [int(Path(one["output"]).stem) for one in sorted(told["files"], key=content)]


def test_numbers_of_outputs_are_random_even_with_a_seed(batch, run, tmp_path):
    found = []
    for name in ("one", "two"):
        words = ("deidentify", batch, "-o", tmp_path / name, "-m", "fill", "--seed", 7, "--json")
        found.append(numbers_of(json.loads(run(*words, code=3).stdout)))
        assert sorted(found[-1]) == list(range(1, 17))
        certificate = json.loads((tmp_path / name / "certificate.json").read_text())
        assert list(certificate["files"]) == sorted(certificate["files"])
    assert found[0] != sorted(found[0])
    assert found[0] != found[1]


def test_times_of_outputs_tell_nothing(batch, run, tmp_path):
    run("deidentify", batch, "-o", tmp_path / "out", "-m", "fill", code=3)
    assert len({path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}) == 1
    assert (tmp_path / "out" / "certificate.json").stat().st_mtime < 1e9


def test_frames_at_risk_are_listed_outside_the_folder(photo, nobody, run, tmp_path):  # noqa: F811
    tracks = tmp_path / "tracks.json"
    run("deidentify", photo, "-o", tmp_path / "one.png", "-m", "fill", "--tracks", tracks, code=0)
    content = json.loads(tracks.read_text())
    for track in content["tracks"]:
        track["meshes"] = []
    tracks.write_text(json.dumps(content))
    out = tmp_path / "out"
    run("deidentify", photo, "-o", f"{out}/", "--tracks", tracks, code=3)
    assert left_in(out) == {"000001.jpg", "certificate.json"}
    assert "P1" in (tmp_path / "out.at-risk.csv").read_text()
    run("verify", out, code=0)
    (out / "at-risk.csv").write_text("anything")
    assert "at-risk.csv" in run("verify", out, code=4).output


def test_what_the_output_cannot_hold_is_told(run, tmp_path):
    cv2.imwrite(str(tmp_path / "deep.png"), np.full((48, 64, 3), 7777, dtype=np.uint16))
    told = json.loads(run("deidentify", tmp_path / "deep.png", "-o", tmp_path / "a.jpg", "--json", code=3).stdout)
    assert "16 bits became 8" in told["files"][0]["lost"][0]
    assert "lost" in run("deidentify", tmp_path / "deep.png", "-o", tmp_path / "b.jpg", code=3).output
    words = ("deidentify", tmp_path / "deep.png", "-o", tmp_path / "c.png", "--region", "4,4,8,8", "--json")
    assert json.loads(run(*words, code=3).stdout)["files"][0]["lost"] == []  # 3, for no face is found
    written = cv2.imread(str(tmp_path / "c.png"), cv2.IMREAD_UNCHANGED)
    assert written.dtype == np.uint16
    assert (written[20:, 20:] == 7777).all()
    assert (written[5:11, 5:11] == 30 * 257).all()  # 7777 as a byte, and no more of it
