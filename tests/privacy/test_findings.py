"""What checks find, by hand."""

import os

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ksame.errors import InputError
from ksame.files import sha256_of
from ksame.privacy.certificate import release_digest
from ksame.privacy.findings import (
    Finding,
    agree,
    check,
    check_digest,
    check_files,
    check_signature,
    conclusion,
    contents,
    differences,
    passed,
)
from ksame.privacy.signing import sign

GOOD, BAD, OPEN = Finding("a", True, ""), Finding("b", False, ""), Finding("c", None, "")


def test_what_could_not_be_judged_is_not_wrong():
    assert passed([GOOD, OPEN])
    assert not passed([GOOD, OPEN, BAD])


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ([GOOD, BAD, BAD], "not as certified: 2 of 3 checks failed"),
        ([Finding("signature", True, ""), GOOD], "consistent, and signed with the key that was given"),
        (
            [GOOD, Finding("signature", None, "not checked: there is one")],
            "consistent, but its signature was not checked: anyone could have written it",
        ),
        ([Finding("signature", None, "unsigned")], "consistent, but unsigned: anyone could have written it"),
        ([GOOD], "consistent, but unsigned: anyone could have written it"),
    ],
)
def test_conclusions(findings, words):
    assert conclusion(findings) == words


def test_a_check_tells_the_first_three():
    assert check("files", [], "all there") == Finding("files", True, "all there")
    assert check("files", ["x", "y", "z"], "all there") == Finding("files", False, "x; y; z")
    assert check("files", ["x", "y", "z", "u", "v"], "") == Finding("files", False, "x; y; z; and 2 more")


@pytest.mark.parametrize(
    ("stated", "actual", "same"),
    [
        (0.12, 0.1234, True),
        (0.13, 0.1234, True),
        (0.1335, 0.1234, False),
        (0.11, 0.1234, False),
        (1200, 1234.0, True),
        (1300, 1234.0, True),
        (1400, 1234.0, False),
        (1200, 1234, False),
        (1233, 1234, False),
        (1234.0, 1234, True),
        (12, 12.4, True),
        (12, 13, False),
        (99, 100, False),
        (101, 100, False),
        (10**400, 1e308, False),
        (0.0, 0, True),
        (1e-9, 0.0, False),
        (0.12, float("nan"), False),
        (0.12, float("inf"), False),
        (1, 10**400, False),
        (True, 1, False),
        (1, True, False),
        ("1", 1, False),
        ("a", "a", True),
        (None, None, True),
        ([1], (1,), False),
        (-0.12, -0.1234, True),
        (0.12, -0.1234, False),
    ],
)
def test_rounded_numbers_agree_and_nothing_else(stated, actual, same):
    assert agree(stated, actual) is same


def test_differences_say_where():
    stated = {"counts": {"faces": 9, "people": 3}, "loss": 0.12, "more": 1}
    actual = {"counts": {"faces": 8, "people": 3}, "loss": 0.1234}
    assert differences(stated, actual) == ["counts.faces: 9 certified, 8 found", "more: 1 certified, nothing found"]
    assert differences({"a": "x" * 60}, {"a": "y" * 61}) == [f"a: {'x' * 60} certified, {'y' * 60}... found"]
    assert differences({}, {"a": 1}, "top") == ["top.a: nothing certified, 1 found"]


def test_files_missing_added_and_changed():
    certified = {"faces/1.png": "1", "faces/2.png": "2", "faces/3.png": "3", "sheet.png": "4"}
    there = {"faces": "a folder", "faces/1.png": "1", "faces/2.png": "x", "faces/3.png": "a link", "empty": "a folder"}
    missing, added, changed = check_files(certified, there)
    assert missing == Finding("no file missing", False, "sheet.png")
    assert added == Finding("no file added", False, "empty (a folder)")
    assert changed == Finding("no file changed", False, "faces/2.png, faces/3.png (a link)")
    assert {f.detail for f in check_files({"a": "1"}, {"a": "1"})} == {"1 file as certified"}
    assert all(f.passed for f in check_files({"a": "1"}, {"a": "1"}))
    assert not check_files({"a": "a link"}, {"a": "a link"})[2].passed, "nothing but a hash certifies a file"
    many = check_files({f"{i}": "" for i in range(7)}, {})[0]
    assert many.detail == "0, 1, 2, 3, 4 and 2 more"
    assert check_files({f"{i}": "" for i in range(5)}, {})[0].detail == "0, 1, 2, 3, 4"
    assert check_files({"a/b": "1"}, {"a/b": "1", "a": "x"})[1].detail == "a", "a file where a folder should be"


def test_the_digest_is_of_names_and_hashes():
    files = {"a": "1", "b": "2"}
    good = check_digest(files, release_digest(files))
    assert good == Finding("digest", True, "matches the list of files")
    assert check_digest({"a": "2", "b": "1"}, release_digest(files)) == Finding(
        "digest", False, "does not match the list of files"
    )


def test_contents_reads_files_and_names_the_rest(tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "file").write_bytes(b"1")
    (tmp_path / "plain").write_bytes(b"2")
    (tmp_path / "link").symlink_to("plain")
    os.mkfifo(tmp_path / "pipe")
    assert contents(tmp_path) == {
        "deep": "a folder",
        "deep/er": "a folder",
        "deep/file": sha256_of(tmp_path / "deep" / "file"),
        "plain": sha256_of(tmp_path / "plain"),
        "link": "a link",
        "pipe": "not a plain file",
    }
    assert set(contents(tmp_path, ["plain", "deep", "gone"])) == {"plain", "deep", "deep/er", "deep/file"}
    with pytest.raises(InputError, match=r"gone: cannot be read \(No such file or directory\)\.$"):
        contents(tmp_path / "gone")


def test_signatures(tmp_path):
    key, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    certificate, signature = tmp_path / "certificate.json", tmp_path / "certificate.sig"
    certificate.write_bytes(b"all is well")

    def judged(public) -> Finding:
        return check_signature(certificate, certificate.read_bytes(), public)

    unsigned = Finding("signature", None, "unsigned: a forgery cannot be told from the original")
    assert judged(None) == unsigned
    assert judged(key.public_key()) == Finding("signature", False, "a key was given, but the certificate is not signed")
    signature.write_bytes(sign(b"all is well", key))
    assert signature.read_bytes().endswith(b"\n")
    assert judged(None) == Finding("signature", None, "not checked: there is one, give the publisher's key with --key")
    assert judged(key.public_key()) == Finding("signature", True, "made with this key")
    wrong = Finding("signature", False, "not made with this key for this certificate")
    assert judged(other.public_key()) == wrong
    for broken in (b"", b"no base64!", b"QUJD\n", sign(b"all is bad", key)):
        signature.write_bytes(broken)
        assert judged(key.public_key()) == wrong
    signature.unlink()
    signature.symlink_to(certificate)
    linked = Finding("signature", False, "the certificate or its signature is a link, which may change at any time")
    assert judged(None) == judged(key.public_key()) == linked
    signature.unlink()
    certificate.rename(tmp_path / "real")
    certificate.symlink_to("real")
    assert judged(None) == linked
