"""The real age opens what we seal, and we open what it seals."""

import shutil
import subprocess

import pytest

from ksame.vault import Recipients, Sealed, Vault, load_identity, new_identity, write_identity, write_vault
from ksame.vault.container import wrap

AGE, KEYGEN = shutil.which("age"), shutil.which("age-keygen")
pytestmark = pytest.mark.skipif(AGE is None or KEYGEN is None, reason="the program age is not installed")


def age(*arguments, data=b""):
    return subprocess.run([AGE, *arguments], input=data, capture_output=True, check=True).stdout


def test_age_opens_a_person_of_a_vault_step_by_step(tmp_path):
    me, colleague, person = new_identity(), new_identity(), new_identity()
    film = bytes(range(256)) * 999
    for name, identity in (("me", me), ("colleague", colleague)):
        write_identity(tmp_path / f"{name}.txt", identity)
    sealed = [
        wrap(person, "P3", Recipients((me.recipient, colleague.recipient))),
        Sealed.of("film", Recipients((person.recipient,)).seal(film)),
    ]
    write_vault(tmp_path / "case.age", sealed, {"safe.mp4": "ab" * 32}, 2)
    vault = Vault.read(tmp_path / "case.age")
    for name in ("me", "colleague"):
        key = age("-d", "-i", tmp_path / f"{name}.txt", data=vault.sealed(0))
        assert b'# opens: "P3"\n' in key
        (tmp_path / "p3.txt").write_bytes(key)
        assert age("-d", "-i", tmp_path / "p3.txt", data=vault.sealed(1)) == film


def test_keys_of_age_open_what_age_sealed(tmp_path):
    subprocess.run([KEYGEN, "-o", tmp_path / "key.txt"], capture_output=True, check=True)
    identity = load_identity(tmp_path / "key.txt")
    sealed = age("-r", identity.recipient, data=b"a word" * 99999)
    assert identity.open(sealed) == b"a word" * 99999
    assert age("-d", "-i", tmp_path / "key.txt", data=Recipients((identity.recipient,)).seal(b"")) == b""


def test_keys_of_ours_are_keys_of_age(tmp_path):
    identity = new_identity()
    write_identity(tmp_path / "key.txt", identity)
    said = subprocess.run([KEYGEN, "-y", tmp_path / "key.txt"], capture_output=True, check=True).stdout
    assert said.decode().strip() == identity.recipient
