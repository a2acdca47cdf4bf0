"""Damaged files: read, or refused with an error of ksame's own, and then nothing is written."""

import os

import av
import pytest
from tools.fuzz_media import fuzz, run_case, write_samples


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    av.logging.set_level(None)
    return write_samples(tmp_path_factory.mktemp("samples"))


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_damaged_files_end_in_an_error_or_a_result(first, samples, tmp_path, capfd):
    known = {"written", "InputError", "OutputError", "large", "long"}
    assert {run_case(samples, seed, tmp_path)[1] for seed in range(first, first + 25)} <= known


@pytest.mark.slow
def test_many_damaged_files(capfd):
    assert fuzz(float(os.environ.get("KSAME_FUZZ_MINUTES", "2")), first=1000) == 0, capfd.readouterr().out
