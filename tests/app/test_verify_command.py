import json
import os
import shutil
from collections import Counter
from hashlib import sha256

import pytest

from ksame.errors import ExitCode
from ksame.faces.reading import decode_png, encode_png
from ksame.privacy.certificate import Certificate, PromiseRecord, release_digest
from ksame.privacy.models import KAnonymity


def findings(result):
    return {f["name"]: f["passed"] for f in json.loads(result.stdout)["findings"]}


def wrong(result):
    return {name for name, good in findings(result).items() if good is False}


def rewrite(published, **changes):
    path = published.folder / "certificate.json"
    path.write_bytes(Certificate.from_json(path.read_bytes()).model_copy(update=changes).to_json())


def face(published, number=1):
    return published.folder / "faces" / f"{number:06d}.png"


@pytest.fixture
def refused(run, published):
    """Verify the release, expect exit code 4, and return the findings that failed."""

    def check(*words):
        return wrong(run("verify", published.folder, *words, "--json", code=ExitCode.NOT_MET))

    return check


def test_a_release_passes_alone_with_its_secret_with_originals_and_with_the_key(run, published, people):
    for words in ((), ("--linkage", published.linkage), ("--key", published.public_key)):
        run("verify", published.folder, *words, code=0)
    words = ("--linkage", published.linkage, "--originals", people, "--key", published.public_key, "--json")
    result = run("verify", published.folder, *words, code=0)
    assert set(findings(result).values()) == {True}
    assert json.loads(result.stdout)["schema"] == "ksame/verification"


def test_without_a_key_the_signature_is_not_judged(run, published):
    assert findings(run("verify", published.folder, "--json", code=0))["signature"] is None


def test_the_table_shows_every_check(run, published):
    shown = run("verify", published.folder, code=0).stdout
    for name in ("signature", "no file missing", "no file added", "no file changed", "digest", "counts"):
        assert name in shown


def test_one_changed_pixel_is_found(published, refused):
    image = decode_png(face(published).read_bytes()).copy()
    image[3, 4, 1] ^= 1
    face(published).write_bytes(encode_png(image))
    assert {"no file changed", "promise, from the folder"} <= refused()


def test_a_reencoded_face_is_found(published, refused):
    face(published).write_bytes(face(published).read_bytes() + b"\0")
    assert refused() == {"no file changed", "pictures"}


def test_a_removed_face_is_found(published, refused):
    face(published, 12).unlink()
    assert {"no file missing", "counts"} <= refused()


@pytest.mark.parametrize("name", ["faces/000013.png", "faces/person.png"])
def test_an_added_face_is_found(published, refused, name):
    shutil.copy(face(published), published.folder / name)
    assert {"no file added", "counts"} <= refused()


@pytest.mark.parametrize(
    "name", ["linkage.json", ".hidden", "notes/secret.txt", "faces/certificate.json", "notes/certificate.sig"]
)
def test_any_added_file_is_found(published, refused, name):
    (published.folder / name).parent.mkdir(exist_ok=True)
    path = published.folder / name
    path.write_text("who became whom")
    if name.startswith("faces/"):  # as harmless to readers of pictures as possible
        path.write_bytes(face(published).read_bytes())
    assert "no file added" in refused()


def test_an_added_link_is_found(published, refused, people):
    (published.folder / "originals").symlink_to(people, target_is_directory=True)
    assert "no file added" in refused()


@pytest.mark.parametrize("target", ["missing", "/dev/null"])
def test_an_added_link_to_nowhere_is_found(published, refused, target):
    (published.folder / "broken").symlink_to(target)
    assert "no file added" in refused()


def test_a_changed_sheet_is_found(published, refused):
    (published.folder / "contact-sheet.png").write_bytes(face(published).read_bytes())
    assert refused() == {"no file changed", "pictures"}


def test_a_promise_raised_consistently_is_found(published, refused):
    smallest = min(Counter(p.read_bytes() for p in (published.folder / "faces").iterdir()).values())
    certificate = Certificate.from_json((published.folder / "certificate.json").read_bytes())
    method = certificate.method.model_copy(update={"params": {**certificate.method.params, "k": smallest + 1}})
    rewrite(published, promise=PromiseRecord.of(KAnonymity(smallest + 1)), method=method)
    assert {"promise, from the folder", "figures"} <= refused()


@pytest.mark.parametrize(
    "change",
    [
        {"bound": 0.01},
        {"bound": None},
        {"statement": "Nobody can be recognised, ever."},
        {"params": {"k": 50, "k_real": 50}},
        {"params": {"k": 3, "k_real": 0}},
        {"params": {"k": 3, "k_real": "three"}},
        {"params": {"k": "3"}},
        {"params": {"k": None}},
        {"params": {}},
        {"params": {"k": 3, "colour": "blue"}},
        {"model": "perfect secrecy"},
        {"not_promised": ()},
        {"scope": "everybody"},
    ],
    ids=str,
)
def test_a_promise_whose_words_and_numbers_differ_is_found(published, refused, change):
    promise = Certificate.from_json((published.folder / "certificate.json").read_bytes()).promise
    rewrite(published, promise=promise.model_copy(update=change))
    assert refused() == {"promise"}


@pytest.mark.parametrize("k_real", [-3, 0, 12, "three"])
def test_a_promise_of_more_or_fewer_people_than_can_be_is_no_promise(published, refused, k_real):
    promise = PromiseRecord.of(KAnonymity(3))
    rewrite(published, promise=promise.model_copy(update={"params": {"k": 3, "k_real": k_real}}))
    assert refused()


@pytest.mark.parametrize("change", [{"released": 11}, {"released": 13}])
def test_wrong_counts_are_found(published, refused, change):
    counts = Certificate.from_json((published.folder / "certificate.json").read_bytes()).counts
    rewrite(published, counts=counts.model_copy(update=change))
    assert refused() == {"counts"}


def test_a_wrong_digest_is_found(published, refused):
    rewrite(published, digest="0" * 64)
    assert refused() == {"digest"}


def test_a_face_taken_out_of_everything_is_found_by_its_group(published, refused):
    """Even when files, digest and counts are made to fit, somebody's group is too small."""
    copies = Counter(p.read_bytes() for p in (published.folder / "faces").iterdir())
    rarest = min(copies, key=copies.get)
    kept = [p.read_bytes() for p in sorted((published.folder / "faces").iterdir())]
    kept.remove(rarest)
    face(published, 12).unlink()
    hashes = {"contact-sheet.png": sha256((published.folder / "contact-sheet.png").read_bytes()).hexdigest()}
    for i, data in enumerate(kept, start=1):
        face(published, i).write_bytes(data)
        hashes[f"faces/{i:06d}.png"] = sha256(data).hexdigest()
    counts = Certificate.from_json((published.folder / "certificate.json").read_bytes()).counts
    fitted = counts.model_copy(update={"released": 11, "subjects_released": 11})
    rewrite(published, files=hashes, digest=release_digest(hashes), counts=fitted)
    assert "promise, from the folder" in refused()


def test_the_certificate_of_another_release_is_found(run, published, people, tmp_path, refused):
    run("release", people, "-o", tmp_path / "other", "-k", 4, code=0)
    shutil.copy(tmp_path / "other" / "certificate.json", published.folder)
    assert "no file changed" in refused()


def test_the_link_table_of_another_release_is_found(run, published, people, tmp_path, refused):
    run("release", people, "-o", tmp_path / "other", "-k", 4, "--link-table", tmp_path / "other.json", code=0)
    assert refused("--linkage", tmp_path / "other.json") == {"linkage"}


def swapped(published, *keys):
    """Exchange some values of two faces of different groups in the link table."""
    table = json.loads(published.linkage.read_bytes())
    first = table["faces"][0]
    second = next(f for f in table["faces"] if f["group"] != first["group"])
    for key in keys:
        first[key], second[key] = second[key], first[key]
    published.linkage.write_text(json.dumps(table))


def test_two_swapped_groups_are_found(published, refused):
    swapped(published, "group")
    assert refused("--linkage", published.linkage) == {"groups"}


def test_two_swapped_people_are_found_with_the_originals(published, refused, people):
    swapped(published, "subject", "sources")
    assert refused("--linkage", published.linkage, "--originals", people) == {"recomputed"}


def test_two_swapped_names_are_found_with_the_originals(published, refused, people):
    swapped(published, "subject")
    assert refused("--linkage", published.linkage, "--originals", people)


def test_one_person_behind_two_copies_is_found(published, refused):
    table = json.loads(published.linkage.read_bytes())
    first = table["faces"][0]
    mate = next(f for f in table["faces"][1:] if f["group"] == first["group"])
    mate["subject"] = first["subject"]
    published.linkage.write_text(json.dumps(table))
    assert refused("--linkage", published.linkage) == {"people behind each face"}


def test_a_link_table_with_a_line_missing_is_found(published, refused):
    table = json.loads(published.linkage.read_bytes())
    del table["faces"][4]
    published.linkage.write_text(json.dumps(table))
    assert refused("--linkage", published.linkage) == {"linkage"}


def test_other_originals_are_found(run, published, people, strangers, refused, tmp_path):
    assert refused("--linkage", published.linkage, "--originals", strangers) == {"recomputed"}
    shutil.copytree(people, tmp_path / "in")
    shutil.copy(tmp_path / "in" / "photo-Zk9-0001.png", tmp_path / "in" / "photo-Zk9-0002.png")
    assert refused("--linkage", published.linkage, "--originals", tmp_path / "in") == {"recomputed"}


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text + "\n",
        lambda text: text.replace(": ", ":  ", 1),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace('"originals": 12', '"originals": 13'),
        lambda text: text.replace('"warnings": []', '"warnings": ["none"]'),
        lambda text: json.dumps(json.loads(text)),
    ],
)
def test_any_edit_of_a_signed_certificate_is_found(published, refused, edit):
    path = published.folder / "certificate.json"
    text = path.read_text()
    path.write_bytes(edit(text).encode())
    assert path.read_bytes() != text.encode()
    assert "signature" in refused("--key", published.public_key)


def test_a_missing_signature_is_found(published, refused):
    (published.folder / "certificate.sig").unlink()
    assert refused("--key", published.public_key) == {"signature"}


@pytest.mark.parametrize("signature", [b"", b"AAAA", b"not base64!", b"\xff\xfe", b"A" * 88])
def test_a_damaged_signature_is_found(published, refused, signature):
    (published.folder / "certificate.sig").write_bytes(signature)
    assert refused("--key", published.public_key) == {"signature"}


def test_another_key_is_found(published, refused):
    assert refused("--key", published.other_key) == {"signature"}


@pytest.mark.parametrize("words", [("--key", "{0}/certificate.json"), ("--linkage", "{0}/certificate.json")])
def test_5_for_a_key_or_link_table_that_is_none(run, published, words):
    run("verify", published.folder, *(w.format(published.folder) for w in words), code=5)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "certificate.json").unlink(),
        lambda folder: (folder / "certificate.json").write_text("{}"),
        lambda folder: (folder / "certificate.json").write_text("no json"),
        lambda folder: (folder / "faces" / "000001.png").write_bytes(b"no picture"),
        lambda folder: shutil.rmtree(folder / "faces"),
        shutil.rmtree,
    ],
    ids=["no certificate", "empty certificate", "no json", "no picture", "no faces", "no folder"],
)
def test_5_for_what_is_no_release(run, published, spoil):
    spoil(published.folder)
    assert "published" in run("verify", published.folder, code=5).stderr


def test_verifying_changes_nothing(run, published, people, state):
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in published.folder.rglob("*")}
    run("verify", published.folder, "--linkage", published.linkage, "--originals", people, code=0)
    assert {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in published.folder.rglob("*")} == before
    assert not state.exists()
    assert os.environ["KSAME_STATE"] == str(state)
