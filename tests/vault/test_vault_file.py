"""The file of a vault: nothing in it or in its log can be changed unnoticed, and no wrong key opens it."""

import json
import os
import random
import stat
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ksame.errors import InputError, KsameError, OutputError, UsageError
from ksame.vault import Identity, Recipients, Sealed, Vault, load_identity, new_identity, write_identity, write_vault
from ksame.vault.container import wrap
from ksame.vault.index import Index
from ksame.vault.log import log_of
from ksame.vault.table import open_everything

FILES = {"safe.mp4": "ab" * 32}


@pytest.fixture(scope="module")
def me():
    return new_identity()


FILMS = (b"a film" * 999, os.urandom(3000))


def make(path, identity, films=FILMS):
    """A vault of two people, who hold one film each; return their keys."""
    recipients = Recipients((identity.recipient,))
    keys = {f"P{i + 1}": new_identity() for i in range(len(films))}
    sealed = [wrap(key, name, recipients) for name, key in keys.items()]
    sealed += [
        Sealed.of("film", Recipients((key.recipient,)).seal(film))
        for key, film in zip(keys.values(), films, strict=True)
    ]
    write_vault(path, sealed, FILES, 1)
    return keys


@pytest.fixture
def vault(tmp_path, me):
    make(tmp_path / "case.age", me)
    return tmp_path / "case.age"


def test_one_key_opens_one_person_and_no_other(vault, me):
    found = Vault.read(vault)
    keys = found.keys(me)
    assert set(keys) == {"P1", "P2"}
    first, second = found.numbers("film")
    assert found.open(first, [keys["P1"]]) == b"a film" * 999
    with pytest.raises(InputError, match="other recipients"):
        found.open(second, [keys["P1"]])
    assert open_everything(found, me) == (2, 2)


def test_what_belongs_to_two_opens_with_both_keys_only(tmp_path, me):
    one, two = new_identity(), new_identity()
    nested = Recipients((two.recipient,)).seal(Recipients((one.recipient,)).seal(b"both"))
    write_vault(tmp_path / "v.age", [wrap(one, "P1", Recipients((me.recipient,))), Sealed.of("film", nested)], FILES, 1)
    found = Vault.read(tmp_path / "v.age")
    assert found.open(1, [two, one]) == b"both"
    for keys in ([one], [one, two]):
        with pytest.raises(InputError):
            found.open(1, keys)
    assert b"both" not in found.open(1, [two])


def test_secrets_are_private_and_never_shown(vault, tmp_path, me):
    write_identity(tmp_path / "key.txt", me)
    for path in (vault, tmp_path / "key.txt"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_identity(tmp_path / "key.txt") == me
    assert me.secret not in repr(me)
    assert me.secret.encode() not in vault.read_bytes()
    with pytest.raises(OutputError, match="never overwritten"):
        write_identity(tmp_path / "key.txt", new_identity())
    with pytest.raises(UsageError, match="a secret key") as error:
        Recipients((me.secret,))
    assert me.secret not in str(error.value)


def test_without_a_key_no_name_is_seen(vault):
    index = vault.read_bytes().split(b"\n")[1]
    assert b"P1" not in index
    assert set(json.loads(index)) == {"schema", "version", "release", "files", "recipients", "entries"}


def test_every_flipped_byte_is_noticed(vault, me):
    found = Vault.read(vault)
    for _ in range(3):
        found = found.noted(action="open", people=("P1",), key=me.recipient, note="warrant 12")
    files = {path: path.read_bytes() for path in (vault, log_of(vault))}
    rng = random.Random(1)  # noqa: S311 -- of a test
    for trial in range(500):
        path = rng.choice(list(files))
        data = bytearray(files[path])
        place = rng.randrange(len(data))
        data[place] ^= rng.randrange(1, 256)
        path.write_bytes(data)
        try:
            Vault.read(vault)
        except InputError:
            pass
        else:
            raise AssertionError(f"trial {trial}: byte {place} of {path.name} was changed unnoticed")
        path.write_bytes(files[path])
    Vault.read(vault)


def test_a_vault_cut_off_anywhere_is_told(tmp_path, me):
    path = tmp_path / "long.age"
    make(path, me, (os.urandom(400_000), os.urandom(300_000)))
    data = path.read_bytes()
    for end in [*range(0, len(data), 1 << 16), len(data) - 1, 13, 14, 500]:
        path.write_bytes(data[:end])
        with pytest.raises(InputError, match=r"long\.age: .*(cut off|not a vault|index was changed)"):
            Vault.read(path)
    path.write_bytes(data + b"\n")
    with pytest.raises(InputError, match="too many"):
        Vault.read(path)


@given(st.binary(max_size=2000))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_is_read_or_refused_with_words(tmp_path, data):
    path = tmp_path / "any"
    path.write_bytes(data)
    for read in (Vault.read, load_identity):
        with pytest.raises(InputError, match="any: "):
            read(path)
    path.write_bytes(b"ksame-vault 1\n" + data)
    with pytest.raises(InputError, match="any: "):
        Vault.read(path)


@given(st.text(max_size=100))
@settings(max_examples=200, deadline=None)
def test_random_strings_are_no_keys(text):
    for key in (text, f"age1{text}", f"AGE-SECRET-KEY-1{text}"):
        with pytest.raises(UsageError, match="public key"):
            Recipients((key,))
        with pytest.raises(InputError, match="Not a secret key"):
            Identity(key)


def test_recipients_must_be_there_and_differ(me):
    with pytest.raises(UsageError, match="needs a --recipient"):
        Recipients(())
    with pytest.raises(UsageError, match="twice"):
        Recipients((me.recipient, me.recipient))


def test_a_wrong_key_opens_nothing(vault):
    with pytest.raises(InputError, match="other recipients than this key. Nothing was opened"):
        Vault.read(vault).keys(new_identity())


def test_rekeying_changes_who_opens_it_and_nothing_else(vault, tmp_path, me):
    before, new = Vault.read(vault), [new_identity(), new_identity()]
    before = before.noted(action="rekey", people=(), key=me.recipient)
    before.rewrapped(me, Recipients(tuple(each.recipient for each in new)), vault, None)
    after = Vault.read(vault)
    assert after.root == before.root
    assert after.index.recipients == 2
    assert len(after.log.openings) == 1, "the log goes on"
    assert [after.sealed(n) for n in after.numbers("film")] == [before_film(before, n) for n in after.numbers("film")]
    for each in new:
        assert open_everything(after, each) == (2, 2)
    with pytest.raises(InputError, match="other recipients"):
        after.keys(me)


def before_film(vault, number):
    assert vault.index.entries[number].kind == "film"
    return Vault.read(vault.path).sealed(number)


def test_a_copy_with_one_person_has_nothing_of_others_and_the_same_root(vault, tmp_path, me):
    found, court = Vault.read(vault), new_identity()
    key = next(n for n in found.numbers("key") if found.owner(n, me) == "P1")
    film = found.numbers("film")[0]
    found.rewrapped(me, Recipients((court.recipient,)), tmp_path / "p1.age", [key, film])
    part = Vault.read(tmp_path / "p1.age")
    assert part.root == found.root
    assert set(part.keys(court)) == {"P1"}
    assert part.numbers("film") == [film]
    assert found.sealed(found.numbers("film")[1]) not in part.path.read_bytes()


def test_an_exchanged_entry_changes_the_root(vault, tmp_path, me):
    """Whoever writes all hashes anew makes another vault: the certificate names the root of the right one."""
    found = Vault.read(vault)
    forged = [Sealed(found.index.entries[n], found.sealed(n)) for n in range(len(found.index.entries))]
    forged[-1] = Sealed.of("film", Recipients((me.recipient,)).seal(b"somebody else"))
    assert write_vault(tmp_path / "forged.age", forged, FILES, 1) != found.root
    rewrapped = [wrap(new_identity(), "P1", Recipients((me.recipient,))), *forged[1:-1], forged[-1]]
    assert write_vault(tmp_path / "again.age", rewrapped, FILES, 1) != found.root


def test_a_log_cut_off_or_exchanged_is_noticed(vault, tmp_path, me):
    found = Vault.read(vault)
    for name in ("P1", "P2"):
        found = found.noted(action="open", people=(name,), key=me.recipient)
    log = log_of(vault)
    lines = log.read_bytes().splitlines(keepends=True)
    other = tmp_path / "other.age"
    make(other, me)
    foreign = Vault.read(other)
    for _ in range(2):
        foreign = foreign.noted(action="open", people=("P1",), key=me.recipient)
    for wrong in (b"", lines[0], b"".join(lines[::-1]), b"".join(lines)[:-1], log_of(other).read_bytes(), b"{}\n"):
        log.write_bytes(wrong)
        with pytest.raises(InputError, match="log"):
            Vault.read(vault)
    log.unlink()
    with pytest.raises(InputError, match="noted 2 openings"):
        Vault.read(vault)
    log.write_bytes(b"".join(lines))
    assert [opening.people for opening in Vault.read(vault).log.openings] == [("P1",), ("P2",)]


def test_an_opening_that_was_interrupted_does_not_lock_the_vault(vault, me):
    found = Vault.read(vault)
    found.log.append(action="open", people=("P1",), key=me.recipient)  # and no word of it in the vault
    found = Vault.read(vault)
    assert len(found.log.openings) == 1
    found.noted(action="open", people=("P2",), key=me.recipient)
    assert len(Vault.read(vault).log.openings) == 2
    whole = log_of(vault).read_bytes()
    log_of(vault).write_bytes(whole + b'{"number":3,"ti')  # the machine stopped in the middle of a line
    with pytest.raises(InputError, match="remove that line"):
        Vault.read(vault)
    log_of(vault).write_bytes(whole)
    found.log.append(action="open", people=("P1",), key=me.recipient)
    with pytest.raises(InputError, match="log"):
        Vault.read(vault)


def test_a_key_that_somebody_else_sealed_is_told_of(tmp_path, me):
    """age does not tell who sealed a file: whoever knows the public key can make such a vault."""
    from ksame.vault.container import _wrapped

    for file in (b"# opens: P1\n" + me.secret.encode(), b"nothing at all", b'# opens: "P1"\n'):
        path = tmp_path / f"{sha256(file).hexdigest()[:8]}.age"
        write_vault(path, [_wrapped(file, Recipients((me.recipient,)))], FILES, 1)
        with pytest.raises(InputError, match=path.name):
            Vault.read(path).keys(me)


def test_two_who_open_at_once_are_both_logged(vault, me):
    one, other = Vault.read(vault), Vault.read(vault)
    with ThreadPoolExecutor(2) as pool:
        done = [
            pool.submit(each.noted, action="open", people=(name,), key=me.recipient)
            for _ in range(10)
            for name, each in (("P1", one), ("P2", other))
        ]
        assert all(future.result() for future in done)
    assert len(Vault.read(vault).log.openings) == 20


def test_what_cannot_be_logged_is_not_opened(vault, me, monkeypatch):
    found = Vault.read(vault)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ksame.vault.log.os.open", full)
    with pytest.raises(OutputError, match="nothing was opened"):
        found.noted(action="open", people=("P1",), key=me.recipient)


def test_the_index_binds_to_the_release(vault, tmp_path, me):
    index = Vault.read(vault).index
    with pytest.raises(KsameError, match="list of released files"):
        write_other_files(vault, index)


def write_other_files(vault, index):
    from ksame.vault import container

    line = container._index_line(Index(**{**index.model_dump(by_alias=True), "files": {"x": "cd" * 32}}))
    head = b"ksame-vault 1\n" + line
    vault.write_bytes(head + sha256(head).hexdigest().encode() + b"\n" + vault.read_bytes().split(b"\n", 3)[3])
    Vault.read(vault)
