"""Releases, link tables, certificates and keys as files: what is written, what is read, what is refused."""

import base64
import json
import os
from hashlib import sha256

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

import ksame
from drawn import drawn_faces
from ksame.errors import InputError, OutputError, PrivacyWarning, UsageError
from ksame.faces.reading import decode_png, encode_png
from ksame.files import sha256_of
from ksame.privacy import release as release_module
from ksame.privacy.certificate import Certificate, VaultRecord, release_digest, signature_of
from ksame.privacy.findings import FOLDER, LINK
from ksame.privacy.invention import InventedRegion
from ksame.privacy.ledger import Ledger, default_folder
from ksame.privacy.linkage import Linkage, LinkedFace, PastRelease, WithheldFace, count_faces, read_table
from ksame.privacy.release import (
    Release,
    compared,
    encoded_files,
    encoded_once,
    face_name,
    read_faces,
    release_order,
    require_free,
    write_release,
)
from ksame.privacy.signing import load_private_key, load_public_key, signed_by

FACES = np.array([9, 9, 4], dtype=np.uint8).reshape(3, 1, 1, 1) * np.ones((1, 2, 3, 1), dtype=np.uint8)


@pytest.fixture(scope="module")
def released():
    faces = drawn_faces(7, seed=4, width=24, height=32)
    return ksame.deidentify(faces, ksame.recipe("k-same-pixel", k=3), seed=1, remember=False)


def test_files_of_a_release():
    names = ["faces/000001.png", "faces/000002.png", "faces/000003.png", "contact-sheet.png"]
    files = dict(encoded_files(FACES))
    assert list(files) == names
    assert [decode_png(files[name])[0, 0, 0] for name in names[:3]] == [9, 9, 4]
    hashes, kept = encoded_once(FACES, keep=True)
    assert hashes == {name: sha256(data).hexdigest() for name, data in files.items()}
    assert kept == {hashes[n]: base64.b64encode(files[n]).decode() for n in (names[0], names[2])}
    assert encoded_once(FACES, keep=False) == (hashes, {})
    assert face_name(0) == names[0]


def test_the_order_of_release_is_that_of_hashes():
    digests = [sha256(face.tobytes()).digest() for face in FACES]
    assert release_order(FACES) == sorted(range(3), key=lambda i: digests[i])
    rows = np.array([2, 0, 2, 1])
    assert release_order(FACES, rows) == sorted(range(4), key=lambda i: digests[rows[i]])


def test_a_release_says_what_it_is_and_not_how_it_looks(released):
    release, _ = released
    assert repr(release) == "Release(7 faces, k-anonymity, bound 0.3333333333333333)"
    noted = release.noted("take care")
    assert noted.certificate.warnings == (*release.certificate.warnings, "take care")
    assert noted.faces is release.faces


def test_what_is_written_is_read(released, tmp_path):
    release, _ = released
    write_release(release, tmp_path / "out")
    again, others = ksame.read_release(tmp_path / "out")
    assert np.array_equal(again.faces, release.faces)
    assert again.certificate == release.certificate
    assert {name: digest for name, digest in others.items() if digest != FOLDER} == release.certificate.files
    assert "faces" in others
    (tmp_path / "out" / "certificate.sig").symlink_to("certificate.json")
    assert "certificate.sig" not in ksame.read_release(tmp_path / "out")[1], "the signature is judged by itself"
    (tmp_path / "out" / "certificate.sig").unlink()
    (tmp_path / "out" / "certificate.sig").mkdir()
    assert ksame.read_release(tmp_path / "out")[1]["certificate.sig"] == FOLDER
    with pytest.raises(InputError, match=r"there is no certificate\.json\. Is this the folder of a release"):
        ksame.read_release(tmp_path)


def test_what_does_not_read_back_is_not_published(released, tmp_path, monkeypatch):
    monkeypatch.setattr(release_module, "sha256_of", lambda path: "0" if path.name == "000002.png" else sha256_of(path))
    with pytest.raises(
        OutputError, match=r"out: faces/000002\.png does not read back as it was written; check the disk"
    ):
        write_release(released[0], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("make", "force", "message"),
    [
        (lambda p: p.mkdir(), False, "out exists. Choose another folder, or replace it with --force"),
        (lambda p: p.write_text("mine"), True, "is no earlier release, so --force does not replace it"),
        (lambda p: (p.mkdir(), (p / "mine").touch()), True, "is no earlier release, so --force does not replace it"),
        (lambda p: (p.mkdir(), (p / "certificate.json").mkdir()), True, "is no earlier release"),
    ],
)
def test_what_stands_there_is_not_replaced(tmp_path, make, force, message):
    make(tmp_path / "out")
    with pytest.raises(UsageError, match=message):
        require_free(tmp_path / "out", force=force)


def test_a_release_is_not_written_over_what_stands_there(released, tmp_path):
    (tmp_path / "kept").write_text("theirs")
    for force in (False, True):
        with pytest.raises(UsageError):
            write_release(released[0], tmp_path, force=force)
    assert (tmp_path / "kept").read_text() == "theirs"


def test_what_may_be_replaced(tmp_path):
    require_free(tmp_path / "new", force=False)
    require_free(tmp_path / "new", force=True)
    (tmp_path / "out").mkdir()
    require_free(tmp_path / "out", force=True)
    (tmp_path / "out" / "certificate.json").touch()
    require_free(tmp_path / "out", force=True)
    with pytest.raises(OutputError, match=r"cannot be written \(File name too long\)"):
        require_free(tmp_path / ("x" * 300), force=False)


def test_faces_that_are_read_are_plain_pictures_of_one_size(tmp_path):
    (tmp_path / "faces").mkdir()
    for number, face in enumerate(FACES):
        (tmp_path / face_name(number)).write_bytes(encode_png(face))
    (tmp_path / "other.png").write_bytes(b"")
    hashes = {**{face_name(i): "hash" for i in (2, 1, 0)}, "other.png": "hash", "faces/link.png": LINK}
    assert read_faces(tmp_path, hashes)[:, 0, 0, 0].tolist() == [9, 9, 4]
    with pytest.raises(InputError, match=r"expected released faces of one size in faces/, found 0 files\.$"):
        read_faces(tmp_path, {"other.png": "hash"})
    (tmp_path / face_name(2)).write_bytes(encode_png(FACES[2][:1]))
    with pytest.raises(InputError, match=r"expected released faces of one size in faces/, found 3 files\.$"):
        read_faces(tmp_path, hashes)
    (tmp_path / face_name(1)).write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"faces/000002\.png: not a readable PNG file"):
        read_faces(tmp_path, hashes)


def test_a_ledger_that_cannot_be_kept_is_a_warning(released, tmp_path, monkeypatch):
    """On the way to a first release; where there is a ledger already, nothing is released."""
    faces = drawn_faces(7, seed=4, width=24, height=32)
    (tmp_path / "file").touch()
    monkeypatch.setenv("KSAME_STATE", str(tmp_path / "file" / "state"))
    with pytest.warns(PrivacyWarning, match=r"^This release could not be remembered \("):
        assert compared(*released, faces, None) is released[0]
    remembered = Release(released[0].faces, released[0].certificate, ("0" * 32,))
    with pytest.warns(PrivacyWarning, match=r"A second release of the same people will not be noticed\.$"):
        write_release(remembered, tmp_path / "out")
    assert (tmp_path / "out" / "certificate.json").is_file()


def test_where_the_ledger_lives(monkeypatch, tmp_path):
    assert default_folder() == tmp_path / "state"
    monkeypatch.delenv("KSAME_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", "/var/xdg")
    assert str(default_folder()) == "/var/xdg/ksame"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/ann")
    assert str(default_folder()) == "/home/ann/.local/state/ksame"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert str(default_folder()) == "/local/ksame"


def test_a_line_that_does_not_fit_on_the_disk_is_taken_back(tmp_path, monkeypatch):
    ledger, write = Ledger(tmp_path), os.write
    ledger.record(["0" * 160], "first")
    before = ledger.file.read_bytes()
    assert before == b'{"release": "first", "faces": ["' + b"0" * 160 + b'"]}\n'
    with monkeypatch.context() as patch:
        patch.setattr("ksame.privacy.ledger.os.write", lambda handle, line: write(handle, line[:5]))
        with pytest.raises(OSError, match="released.jsonl: the disk is full"):
            ledger.record(["1" * 160], "second")
    assert ledger.file.read_bytes() == before
    assert ledger.earlier(["0" * 160], "other") == 1
    assert ledger.earlier(["0" * 160], "first") == 0


@pytest.mark.parametrize(("shared", "known"), [(0, False), (15, False), (16, True), (32, True)])
def test_pictures_are_known_by_sixteen_bands(tmp_path, shared, known):
    ledger = Ledger(tmp_path)
    old = [f"{band:04x}" for band in range(32)]
    ledger.record(["".join(old) + "a" * 32, "f" * 128 + "b" * 32], "first")
    new = [f"{band:04x}" if band < shared else f"{0x8000 + band:04x}" for band in range(32)]
    assert ledger.earlier(["".join(new) + "c" * 32], "") == int(known)
    assert ledger.earlier(["0" * 128 + "a" * 32], "") == 1, "the same bytes"
    assert ledger.earlier(["f" * 64 + "0" * 64 + "c" * 32], "") == 1, "the largest word of a band"


def link(released: str, subject: str, **more) -> LinkedFace:
    return LinkedFace(released=released, subject=subject, **{"sources": (subject,), **more})


def table(**more) -> Linkage:
    return Linkage(**{"release_digest": "d2", "seed": 1, "faces": (link("1", "ann"),), **more})


def test_counts_of_a_link_table():
    faces = [link("1", "ann", sources=("a", "b", "c")), link("2", "bob"), link("3", "ann")]
    waiting = [WithheldFace(source="x", subject="cat", reason=""), WithheldFace(source="y", subject="ann", reason="")]
    assert count_faces(faces, waiting) == {
        "originals": 7,
        "subjects": 3,
        "released": 3,
        "subjects_released": 2,
        "merged": 2,
        "withheld": 2,
    }


def test_groups_and_people():
    linkage = table(faces=(link("1", "ann", group=0), link("2", "bob"), link("3", "cat", group=4)))
    assert linkage.groups == {"ann": 0, "cat": 4}
    assert linkage.people == {"ann", "bob", "cat"}


def test_what_a_release_was_added_to():
    history = (PastRelease(number=1, digest="d1", k=3), PastRelease(number=2, digest="d2", k=2))
    faces = (link("1", "ann", face="x"), link("2", "bob", since=2, face="y"))
    gone = (WithheldFace(source="z", subject="z", reason=""),)
    later = table(faces=faces, history=history, kept={"x": "1", "y": "2"}, withheld=gone)
    assert later.before() == table(release_digest="d1", faces=faces[:1], history=history[:1], kept={"x": "1"})
    assert table(history=history[:1]).before() is None
    later.require_series()
    with pytest.raises(UsageError, match=r"^No release can follow this one: .* since version 0\.2\.$"):
        table().require_series()
    third = PastRelease(number=3, digest="d3", k=2)
    assert table(faces=faces, history=(*history, third)).before().history == history


def test_faces_are_kept_by_their_hash():
    files = [encode_png(FACES[0]), encode_png(FACES[2])]
    keys = [sha256(file).hexdigest() for file in files]
    kept = {key: base64.b64encode(file).decode() for key, file in zip(keys, files, strict=True)}
    faces = tuple(link(str(i), "ann", face=keys[i % 2]) for i in range(3))
    assert table(faces=faces, kept=kept).shown()[:, 0, 0, 0].tolist() == [9, 4, 9]
    with pytest.raises(InputError, match=r"^The link table does not hold the face 1; use the copy that was written\.$"):
        table(faces=faces, kept={keys[0]: kept[keys[0]]}).shown()
    for damage in (kept[keys[1]], "?", kept[keys[0]] + "\n", ""):
        with pytest.raises(InputError, match="^The faces in the link table were changed or damaged; use the copy"):
            table(faces=faces, kept={**kept, keys[0]: damage}).shown()


def test_a_link_table_is_private_and_written_once(tmp_path):
    path = tmp_path / "link.json"
    table().write(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes().endswith(b"}\n")
    assert json.loads(path.read_bytes())["schema"] == "ksame/linkage"
    assert Linkage.read(path) == table()
    with pytest.raises(OutputError, match="exists"):
        table().write(path)
    table().write(path, again=True)
    with pytest.raises(OutputError, match="exists"):
        table(seed=2).write(path, again=True)
    assert Linkage.read(path) == table()


def test_a_sealed_table_says_how_it_is_opened(tmp_path):
    path = tmp_path / "link.age"
    path.write_bytes(b"ksame-vault 1")
    with pytest.raises(
        InputError, match=r"link\.age: it is sealed\. Open it first: ksame vault open .*link\.age --ide"
    ):
        read_table(path, Linkage)
    path.write_bytes(b"{}")
    with pytest.raises(InputError, match=r"link\.age: not a ksame link table \(schema: Field required\)\.$"):
        read_table(path, Linkage)


def test_certificates_are_written_with_and_without_a_signature(released, tmp_path):
    certificate, path = released[0].certificate, tmp_path / "certificate.json"
    key = ed25519.Ed25519PrivateKey.generate()
    certificate.write(path, key)
    assert path.read_bytes() == certificate.to_json()
    assert signature_of(path) == tmp_path / "certificate.sig"
    assert signed_by(path.read_bytes(), signature_of(path).read_bytes(), key.public_key())
    assert not signed_by(path.read_bytes() + b" ", signature_of(path).read_bytes(), key.public_key())
    assert path.stat().st_mtime == signature_of(path).stat().st_mtime
    certificate.write(path)
    assert not signature_of(path).exists(), "a signature of another key is gone"
    assert list(json.loads(path.read_bytes()))[-4:] == ["warnings", "files", "digest", "software"]
    assert Certificate.read(path) == certificate
    assert Certificate.from_json(certificate.to_json()) == certificate
    path.write_bytes(b"{}")
    with pytest.raises(InputError, match=r"certificate\.json: not a valid certificate \("):
        Certificate.read(path)
    assert Certificate.shipped_schema()["title"] == "Certificate"
    with pytest.raises(ValueError, match="String should match pattern"):
        VaultRecord(root="A" * 64)


def test_digests_know_names_from_hashes():
    assert release_digest({"a": "1", "b": "2"}) == sha256(b"a\x001\nb\x002\n").hexdigest()


def pem(key, password=None) -> bytes:
    if hasattr(key, "private_bytes"):
        lock = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def test_keys(tmp_path):
    key, other = ed25519.Ed25519PrivateKey.generate(), ec.generate_private_key(ec.SECP256R1())
    private, public = tmp_path / "key.pem", tmp_path / "key.pub"
    private.write_bytes(pem(key))
    public.write_bytes(pem(key.public_key()))
    assert pem(load_private_key(private)) == pem(key)
    assert pem(load_public_key(public)) == pem(key.public_key())
    for content, message in (
        (pem(other), r"key\.pem: not an Ed25519 key; make one with: openssl genpkey"),
        (pem(key, b"secret"), r"key\.pem: not a readable private key \(Password was not given.*\); make one with"),
        (b"no key", r"key\.pem: not a readable private key \(.*\); make one with: openssl"),
    ):
        private.write_bytes(content)
        with pytest.raises(InputError, match=message):
            load_private_key(private)
    for content, message in (
        (pem(other.public_key()), r"key\.pub: not an Ed25519 key; make one with: openssl genpkey"),
        (b"no key", r"key\.pub: not a readable public key \(.*\); make one with: openssl"),
    ):
        public.write_bytes(content)
        with pytest.raises(InputError, match=message):
            load_public_key(public)


def test_a_region_that_is_read_is_found_out():
    frame = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    region = np.zeros((4, 4), dtype=bool)
    region[1:3, 1:3] = True

    def judged(render) -> list[str]:
        violations = InventedRegion().check(render, frame, region, np.random.default_rng(1))
        assert all(violation.face is None for violation in violations)
        return [violation.reason for violation in violations]

    assert judged(lambda picture: np.where(region[..., None], 7, picture)) == []
    assert judged(lambda picture: picture) == ["4 pixels depend on what was inside the region"]
    first = [0]

    def forgetful(picture) -> np.ndarray:
        """Reads the region the third time only: the original, noise, and more noise."""
        first[0] += 1
        return picture if first[0] == 3 else np.where(region[..., None], frame, picture)

    assert judged(forgetful) == ["4 pixels depend on what was inside the region"]
    assert frame[1, 1, 0] == 15, "the frame itself is left as it was"
