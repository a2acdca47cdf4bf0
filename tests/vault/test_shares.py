"""Shares of a key: any m make it, fewer tell nothing, and wrong ones are noticed."""

import random
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksame.errors import InputError, UsageError
from ksame.vault import join, new_identity, read_share, split
from ksame.vault.shares import Share, _over, _times

ME = new_identity()


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_any_m_of_n_shares_make_the_key(data):
    total = data.draw(st.integers(2, 12))
    needed = data.draw(st.integers(2, total))
    shares = split(ME, needed, total)
    chosen = data.draw(st.permutations(shares))[: data.draw(st.integers(needed, total))]
    assert join(chosen) == ME
    with pytest.raises(UsageError, match="that are needed"):
        join(chosen[: needed - 1])


def test_fewer_shares_fit_every_key():
    """With one share of two, for every byte of the key there is a second share that makes it."""
    share, _ = split(ME, 2, 2)
    other = new_identity()
    wanted = [
        (_times(2, first) ^ secret, secret) for first, secret in zip(share.values, other.secret.encode(), strict=True)
    ]
    # f(x) = s + a x with f(1) known: a = f(1) + s, so that f(2) = s + 2 (f(1) + s)
    second = bytes(secret ^ _times(2, first ^ secret) for first, (_, secret) in zip(share.values, wanted, strict=True))
    forged = Share(2, 2, 2, other.recipient, second)
    assert join([Share(2, 2, 1, other.recipient, share.values), forged]) == other


@given(st.integers(0, 255), st.integers(1, 255), st.integers(0, 255))
def test_the_field_is_one(a, b, c):
    assert _times(_over(a, b), b) == a
    assert _times(a, b ^ c) == _times(a, b) ^ _times(a, c)
    assert _times(a, 1) == a


def test_shares_that_do_not_belong_together_are_noticed():
    mine, again, others = split(ME, 2, 3), split(ME, 2, 3), split(new_identity(), 2, 3)
    with pytest.raises(InputError, match="do not make the key"):
        join([mine[0], again[1]])
    with pytest.raises(InputError, match="different keys"):
        join([mine[0], others[1]])
    with pytest.raises(UsageError, match="twice"):
        join([mine[0], mine[0]])
    with pytest.raises(UsageError, match="Name the shares"):
        join([])


def test_files_of_shares_are_private_and_every_changed_letter_is_noticed(tmp_path):
    shares = split(ME, 2, 3)
    for share in shares:
        share.write(tmp_path / f"{share.number}.txt")
        assert stat.S_IMODE((tmp_path / f"{share.number}.txt").stat().st_mode) == 0o600
        assert share.values.hex() not in repr(share)
    assert join([read_share(tmp_path / f"{i}.txt") for i in (3, 1)]) == ME
    comments, line = (tmp_path / "1.txt").read_text().rstrip("\n").rsplit("\n", 1)
    rng = random.Random(2)  # noqa: S311 -- of a test
    for _ in range(100):
        place = rng.randrange(len(line))
        changed = line[:place] + rng.choice("0123456789abcdefz ") + line[place + 1 :]
        (tmp_path / "changed.txt").write_text(f"{comments}\n{changed}\n")
        if changed != line:
            with pytest.raises(InputError, match=r"changed\.txt: "):
                read_share(tmp_path / "changed.txt")


@pytest.mark.parametrize(("needed", "total"), [(1, 3), (4, 3), (2, 256), (0, 0)])
def test_numbers_that_make_no_sense(needed, total):
    with pytest.raises(UsageError, match="parameter of split"):
        split(ME, needed, total)
