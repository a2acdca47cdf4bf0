"""``ksame deidentify``: what becomes of odd files, odd names and odd places."""

import csv
import json

import av
import pytest

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
