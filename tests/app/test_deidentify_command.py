"""``ksame deidentify`` from the outside: files in, files out, exit codes, interruptions."""

import csv
import json
import shutil
import signal
import time
from pathlib import Path

import av
import jsonschema
import numpy as np
import pytest
from PIL import Image
from tools.talking_head import write_talking_head

from ksame.errors import UsageError
from ksame.scene.certificate import SceneCertificate
from ksame.scene.paths import find_inputs, output_paths

FRAMES = 24
SIZE = (224, 192)
MARK = "Zk9Lantern"


def pixels(path: Path) -> np.ndarray:
    if path.suffix in (".png", ".jpg"):
        with Image.open(path) as picture:
            return np.asarray(picture.convert("RGB"))
    with av.open(str(path)) as container:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])


def change(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return how much each pixel changed on average over frames, (height, width)."""
    gap = np.abs(before.astype(float) - after.astype(float)).mean(axis=-1)
    return gap.mean(axis=0) if gap.ndim == 3 else gap


def left_in(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*")} - {"state"}


@pytest.fixture(scope="session")
def film(tmp_path_factory) -> Path:
    """Somebody who does not exist speaks for a second; the file tells a title."""
    folder = tmp_path_factory.mktemp("film")
    write_talking_head(folder / "plain.mp4", FRAMES, seed=3, size=SIZE, person=114169)
    path = folder / f"film-{MARK}.mp4"
    with av.open(str(folder / "plain.mp4")) as source, av.open(str(path), "w") as target:
        target.metadata["title"] = f"title-{MARK}"
        streams = {s.index: target.add_stream_from_template(s) for s in source.streams}
        for packet in source.demux():
            if packet.dts is not None:
                packet.stream = streams[packet.stream.index]
                target.mux(packet)
    return path


@pytest.fixture(scope="session")
def photo(film) -> Path:
    """One frame as a photograph, with a name and a place in its EXIF tags."""
    path = film.with_name(f"photo-{MARK}.jpg")
    exif = Image.Exif()
    exif[0x013B], exif[0x8298] = f"artist-{MARK}", f"copyright-{MARK}"
    Image.fromarray(pixels(film)[3]).save(path, quality=95, exif=exif)
    return path


@pytest.fixture(scope="session")
def nobody(film) -> Path:
    """A picture without faces."""
    path = film.with_name("nobody.png")
    Image.fromarray(np.linspace(60, 180, 96 * 128 * 3).reshape(96, 128, 3).astype(np.uint8)).save(path)
    return path


@pytest.fixture(scope="session")
def done(tmp_path_factory, film, run) -> Path:
    """The film de-identified, with everything that can be written beside it."""
    folder = tmp_path_factory.mktemp("done")
    words = ["deidentify", film, "-o", folder / "safe.mp4", "--seed", 7, "--json", "--tracks", folder / "tracks.json"]
    words += ["--review", folder / "review.png", "--link-table", folder / "link.json"]
    result = run(*words, code=0)
    (folder / "told.json").write_text(result.stdout)
    return folder


def test_everyone_is_replaced_and_everything_else_kept(done, film):
    before, after = pixels(film), pixels(done / "safe.mp4")
    assert before.shape == after.shape
    gap = change(before, after)
    height, width = gap.shape
    assert gap[height // 3 : height // 2 + 20, width // 2 - 20 : width // 2 + 20].mean() > 8
    assert gap[:20].mean() < 3
    assert gap[-12:, :20].mean() < 3
    with av.open(str(done / "safe.mp4")) as container:
        assert len(container.streams.audio) == 1


def test_nothing_of_the_original_slips_into_what_is_published(done):
    for name in ("safe.mp4", "safe.certificate.json"):
        assert MARK.encode() not in (done / name).read_bytes()
    certificate = json.loads((done / "safe.certificate.json").read_text())
    jsonschema.validate(certificate, SceneCertificate.shipped_schema())
    assert list(certificate["files"]) == ["safe.mp4"]
    assert (certificate["k"], certificate["k_real"], certificate["counts"]["replaced"]) == (10, 1, 1)
    assert certificate["likeness"]["recognised"] is False
    assert "7" not in json.dumps(certificate["method"])


def test_only_what_was_asked_for_is_left(done):
    expected = {"safe.mp4", "safe.certificate.json", "review.png", "link.json", "tracks.json", "told.json"}
    assert left_in(done) == expected


def test_json_tells_what_happened(done, film):
    told = json.loads((done / "told.json").read_text())
    assert (told["schema"], told["version"]) == ("ksame/deidentify", 1)
    (file,) = told["files"]
    assert (file["source"], file["frames"], file["replaced"]) == (str(film), FRAMES, ["P1"])
    assert file["at_risk"] == []
    assert told["unreadable"] == {}


def test_the_review_sheet_shows_first_worst_and_last(done):
    sheet = done / "review.png"
    assert sheet.stat().st_mode & 0o777 == 0o600
    height, width, _ = pixels(sheet).shape
    assert width > 6 * 170
    assert 170 < height < 260


def test_the_link_table_tells_who_and_where(done, film):
    table = json.loads((done / "link.json").read_text())
    assert (done / "link.json").stat().st_mode & 0o777 == 0o600
    (person,) = table["people"]
    assert (person["name"], person["treatment"], table["seed"]) == ("P1", "replace", 7)
    assert person["places"][0]["source"] == str(film)
    assert table["release_digest"] == json.loads((done / "safe.certificate.json").read_text())["digest"]


def test_the_same_tracks_and_seed_give_the_same_bytes(done, film, run, tmp_path):
    run("deidentify", film, "-o", tmp_path / "again.mp4", "--seed", 7, "--tracks", done / "tracks.json", code=0)
    assert (tmp_path / "again.mp4").read_bytes() == (done / "safe.mp4").read_bytes()


def test_verify_finds_any_change(done, run, keys, film, nobody, tmp_path):
    run("verify", done / "safe.certificate.json", code=0)
    run("verify", done / "safe.mp4", "--linkage", done / "link.json", code=0)
    run("deidentify", nobody, "-o", tmp_path / "s.png", "--sign", keys / "mine.pem", code=3)
    run("verify", tmp_path / "s.png", "--key", keys / "mine.pub", code=0)
    assert "not made with this key" in run("verify", tmp_path / "s.png", "--key", keys / "other.pub", code=4).output
    run("verify", tmp_path / "s.png", "--linkage", done / "link.json", code=4)
    certificate = tmp_path / "s.certificate.json"
    certificate.write_text(certificate.read_text().replace('"files": 1', '"files": 2'))
    run("verify", tmp_path / "s.png", "--key", keys / "mine.pub", code=4)
    Image.new("RGB", (128, 96)).save(tmp_path / "s.png")
    told = json.loads(run("verify", certificate, "--json", code=4).stdout)
    assert {f["name"] for f in told["findings"] if f["passed"] is False} == {"no file changed", "counts", "words"}


def test_metadata_goes_unless_named(photo, run, tmp_path):
    run("deidentify", photo, "-o", tmp_path / "bare.jpg", "-m", "fill", code=0)
    assert MARK.encode() not in (tmp_path / "bare.jpg").read_bytes()
    run("deidentify", photo, "-o", tmp_path / "kept.jpg", "-m", "fill", "--keep-metadata", "Copyright", code=0)
    data = (tmp_path / "kept.jpg").read_bytes()
    assert f"copyright-{MARK}".encode() in data
    assert f"artist-{MARK}".encode() not in data


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-m", "magic"), "Unknown method 'magic'"),
        (("-k", 1), "must be an integer in [2, 1000000]. Got 1"),
        (("--cover", "hat"), "Unknown cover 'hat'. Choose one of: head, face"),
        (("--level", 3), "someone-else has no level"),
        (("-m", "fill", "--level", 3), "has no level"),
        (("-m", "blackout", "--level", 3), "'value' parameter of blackout must be a number in [0, 1]"),
        (("--from", "soon"), "The 'time' parameter of deidentify must be seconds"),
        (("--from", 4, "--to", 2), "--from must come before --to"),
        (("--region", "1,2,3"), "must be x,y,width,height"),
        (("--region", "1,2,0,4"), "above 0"),
        (("--audio", "louder"), "must be one of keep, disguise, drop"),
        (("--codec", "wmv2"), "a .mp4 file holds h264 or hevc or vp9, not wmv2"),
        (("--codec", "mp3"), "The 'codec' parameter"),
        (("--quality", 101), "The 'quality' parameter"),
        (("--container", "exe"), "--container must be one of"),
        (("--container", "mkv"), "contradicts the name"),
        (("--review", "sheet.txt"), "the contact sheet is a picture"),
        (("--review", "no/such/sheet.png"), "does not exist"),
        (("--workers", 0), "must be an integer in [1, 256]. Got 0"),
        (("--keep", "P9", "-m", "fill"), "There is no P9 here. People found: P1"),
        (("--keep", "P1", "--mask", "P1", "-m", "fill"), "name each person in one of"),
    ],
)
def test_usage(words, told, photo, film, run, tmp_path):
    source = film if "--container" in words or "--codec" in words else photo
    name = "safe.mp4" if source is film else "safe.jpg"
    result = run("deidentify", source, "-o", tmp_path / name, *words, code=2)
    assert told in result.output.replace("\n", " ").replace("  ", " ")
    assert left_in(tmp_path) == set()


def test_what_exists_is_refused_before_any_work(photo, nobody, run, tmp_path):
    target = tmp_path / "safe.png"
    target.write_bytes(b"mine")
    assert "exists" in run("deidentify", nobody, "-o", target, code=2).output
    assert target.read_bytes() == b"mine"
    run("deidentify", nobody, "-o", target, "--force", code=3)
    assert target.read_bytes() != b"mine"
    target.unlink()
    assert "safe.certificate.json exists" in run("deidentify", nobody, "-o", target, code=2).output
    (tmp_path / "link.json").write_text("mine")
    words = ("--link-table", tmp_path / "link.json", "--force")
    assert "never overwritten" in run("deidentify", nobody, "-o", target, *words, code=2).output
    assert "overwritten" in run("deidentify", nobody, "-o", nobody, "--force", code=2).output
    words = ("deidentify", nobody, photo, "-o", tmp_path / "out", "--link-table", tmp_path / "out" / "l.json")
    assert "must not lie" in run(*words, code=2).output


def test_a_certificate_of_another_output_is_never_replaced(photo, nobody, run, tmp_path):
    run("deidentify", nobody, "-o", tmp_path / "safe.png", code=3)
    run("deidentify", photo, "-o", tmp_path / "safe.jpg", "-m", "fill", "--force", code=0)
    run("verify", tmp_path / "safe.png", code=0)
    run("verify", tmp_path / "safe.jpg", code=0)


def test_unreadable_input(nobody, run, tmp_path):
    (tmp_path / "in").mkdir()
    broken, empty = tmp_path / "in" / "broken.mp4", tmp_path / "in" / "empty.jpg"
    broken.write_bytes(b"no film at all")
    empty.touch()
    for path in (broken, empty, tmp_path / "in" / "missing.png"):
        assert path.name in run("deidentify", path, "-o", tmp_path / "safe.mp4", code=5).output.replace("\n", "")
    run("deidentify", tmp_path / "in", "-o", tmp_path / "out", code=5)
    run("deidentify", tmp_path / "in" / "*.gif", "-o", tmp_path / "out", code=5)
    assert left_in(tmp_path) == {"in", "in/broken.mp4", "in/empty.jpg"}
    shutil.copy(nobody, tmp_path / "in")
    told = json.loads(run("deidentify", tmp_path / "in", "-o", tmp_path / "out", "--json", code=3).stdout)
    assert set(told["unreadable"]) == {str(broken), str(empty)}
    assert {p.suffix for p in (tmp_path / "out").iterdir()} == {".png", ".json"}
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert certificate["counts"]["unreadable"] == 2
    run("verify", tmp_path / "out", code=0)
    (tmp_path / "out" / "more.png").write_bytes(b"")
    assert "more.png" in run("verify", tmp_path / "out", code=4).output


@pytest.fixture(scope="session")
def odd(film) -> dict[str, Path]:
    """Files that are not what they should be."""
    folder = film.parent / "odd"
    folder.mkdir()
    shutil.copy(film, folder / "named-wrongly.jpg")
    (folder / "cut-off.mp4").write_bytes(film.read_bytes()[: film.stat().st_size // 2])
    with av.open(str(film)) as source, av.open(str(folder / "sound.mp4"), "w") as target:
        stream = target.add_stream_from_template(source.streams.audio[0])
        for packet in source.demux(source.streams.audio[0]):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    with av.open(str(folder / "one-frame.mp4"), "w") as target:
        stream = target.add_stream("libx264", rate=25)
        stream.height, stream.width = SIZE
        target.mux(stream.encode(av.VideoFrame.from_ndarray(pixels(film)[0], format="rgb24")))
        target.mux(stream.encode())
    return {path.stem: path for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("named-wrongly", 0, ""),
        ("one-frame", 0, ""),
        ("cut-off", 5, "cut-off.mp4"),
        ("sound", 5, "only sound"),
    ],
)
def test_odd_files(name, code, told, odd, run, tmp_path):
    target = tmp_path / "safe.mp4"
    result = run("deidentify", odd[name], "-o", target, "-m", "blackout", code=code)
    assert told in result.output.replace("\n", "")
    assert left_in(tmp_path) == ({"safe.mp4", "safe.certificate.json"} if code == 0 else set())
    if code == 0:
        assert len(pixels(target)) == (1 if name == "one-frame" else FRAMES)


def test_a_batch_of_odd_files_names_the_bad_ones(odd, run, tmp_path):
    words = ("deidentify", odd["sound"].parent, "-o", tmp_path / "out", "-m", "fill", "--json")
    told = json.loads(run(*words, code=3).stdout)
    assert {Path(path).stem for path in told["unreadable"]} == {"cut-off", "sound"}
    assert {Path(file["output"]).suffix for file in told["files"]} == {".mp4"}


def test_an_unwritable_place(nobody, run, tmp_path):
    (tmp_path / "file").write_text("")
    result = run("deidentify", nobody, "-o", tmp_path / "file" / "safe.png")
    assert result.exit_code in (1, 2)
    assert left_in(tmp_path) == {"file"}


def test_a_batch_has_neutral_names_and_one_name_for_one_person(film, photo, nobody, run, tmp_path):
    for place in ("a", "b"):
        (tmp_path / "in" / place).mkdir(parents=True)
        shutil.copy(photo, tmp_path / "in" / place / photo.name)
    shutil.copy(nobody, tmp_path / "in" / "n.png")
    shutil.copy(film, tmp_path / "in" / "film.mp4")
    words = ("deidentify", tmp_path / "in", "-o", tmp_path / "out", "-m", "blackout", "--json", "--container", "mkv")
    told = json.loads(run(*words, code=3).stdout)
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert len(names) == 5
    assert {Path(name).suffix for name in names} == {".jpg", ".png", ".mkv", ".json"}
    assert all(name == "certificate.json" or name.split(".")[0].isdigit() for name in names)
    found = {Path(file["source"]).name: file["people"] for file in told["files"]}
    assert found == {photo.name: ["P1"], "n.png": [], "film.mp4": ["P1"]}
    for path in (tmp_path / "out").iterdir():
        assert MARK.encode() not in path.read_bytes()
    words = ("deidentify", tmp_path / "in", "-o", tmp_path / "named", "-m", "fill", "--keep-names")
    run(*words, code=3)
    expected = {"a", "b", f"a/{photo.name}", f"b/{photo.name}", "n.png", "film.mp4", "certificate.json"}
    assert left_in(tmp_path / "named") == expected
    run("verify", tmp_path / "named", code=0)


def test_a_forced_batch_leaves_nothing_of_the_earlier_one(nobody, photo, run, tmp_path):
    out = tmp_path / "out"
    run("deidentify", nobody, photo, "-o", out, "-m", "fill", code=3)
    assert "exists" in run("deidentify", nobody, "-o", f"{out}/", code=2).output
    run("deidentify", nobody, "-o", f"{out}/", "--force", code=3)
    assert left_in(out) == {"000001.png", "certificate.json"}
    run("verify", out, code=0)


def test_names_never_collide(tmp_path):
    for name in ("a.jpg", "a.JPG", "certificate.json"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.jpg").write_bytes(b"x")
    words = [str(tmp_path / "a.jpg"), str(tmp_path / "a.JPG"), str(tmp_path / "x" / "a.jpg")]
    inputs = find_inputs(words)
    wanted = output_paths(inputs, tmp_path / "out", keep_names=True, container="mp4")
    assert len({str(p).casefold() for p in wanted.outputs}) == 3
    with pytest.raises(UsageError, match="is a file"):
        output_paths(inputs, words[0])


def test_the_order_of_files_says_nothing_about_their_names(tmp_path):
    for i in range(8):
        (tmp_path / f"{i}.png").write_bytes(bytes([i]))
    first = find_inputs([tmp_path]).files
    for i in range(8):
        (tmp_path / f"{i}.png").write_bytes(bytes([7 - i]))
    again = find_inputs([tmp_path]).files
    assert [7 - int(one.path.stem) for one in again] == [int(one.path.stem) for one in first]


def test_frames_as_a_folder(film, run, tmp_path):
    (tmp_path / "in").mkdir()
    for i, frame in enumerate(pixels(film)[:4]):
        Image.fromarray(frame).save(tmp_path / "in" / f"{i}.png")
    run("deidentify", tmp_path / "in", "--frames", "-o", tmp_path / "out", "-m", "blackout", code=0)
    assert len(list((tmp_path / "out").glob("*.png"))) == 4
    run("verify", tmp_path / "out.certificate.json", code=0)
    run("deidentify", tmp_path / "in", "--frames", "-o", tmp_path / "film.mp4", "-m", "blackout", code=0)
    assert len(pixels(tmp_path / "film.mp4")) == 4


def test_a_face_without_a_mesh_is_masked_named_and_counted(photo, nobody, run, tmp_path):
    tracks = tmp_path / "tracks.json"
    run("deidentify", photo, "-o", tmp_path / "one.png", "-m", "fill", "--tracks", tracks, code=0)
    content = json.loads(tracks.read_text())
    for track in content["tracks"]:
        track["meshes"] = []
    tracks.write_text(json.dumps(content))
    result = run("deidentify", photo, "-o", tmp_path / "two.png", "--tracks", tracks, code=3)
    assert "at risk" in result.output
    rows = list(csv.DictReader((tmp_path / "two.at-risk.csv").read_text().splitlines()))
    assert [(row["file"], row["person"], row["first_frame"]) for row in rows] == [("two.png", "P1", "0")]
    assert MARK not in (tmp_path / "two.at-risk.csv").read_text()
    certificate = json.loads((tmp_path / "two.certificate.json").read_text())
    assert (certificate["counts"]["masked_instead"], certificate["counts"]["frames_at_risk"]) == (1, 1)
    assert certificate["k_real"] is None
    run("verify", tmp_path / "two.png", code=0)
    words = ("deidentify", nobody, "-o", tmp_path / "x.png", "--tracks", tracks)
    assert "made for pictures" in run(*words, code=5).output


def test_tracks_of_another_recording_are_refused(film, photo, run, tmp_path):
    tracks = tmp_path / "tracks.json"
    run("deidentify", photo, "-o", tmp_path / "one.png", "-m", "fill", "--tracks", tracks, code=0)
    result = run("deidentify", film, "-o", tmp_path / "film.mp4", "-m", "fill", "--tracks", tracks, code=5)
    assert "made for another recording" in result.output.replace("\n", " ")
    assert not (tmp_path / "film.mp4").exists()


@pytest.mark.parametrize(("words", "changed"), [(("--keep", "P1"), False), (("--mask", "P1"), True)])
def test_people_are_chosen(words, changed, photo, run, tmp_path):
    result = run("deidentify", photo, "-o", tmp_path / "safe.png", *words, code=0)
    gap = change(pixels(photo), pixels(tmp_path / "safe.png"))
    assert bool(gap.max() > 30) is changed
    assert ("can be recognised" in result.output) is not changed
    certificate = json.loads((tmp_path / "safe.certificate.json").read_text())
    assert bool(certificate["warnings"]) is not changed
    assert certificate["k_real"] is None


@pytest.mark.parametrize(("method", "words"), [("k-same-m", "mean of the group")])
def test_the_papers_methods(method, words, photo, run, tmp_path):
    result = run("deidentify", photo, "-o", tmp_path / "safe.png", "-m", method, "-k", 4, "--cover", "head", "--json")
    told = json.loads(result.stdout)
    counts = told["certificate"]["counts"]
    assert counts["replaced"] + counts["masked_instead"] == 1
    assert result.exit_code == (3 if counts["masked_instead"] else 0)
    if counts["replaced"]:
        assert words in told["certificate"]["statement"]
        assert told["certificate"]["method"]["cover"] == "head"
    assert change(pixels(photo), pixels(tmp_path / "safe.png")).max() > 20


def test_a_region_is_filled_and_a_span_is_kept_to(film, run, tmp_path):
    words = ("-m", "blackout", "--from", "0:00.3", "--to", 0.6, "--region", "4,6,30,20", "--audio", "drop")
    result = run("deidentify", film, "-o", tmp_path / "safe.mkv", "--codec", "ffv1", *words, code=0)
    assert "everyone can be recognised" in result.output.replace("\n", " ")
    before, after = pixels(film), pixels(tmp_path / "safe.mkv")
    middle = np.s_[90:110, 86:106]
    black = [bool(frame[middle].max() == 0) for frame in after]
    inside = [0.3 <= i / 25 <= 0.6 for i in range(FRAMES)]
    assert black == inside
    gap = np.abs(before.astype(int) - after)[:, 7:25, 5:33].mean(axis=(1, 2, 3))
    assert (gap > 0).all()
    assert after[:, 8:24, 6:32].std(axis=(1, 2)).max() < before[:, 8:24, 6:32].std(axis=(1, 2)).max()
    with av.open(str(tmp_path / "safe.mkv")) as container:
        assert not container.streams.audio
    certificate = (tmp_path / "safe.certificate.json").read_text()
    assert "span of time" in certificate
    assert "0.3" not in certificate


def wait_for(condition, process, seconds=120):
    until = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_goes_on_to_the_same_bytes(kind, done, film, start, run, tmp_path):
    target, work = tmp_path / "safe.mp4", tmp_path / ".safe.mp4.ksame-work"
    words = ("deidentify", film, "-o", target, "--seed", 7, "--tracks", tmp_path / "tracks.json")
    process = start(*words)
    wait_for((work / "03-output" / "000000" / "out").is_dir, process)
    process.send_signal(kind)
    _, told = process.communicate(timeout=60)
    if kind == signal.SIGINT:
        assert process.returncode == 130
        assert "--resume" in told
    assert not target.exists()
    assert left_in(tmp_path) - {"tracks.json"} != set()
    assert "other files or options" in run(*words, "-k", 5, "--resume", code=2).output.replace("\n", " ")
    run(*words, "--resume", code=0)
    assert target.read_bytes() == (done / "safe.mp4").read_bytes()
    assert left_in(tmp_path) == {"safe.mp4", "safe.certificate.json", "tracks.json"}


def test_a_killed_batch_keeps_what_was_finished(film, photo, nobody, start, run, tmp_path):
    def words(out):
        return ("deidentify", film, photo, nobody, "-o", out, "--seed", 3, "--workers", 1)

    run(*words(tmp_path / "whole"), code=3)
    out = tmp_path / "out"
    process = start(*words(out))
    wait_for(lambda: out.is_dir() and any(p.stem.isdigit() for p in out.iterdir()), process)
    process.kill()
    process.communicate(timeout=60)
    finished = [p for p in out.iterdir() if p.stem.isdigit()]
    assert not (out / "certificate.json").exists()
    run(*words(out), "--resume", code=3)
    contents = [{p.read_bytes() for p in place.iterdir() if p.stem.isdigit()} for place in (out, tmp_path / "whole")]
    assert contents[0] == contents[1]  # the numbers are random
    assert len(finished) >= 1
    assert set(finished) <= set(out.iterdir())
    assert {p.name for p in tmp_path.iterdir()} == {"out", "whole", "out.at-risk.csv", "whole.at-risk.csv"}
    assert len(left_in(out)) == len(left_in(tmp_path / "whole")) == 4


def test_resume_with_nothing_to_resume_begins(nobody, run, tmp_path):
    run("deidentify", nobody, "-o", tmp_path / "safe.png", "--resume", code=3)
    assert (tmp_path / "safe.png").exists()
