"""One naming everywhere, and everybody who is left as they are is said, counted and certified."""

import json
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from ksame import synthetic

N, GONE = 24, 6
SMALL, LARGE = (slice(80, 240), slice(16, 144)), (slice(0, 320), slice(200, 456))


@pytest.fixture(scope="module")
def clip(tmp_path_factory) -> Path:
    """Somebody small is there all the time, somebody large for six frames: more pixels, fewer frames."""
    people = (synthetic(2, seed=5, size=(320, 256)).images * 255).round().astype(np.uint8)
    path = tmp_path_factory.mktemp("clip") / "clip.mkv"
    with av.open(str(path), "w") as target:
        stream = target.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 480, 320, "bgr0"
        for i in range(N):
            picture = np.full((320, 480, 3), 140, np.uint8)
            picture[SMALL] = np.asarray(Image.fromarray(people[0]).resize((128, 160), Image.Resampling.BOX))
            if i < GONE:
                picture[LARGE] = people[1]
            target.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        target.mux(stream.encode())
    return path


@pytest.fixture(scope="module")
def tracks(clip, run, tmp_path_factory) -> Path:
    """The tracks of the clip, not edited."""
    path = tmp_path_factory.mktemp("tracks") / "tracks.json"
    run("deidentify", clip, "-o", path.with_name("safe.mkv"), "-m", "blackout", "--tracks", path, code=0)
    return path


def edited(tracks: Path, place: Path, change) -> Path:
    content = json.loads(tracks.read_text())
    change(content)
    path = place / "edited.json"
    path.write_text(json.dumps(content))
    return path


def frames(path: Path) -> np.ndarray:
    with av.open(str(path)) as container:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])


def unchanged(before: Path, after: Path, place: tuple[slice, slice]) -> bool:
    old, new = frames(before), frames(after)
    return bool(np.array_equal(old[(slice(GONE), *place)], new[(slice(GONE), *place)]))


def blacked(run, clip, folder, *words):
    """De-identify; return what was printed, and the certificate."""
    result = run("deidentify", clip, "-o", folder / "safe.mkv", "-m", "blackout", "--codec", "ffv1", *words, code=0)
    return result.output.replace("\n", " "), json.loads((folder / "safe.certificate.json").read_text())


def without(name: str):
    def change(content):
        content["tracks"] = [one for one in content["tracks"] if one["person"] != name]
        content["people"] = [one for one in content["people"] if one["name"] != name]

    return change


@pytest.mark.parametrize("name", ["P1", "P2"])
def test_people_keep_and_tracks_mean_the_same_person(name, clip, tracks, run, tmp_path):
    listed = json.loads(run("people", clip, "--json", code=0).stdout)["people"]
    (height,) = [one["height"] for one in listed if one["name"] == name]
    here, other = (LARGE, SMALL) if height > 120 else (SMALL, LARGE)
    (tmp_path / "kept").mkdir()
    blacked(run, clip, tmp_path / "kept", "--keep", name)
    blacked(run, clip, tmp_path, "--tracks", edited(tracks, tmp_path, without(name)))
    for output in (tmp_path / "kept" / "safe.mkv", tmp_path / "safe.mkv"):
        assert unchanged(clip, output, here)
        assert not unchanged(clip, output, other)


@pytest.mark.parametrize("whole", [True, False])
def test_who_is_taken_out_of_the_tracks_is_warned_of_and_counted_as_kept(whole, clip, tracks, run, tmp_path):
    def change(content):
        if whole:
            without("P2")(content)
            return
        for one in content["tracks"]:  # seen in the last frames, and no longer covered there
            if one["person"] == "P2":
                one["frames"] = [row for row in one["frames"] if row[0] < N - 3]
        content["tracks"] = [one for one in content["tracks"] if one["frames"]]

    link = tmp_path / "link.json"
    words = ("--tracks", edited(tracks, tmp_path, change), "--link-table", link)
    told, certificate = blacked(run, clip, tmp_path, *words)
    assert "privacy warning" in told
    assert "P2" in told
    assert "1 of 2 people" in told
    (file,) = tmp_path.glob("*.certificate.json")
    run("verify", file, "--linkage", link, code=0)
    assert (certificate["counts"]["people"], certificate["counts"]["kept"], certificate["counts"]["masked"]) == (
        2,
        1,
        1,
    )
    assert any("1 of 2 people" in warning for warning in certificate["warnings"])


@pytest.mark.parametrize(
    ("words", "kept"),
    [(("--keep", "P2"), 1), (("--only", "P2"), 1), (("--from", "0.2"), 2), (("--to", "0.6"), 1), (("--from", "0"), 0)],
)
def test_whoever_is_shown_is_counted_as_kept_and_the_console_says_how_many(words, kept, clip, run, tmp_path):
    told, certificate = blacked(run, clip, tmp_path, *words)
    assert (certificate["counts"]["kept"], certificate["counts"]["masked"]) == (kept, 2 - kept)
    assert (f"{kept} of 2 people" in told) is (kept > 0)


def test_what_is_perhaps_no_face_and_is_kept_is_counted(clip, tracks, run, tmp_path):
    def change(content):
        for one in content["tracks"]:
            if one["person"] == "P2":
                one.update(confirmed=False, meshes=[])

    words = ("--tracks", edited(tracks, tmp_path, change), "--keep", "P2")
    told, certificate = blacked(run, clip, tmp_path, *words)
    assert (certificate["counts"]["not_sure"], certificate["counts"]["not_sure_kept"]) == (0, 1)
    assert any("perhaps a face" in warning for warning in certificate["warnings"])
    assert "perhaps a face" in told


def test_an_edited_file_keeps_its_names(clip, tracks, run, tmp_path):
    def change(content):
        without("P1")(content)
        for one in (*content["people"], *content["tracks"]):
            name = "name" if "name" in one else "person"
            one[name] = "the guest"

    file = edited(tracks, tmp_path, change)
    listed = json.loads(run("people", clip, "--tracks", file, "--json", code=0).stdout)["people"]
    assert {one["name"] for one in listed} == {"the guest"}
    _, certificate = blacked(run, clip, tmp_path, "--tracks", file, "--keep", "the guest")
    assert certificate["counts"]["kept"] == 2
    words = ("deidentify", clip, "-o", tmp_path / "x.mkv", "-m", "fill", "--tracks", file, "--keep", "P2")
    assert "There is no P2 here. People found: the guest" in run(*words, code=2).output.replace("\n", " ")


def test_a_name_that_became_somebody_elses_is_never_silent(clip, tracks, run, tmp_path):
    other = {"P1": "P2", "P2": "P1"}

    def swap(content):
        for number, one in enumerate(content["tracks"]):
            one.update(person=other[one["person"]], number=40 + number)
        for one in content["people"]:
            one.update(name=other[one["name"]])

    file = edited(tracks, tmp_path, swap)
    told, _ = blacked(run, clip, tmp_path, "--tracks", file, "--keep", "P2")
    assert "P2 is now who was found as P1" in told
    listed = json.loads(run("people", clip, "--tracks", file, "--json", code=0).stdout)["people"]
    heights = {one["name"]: one["height"] for one in listed}
    assert unchanged(clip, tmp_path / "safe.mkv", LARGE if heights["P2"] > heights["P1"] else SMALL)


def test_an_unedited_file_changes_nothing(clip, tracks, run, tmp_path):
    told, certificate = blacked(run, clip, tmp_path, "--tracks", tracks)
    assert "warning" not in told
    assert certificate["counts"]["kept"] == 0


def test_tracks_of_another_recording_of_the_same_size_are_refused(clip, tracks, run, tmp_path):
    old = frames(clip)
    with av.open(str(tmp_path / "other.mkv"), "w") as target:
        stream = target.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 480, 320, "bgr0"
        for picture in old[:, :, ::-1]:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            target.mux(stream.encode(frame))
        target.mux(stream.encode())
    words = ("deidentify", tmp_path / "other.mkv", "-o", tmp_path / "safe.mkv", "-m", "fill", "--tracks", tracks)
    assert "made for another recording" in run(*words, code=5).output.replace("\n", " ")
