"""The short form of :mod:`fuzzing`: seeded, so that every run tries the same broken files."""

import pytest

from fuzzing import READERS, fuzz


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("certificate", 25),
        ("linkage", 20),
        ("tracks", 60),
        ("labels", 40),
        ("manifest", 300),
        ("vault", 200),
        ("boxes", 60),
        ("options", 40),
    ],
)
def test_broken_files_give_a_clear_error(name, cases, tmp_path):
    ended = fuzz(name, tmp_path, seed=3, cases=cases)
    assert set(ended) <= {0, 2, 3, 4, 5}
    assert ended[5], "most broken files cannot be read"


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_many_broken_files_give_a_clear_error(name, tmp_path):
    """The same files on every machine; ``tests/fuzzing.py`` goes on for as long as one likes."""
    assert set(fuzz(name, tmp_path, seed=11, cases=600)) <= {0, 2, 3, 4, 5}
