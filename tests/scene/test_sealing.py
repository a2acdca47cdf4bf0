"""What a release hides is sealed per person, and one person comes back: to one level, and nobody else with them."""

import json
from fractions import Fraction
from importlib.resources import files

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import ksame
from ksame.errors import InputError, KsameError, OutputError, PrivacyWarning, UsageError
from ksame.scene.certificate import SceneCertificate
from ksame.scene.media import EncoderConfig, open_media
from ksame.scene.release import ReleaseOptions
from ksame.scene.sealing.film import RGB, Film, FilmWriter, Window, on_plane, planes_of
from ksame.scene.sealing.restore import records, restore
from ksame.scene.sealing.sealer import Originals
from ksame.vault import Vault, new_identity
from ksame.vault.table import open_everything, open_table
from scene.test_media_exact import decoded, planes
from scene.walkers import background, paste

SAMPLE = str(files("ksame.data") / "samples" / "m12.jpg")
FILL = ksame.JobConfig(method="fill")
ME = new_identity()


def two_people(path, n=12, codec="libx264", pixels="yuv420p", size=(320, 240)):
    """Two people who move, so near to one another that their regions overlap."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25, options={"crf": "18"} if codec == "libx264" else {})
        stream.width, stream.height, stream.pix_fmt = *size, pixels
        for i in range(n):
            picture = background(size)
            paste(picture, 0, (100 + i, 120), 150)
            paste(picture, 1, (190 + i, 120), 150)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format=pixels)
            frame.pts, frame.time_base = i, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def sealed_release(source, output, config=FILL, **options):
    return ksame.deidentify_media(
        source,
        output,
        config=config,
        options=ReleaseOptions(vault=output.with_name("case.age"), recipients=(ME.recipient,), **options),
        seed=1,
    )


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """An original, its release and its vault, in one folder."""
    folder = tmp_path_factory.mktemp("case")
    with pytest.warns(PrivacyWarning, match="sealed"):
        sealed_release(two_people(folder / "film.mp4"), folder / "safe.mp4")
    return folder


def masks(folder, people, unit="safe.mp4"):
    """Which pixels, of every frame, are held by people of a vault: by all of their holders."""
    vault = Vault.read(folder / "case.age")
    keys = vault.keys(ME)
    numbers = {entry.sha256: n for n, entry in enumerate(vault.index.entries)}
    found = {}
    for record in records(vault, keys).values():
        for film in record.films:
            if film.output == unit and set(film.holders) & set(people):
                opened = Film.read(vault.open(numbers[film.sha256], [keys[name] for name in reversed(film.holders)]))
                for i, (_, mask) in enumerate(opened.frames([(240, 320), (120, 160), (120, 160)])):
                    whole = found.setdefault(film.holders, {}).setdefault(film.first + i, np.zeros((120, 160), bool))
                    whole[opened.window.slices(whole.shape, (240, 320))] |= mask
    return found


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_one_person_comes_back_and_nobody_else(case, tmp_path, suffix):
    done = restore(Vault.read(case / "case.age"), ME, ["P1"], case / "safe.mp4", tmp_path / f"restored{suffix}")
    assert done.n_frames == 12
    held = masks(case, ["P1", "P2"])
    assert set(held) == {("P1",), ("P2",), ("P1", "P2")}
    files = (case / "film.mp4", case / "safe.mp4", tmp_path / f"restored{suffix}")
    for i, (original, release, restored) in enumerate(zip(*map(decoded, files), strict=True)):
        own = held["P1",][i]
        assert own.sum() > 100
        assert not (own & (held["P2",][i] | held["P1", "P2"][i])).any()
        for before, public, after in zip(original, release, restored, strict=True):
            mask = on_plane(own, before.shape, own.shape)
            assert np.abs(after.astype(int) - before)[mask].max() <= 1
            assert np.array_equal(after[~mask], public[~mask])
            assert np.abs(public.astype(int) - before)[mask].max() > 20 or before.shape != (240, 320)


def test_all_that_was_changed_is_held_by_somebody(case):
    held = masks(case, ["P1", "P2"])
    for i, (original, release) in enumerate(zip(decoded(case / "film.mp4"), decoded(case / "safe.mp4"), strict=True)):
        everybody = on_plane(sum(mask[i] for mask in held.values()) > 0, (240, 320), (120, 160))
        far = np.abs(original[0].astype(int) - release[0]) > 40  # more than any encoder errs
        assert far.any()
        assert not (far & ~everybody).any()


def test_what_two_share_comes_back_with_both(case, tmp_path):
    restore(Vault.read(case / "case.age"), ME, ["P1", "P2"], case / "safe.mp4", tmp_path / "both.mp4")
    shared = masks(case, ["P1"])["P1", "P2"]
    for i, (before, after) in enumerate(zip(decoded(case / "film.mp4"), decoded(tmp_path / "both.mp4"), strict=True)):
        mask = on_plane(shared[i], (240, 320), (120, 160))
        assert mask.any()
        assert np.abs(after[0].astype(int) - before[0])[mask].max() <= 1


def test_times_and_size_stay(case, tmp_path):
    restore(Vault.read(case / "case.age"), ME, ["P2"], case / "safe.mp4", tmp_path / "restored.mp4")
    release, restored = (open_media(path) for path in (case / "safe.mp4", tmp_path / "restored.mp4"))
    assert [frame.time for frame in release.frames()] == [frame.time for frame in restored.frames()]
    assert (tmp_path / "restored.mp4").stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob(".*")), "nothing of the work is left"


def test_the_vault_tells_who_became_whom_and_the_certificate_tells_of_the_vault(case):
    vault = Vault.read(case / "case.age")
    certificate = SceneCertificate.read(case / "safe.certificate.json")
    assert certificate.vault.root == vault.root
    assert "can bring back" in certificate.vault.statement
    told = records(vault, vault.keys(ME))
    assert {name: record.linkage.treatment for name, record in told.items()} == {"P1": "mask", "P2": "mask"}
    assert told["P1"].linkage.places[0].output == "safe.mp4"
    table = json.loads(open_table(vault, ME)[0])
    assert table["schema"] == "ksame/scene-linkage"
    assert table["seed"] == 1
    assert open_everything(vault, ME)[0] == 3


def test_a_replaced_person_has_a_surrogate_in_the_record(tmp_path):
    Image.fromarray(np.asarray(Image.open(SAMPLE).resize((240, 240)))).save(tmp_path / "me.png")
    with pytest.warns(PrivacyWarning):
        sealed_release(tmp_path / "me.png", tmp_path / "safe.png", ksame.JobConfig(judged=False))
    vault = Vault.read(tmp_path / "case.age")
    told = records(vault, vault.keys(ME))["P1"]
    assert told.surrogate is not None
    assert told.surrogate.group == told.linkage.group
    restore(vault, ME, ["P1"], tmp_path / "safe.png", tmp_path / "restored.png")
    before, public, after = (
        np.asarray(Image.open(tmp_path / f"{name}.png"), dtype=int) for name in ("me", "safe", "restored")
    )
    assert np.array_equal(before, after), "all of a picture that is kept without loss"
    assert np.abs(public - before).max() > 50


def test_photographs_and_frames_come_back_exactly(tmp_path):
    folder = tmp_path / "frames"
    folder.mkdir()
    for i, frame in enumerate(decoded_rgb(two_people(tmp_path / "film.mp4", 3))):
        Image.fromarray(frame).save(folder / f"{i:03d}.png")
    with pytest.warns(PrivacyWarning):
        ksame.deidentify_media(
            folder,
            tmp_path / "safe",
            config=ksame.JobConfig(method="fill", encoding=EncoderConfig(codec="png")),
            options=ReleaseOptions(frames=True, vault=tmp_path / "case.age", recipients=(ME.recipient,)),
        )
    restore(Vault.read(tmp_path / "case.age"), ME, ["P1", "P2"], tmp_path / "safe", tmp_path / "restored")
    for i in range(3):
        before = np.asarray(Image.open(folder / f"{i:03d}.png"))
        assert np.array_equal(before, np.asarray(Image.open(tmp_path / "restored" / f"{i + 1:06d}.png")))


def decoded_rgb(path):
    return [frame.pixels for frame in open_media(path).frames()]


KINDS = {
    "10 bits": ({"pixels": "yuv420p10le"}, ".mp4", ".mp4"),
    "4:2:2": ({"codec": "ffv1", "pixels": "yuv422p"}, ".mp4", ".mp4"),
    "FFV1 of 12 bits": ({"codec": "ffv1", "pixels": "yuv420p12le"}, ".mkv", ".mkv"),
    "an odd size": ({"codec": "ffv1", "size": (321, 241)}, ".mp4", ".mp4"),
    "MPEG-4 of an odd size": ({"codec": "ffv1", "size": (321, 241)}, ".avi", ".mkv"),
    "VP9": ({}, ".webm", ".mp4"),
    "GIF": ({}, ".gif", ".mkv"),
    "GIF to frames": ({}, ".gif", ""),
    "RGB": ({"codec": "ffv1", "pixels": "bgr0"}, ".mp4", ".mp4"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_film_comes_back(tmp_path, kind):
    clip, released, restored = KINDS[kind]
    source, output, opened = tmp_path / "film.mkv", tmp_path / f"safe{released}", tmp_path / f"restored{restored}"
    config = FILL
    if kind == "FFV1 of 12 bits":
        config = ksame.JobConfig(method="fill", encoding=EncoderConfig(codec="ffv1"))
    with pytest.warns(PrivacyWarning, match="sealed"):
        sealed_release(two_people(source, 3, **clip), output, config)
    restore(Vault.read(tmp_path / "case.age"), ME, ["P1", "P2"], output, opened)
    originals = Originals(open_media(source), output, config.encoding)
    native = originals.pixel_format != RGB
    frames = zip(*(list(open_media(path).frames()) for path in (source, output, opened)), strict=True)
    for before, public, after in frames:
        triples = zip(
            originals.planes(before),
            *(planes_of(frame.native) if native else [frame.pixels] for frame in (public, after)),
            strict=True,
        )
        for original, release, brought_back in triples:
            off = np.abs(brought_back.astype(int) - original)
            changed = brought_back != release
            assert changed.any()
            assert off[changed].max() <= 1
            if released != ".gif":  # whose few colours are far off everywhere
                assert off[np.abs(release.astype(int) - original) > original.max() // 4].max(initial=0) <= 1


REFUSED = {
    "another key": ({"identity": new_identity()}, InputError, "other recipients"),
    "nobody": ({"people": ["P9"]}, UsageError, "There is no P9 .* P1, P2"),
    "no person": ({"people": []}, UsageError, "There is no person"),
    "another release": ({"release": "film.mp4"}, InputError, "not a file of the release"),
    "no release": ({"release": "nothing.mp4"}, InputError, "no such file"),
    "a lossy picture": ({"output": "r.jpg"}, UsageError, "Choose .png"),
    "a lossy film": ({"output": "r.avi"}, UsageError, "Choose .mp4 or .mkv"),
    "one picture": ({"output": "r.png"}, UsageError, "cannot hold a recording"),
    "pictures": ({"output": "r"}, UsageError, "Choose .mp4 or .mkv"),
    "no such folder": ({"output": "none/r.mp4"}, UsageError, "does not exist"),
    "an unknown suffix": ({"output": "r.docx"}, UsageError, "not known"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_opened_writes_nothing(case, tmp_path, name):
    given, error, words = REFUSED[name]
    vault = Vault.read(case / "case.age")
    release = case / given.get("release", "safe.mp4")
    output = tmp_path / given.get("output", "r.mp4")
    with pytest.raises(error, match=words):
        restore(vault, given.get("identity", ME), given.get("people", ["P1"]), release, output)
    assert not list(tmp_path.iterdir())
    assert len(Vault.read(case / "case.age").log.openings) == len(vault.log.openings), "nothing was opened"


def test_a_vault_that_cannot_be_written_leaves_no_release(tmp_path, monkeypatch):
    from ksame.scene.sealing import casefile

    def full(*_, **__):
        raise OutputError("the disk is full")

    monkeypatch.setattr(casefile, "write_vault", full)
    with pytest.raises(OutputError, match="full"):
        sealed_release(two_people(tmp_path / "film.mp4", 2), tmp_path / "safe.mp4")
    assert not {path.name for path in tmp_path.iterdir()} & {"safe.mp4", "safe.certificate.json", "case.age"}
    monkeypatch.undo()
    with pytest.warns(PrivacyWarning):
        sealed_release(tmp_path / "film.mp4", tmp_path / "safe.mp4", resume=True)
    assert open_everything(Vault.read(tmp_path / "case.age"), ME)[0] == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vault": "v.age"}, "needs a --recipient"),
        ({"recipients": (ME.recipient,)}, "Name its file with --vault"),
        ({"vault": "film.mp4", "recipients": (ME.recipient,)}, "never overwritten"),
        ({"vault": "v.age", "recipients": ("age1nonsense",)}, "public key"),
        ({"vault": "none/v.age", "recipients": (ME.recipient,)}, "does not exist"),
        ({"vault": "safe.mp4", "recipients": (ME.recipient,)}, "cannot have one name"),
    ],
)
def test_a_vault_that_makes_no_sense_is_refused_before_any_work(tmp_path, options, words):
    two_people(tmp_path / "film.mp4", 1)
    given = {**options, **({"vault": tmp_path / options["vault"]} if "vault" in options else {})}
    with pytest.raises(UsageError, match=words):
        ksame.deidentify_media(
            tmp_path / "film.mp4", tmp_path / "safe.mp4", config=FILL, options=ReleaseOptions(**given)
        )
    assert [path.name for path in tmp_path.iterdir()] == ["film.mp4"]


def test_files_at_urls_have_no_vault(tmp_path):
    pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'ksame[cluster]'")
    two_people(tmp_path / "film.mp4", 1)
    options = ReleaseOptions(vault=tmp_path / "case.age", recipients=(ME.recipient,))
    with pytest.raises(UsageError, match="local files"):
        ksame.deidentify_media(f"file://{tmp_path}/film.mp4", tmp_path / "safe.mp4", config=FILL, options=options)
    assert [path.name for path in tmp_path.iterdir()] == ["film.mp4"]


def test_a_finished_job_is_not_run_again_over_its_vault(tmp_path):
    two_people(tmp_path / "film.mp4", 1)
    with pytest.warns(PrivacyWarning):
        sealed_release(tmp_path / "film.mp4", tmp_path / "safe.mp4")
    before = (tmp_path / "safe.mp4").read_bytes()
    with pytest.raises(UsageError, match="never overwritten"):
        sealed_release(tmp_path / "film.mp4", tmp_path / "safe.mp4", resume=True, force=True)
    assert (tmp_path / "safe.mp4").read_bytes() == before


def test_what_a_rectangle_fills_is_sealed_for_nobody(tmp_path):
    config = ksame.JobConfig(method="fill", regions=((60, 60, 60, 60),))
    with pytest.warns(PrivacyWarning):
        sealed_release(two_people(tmp_path / "film.mp4", 2), tmp_path / "safe.mp4", config)
    restore(Vault.read(tmp_path / "case.age"), ME, ["P1", "P2"], tmp_path / "safe.mp4", tmp_path / "restored.mp4")
    for release, restored in zip(*(decoded(tmp_path / f"{n}.mp4") for n in ("safe", "restored")), strict=True):
        assert np.array_equal(release[0][60:120, 60:120], restored[0][60:120, 60:120])
        assert not np.array_equal(release[0], restored[0])


class _Killed(BaseException):
    pass


def test_an_interrupted_run_goes_on_with_the_same_keys(tmp_path, monkeypatch):
    """Stretches that were sealed before are kept; those that were written and not sealed are sealed now."""
    from ksame.scene.sealing import sealer

    monkeypatch.setattr(sealer, "_STRETCH", 8)
    two_people(tmp_path / "film.mp4", 20)
    add = sealer.Sealer.add

    def killed(self, frame, touched=None):
        if frame.index == 13:
            raise _Killed
        add(self, frame, touched)

    monkeypatch.setattr(sealer.Sealer, "add", killed)
    with pytest.raises(_Killed):
        sealed_release(tmp_path / "film.mp4", tmp_path / "safe.mp4")
    assert not (tmp_path / "safe.mp4").exists()
    work = tmp_path / ".safe.mp4.ksame-work"
    kept = {path.name: path.read_bytes() for path in work.rglob("000000-*.age")}
    assert kept, "the first stretch is sealed"
    assert all(data.startswith(b"age-encryption.org/v1") for data in kept.values())
    monkeypatch.setattr(sealer.Sealer, "add", add)
    with pytest.warns(PrivacyWarning):
        sealed_release(tmp_path / "film.mp4", tmp_path / "safe.mp4", resume=True)
    vault = Vault.read(tmp_path / "case.age")
    assert set(kept.values()) <= {vault.sealed(n) for n in vault.numbers("film")}
    done = restore(vault, ME, ["P1"], tmp_path / "safe.mp4", tmp_path / "restored.mp4")
    assert done.n_frames == 20


def test_frames_that_were_written_and_not_sealed_are_sealed_later(tmp_path, monkeypatch):
    from ksame.scene.media.segments import WorkFolder
    from ksame.scene.sealing import sealer

    length = {"segment_length": 8}
    monkeypatch.setattr(
        "ksame.scene.writing.WorkFolder", lambda *given, **named: WorkFolder(*given, **(named | length))
    )
    two_people(tmp_path / "film.mp4", 20)
    add = sealer.Sealer.add

    def killed(self, frame, touched=None):
        if frame.index == 18:
            raise _Killed
        add(self, frame, touched)

    monkeypatch.setattr(sealer.Sealer, "add", killed)
    with pytest.raises(_Killed):
        sealed_release(tmp_path / "film.mp4", tmp_path / "safe.mp4")
    seen = []
    monkeypatch.setattr(
        sealer.Sealer,
        "add",
        lambda self, frame, touched=None: (seen.append(touched is None), add(self, frame, touched)),
    )
    with pytest.warns(PrivacyWarning):
        sealed_release(tmp_path / "film.mp4", tmp_path / "safe.mp4", resume=True)
    assert seen == [True] * 16 + [False] * 4
    done = restore(Vault.read(tmp_path / "case.age"), ME, ["P1"], tmp_path / "safe.mp4", tmp_path / "restored.mp4")
    assert done.n_frames == 20


def test_a_run_with_other_recipients_does_not_go_on(tmp_path, monkeypatch):
    from ksame.scene.sealing import sealer

    two_people(tmp_path / "film.mp4", 2)
    with monkeypatch.context() as patch:
        patch.setattr(sealer.Sealer, "finish", lambda self: (_ for _ in ()).throw(_Killed()))
        with pytest.raises(_Killed):
            sealed_release(tmp_path / "film.mp4", tmp_path / "safe.mp4")
    options = ReleaseOptions(vault=tmp_path / "case.age", recipients=(new_identity().recipient,), resume=True)
    with pytest.raises(UsageError, match="other files or options"):
        ksame.deidentify_media(tmp_path / "film.mp4", tmp_path / "safe.mp4", config=FILL, options=options, seed=1)


@pytest.mark.slow
def test_processes_seal_as_threads_do(tmp_path):
    (tmp_path / "in").mkdir()
    for n in (3, 4):
        two_people(tmp_path / "in" / f"{n}.mp4", n)
    config = ksame.JobConfig(method="fill", scheduler="processes", workers=2)
    with pytest.warns(PrivacyWarning):
        ksame.deidentify_media(
            tmp_path / "in",
            tmp_path / "out",
            config=config,
            options=ReleaseOptions(vault=tmp_path / "case.age", recipients=(ME.recipient,)),
        )
    vault = Vault.read(tmp_path / "case.age")
    for i, name in enumerate(("000001.mp4", "000002.mp4")):
        done = restore(vault, ME, ["P1"], tmp_path / "out" / name, tmp_path / f"restored-{i}.mp4")
        assert done.n_frames in (3, 4)
        vault = Vault.read(vault.path)


@given(st.integers(0, 10_000), st.sampled_from(["yuv420p", "yuv444p", "yuv420p10le", "yuv420p12le", RGB]))
@settings(max_examples=12, deadline=None)
def test_films_are_exact_to_one_level(seed, pixel_format):
    """Noise, which no encoder predicts, in masks that come, move and go."""
    rng = np.random.default_rng(seed)
    height, width = (int(n) for n in rng.integers(20, 60, 2))
    step = 2 if "420" in pixel_format else 1
    coarse = (-(-height // step), -(-width // step))
    shapes = [(height, width, 3)] if pixel_format == RGB else [(height, width), coarse, coarse]
    top = {"yuv420p10le": 1023, "yuv420p12le": 4095}.get(pixel_format, 255)
    frames = [[rng.integers(0, top + 1, shape).astype(np.uint16 if top > 255 else np.uint8) for shape in shapes]] * 4
    given_masks = [rng.random(coarse) < share for share in (0.4, 0.1, 0.0, 0.9)]
    window = Window.about(np.ones(coarse, dtype=bool), (height, width))
    writer = FilmWriter(7, window, pixel_format, (height, width))
    for values, mask in zip(frames, given_masks, strict=True):
        writer.add(values, mask)
    film = Film.read(writer.finish())
    assert (film.head.first, film.head.count) == (7, 4)
    found = list(film.frames([shape[:2] for shape in shapes]))
    for wanted, mask, (values, again) in zip(frames, given_masks, found, strict=True):
        assert np.array_equal(mask, again)
        for plane, value in zip(wanted, values, strict=True):
            meant = on_plane(mask, plane.shape[:2], coarse)
            off = np.abs(value.astype(int) - plane)[meant]
            assert off.size == 0 or off.max() <= 1


@pytest.mark.parametrize("pixel_format", ["yuv420p", RGB])
def test_a_film_keeps_few_frames_in_memory(pixel_format):
    rng = np.random.default_rng(1)
    shapes = [(64, 64, 3)] if pixel_format == RGB else [(64, 64), (32, 32), (32, 32)]
    blocks = np.ones(shapes[-1][:2], dtype=bool)
    writer = FilmWriter(0, Window(0, 0, 64, 64), pixel_format, (64, 64))
    for _ in range(40):
        writer.add([rng.integers(0, 256, shape, dtype=np.uint8) for shape in shapes], blocks)
        assert len(writer._pending) <= 3, "frames that wait for their encoder"


def test_a_film_that_is_none_is_refused():
    for data in (b"", b"ksame-film 1\n{}\n", b"anything"):
        with pytest.raises(KsameError):
            Film.read(data)


@pytest.mark.shared
@pytest.mark.slow
def test_the_vault_of_three_people(shared, tmp_path):
    """Exact in every frame; the size is what docs/vault.md says, and not more."""
    source = shared / "clips" / "openface_multi_face.avi"
    if not source.is_file():
        pytest.skip("no clip of three people")
    with pytest.warns(PrivacyWarning):
        sealed_release(source, tmp_path / "safe.mp4")
    vault = Vault.read(tmp_path / "case.age")
    assert vault.path.stat().st_size < 2.6 * source.stat().st_size
    restore(vault, ME, ["P1"], tmp_path / "safe.mp4", tmp_path / "restored.mp4")
    held = masks_at(tmp_path, "P1", (480, 640))
    files = (source, tmp_path / "safe.mp4", tmp_path / "restored.mp4")
    for i, (before, public, after) in enumerate(zip(*map(decoding, files), strict=True)):
        for a, b, c in zip(before, public, after, strict=True):
            mask = on_plane(held[i], a.shape, held[i].shape)
            assert not mask.any() or np.abs(c.astype(int) - a)[mask].max() <= 1
            assert np.array_equal(c[~mask], b[~mask])


def decoding(path):
    """The planes of every frame, one after the other."""
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            yield planes(frame)


def masks_at(folder, person, size):
    """Which blocks, of every frame, are held by one person alone."""
    vault = Vault.read(folder / "case.age")
    keys = vault.keys(ME)
    coarse = (size[0] // 2, size[1] // 2)
    numbers = {entry.sha256: n for n, entry in enumerate(vault.index.entries)}
    found = {}
    for film in records(vault, {person: keys[person]})[person].films:
        if film.holders == (person,):
            opened = Film.read(vault.open(numbers[film.sha256], [keys[person]]))
            for i, (_, mask) in enumerate(opened.frames([size, coarse, coarse])):
                whole = found.setdefault(film.first + i, np.zeros(coarse, bool))
                whole[opened.window.slices(coarse, size)] |= mask
    return found
