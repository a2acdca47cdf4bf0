"""No certificate holds a number that fits one face, or one pair of faces, only."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ksame
from drawn import drawn_faces
from ksame.privacy.rounding import rough, rough_down, rough_up
from ksame.recipes import METHODS

CHOSEN = {"noise": {"m": 100}, "noise-bw": {"m": 100}}
NUMBER = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+")


def released(request, name):
    params = {"k": 3} if "k" in METHODS[name].parameters else CHOSEN.get(name, {})
    faces = request.getfixturevalue("meshed" if name == "k-same-m" else "faces")
    return ksame.deidentify(faces, ksame.recipe(name, **params), seed=3)[0].certificate


def floats(record, where=""):
    """Every fraction in a certificate, those inside words too, with its place."""
    if isinstance(record, dict):
        for key, value in record.items():
            yield from floats(value, f"{where}.{key}")
    elif isinstance(record, (list, tuple)):
        for value in record:
            yield from floats(value, where)
    elif isinstance(record, float):
        yield where, record
    elif isinstance(record, str) and not where.startswith((".files", ".digest", ".software")):
        yield from ((where, float(found)) for found in NUMBER.findall(record))


@pytest.mark.filterwarnings("ignore::ksame.errors.KsameWarning")
@pytest.mark.parametrize("name", sorted(name for name, entry in METHODS.items() if entry.for_sets))
def test_every_number_has_two_digits_at_most(request, name):
    certificate = released(request, name)
    record = json.loads(certificate.to_json())
    asked = {value for _, value in floats(record.pop("method"))}
    bound = record["promise"].pop("bound")
    assert bound is None or bound == 0 or bound == 1 / round(1 / bound), "a function of k alone"
    for where, value in floats(record):
        assert value == rough(value) or value in asked, where


@pytest.mark.filterwarnings("ignore::ksame.errors.KsameWarning")
@pytest.mark.parametrize("name", sorted(name for name, entry in METHODS.items() if entry.for_sets))
def test_the_method_record_holds_what_was_asked_for_and_no_measurement(request, name):
    record = released(request, name).method
    other = drawn_faces(25, seed=77, width=24, height=32)
    params = {"k": 3} if "k" in METHODS[name].parameters else CHOSEN.get(name, {})
    if name != "k-same-m":
        again = ksame.deidentify(other, ksame.recipe(name, **params), seed=3)[0].certificate.method
        assert list(floats(again.model_dump())) == list(floats(record.model_dump()))


@pytest.mark.parametrize("name", ["epsilon-map", "epsilon-k-map"])
def test_the_scale_of_a_map_names_no_pair(faces, name):
    """It was a quarter of the distance of one pair, to sixteen digits."""
    certificate = ksame.deidentify(faces, ksame.recipe(name), seed=3)[0].certificate
    sigma = certificate.promise.params["sigma"]
    codes = faces.images.reshape(len(faces), -1).astype(float)
    pairs = [np.linalg.norm(codes[i] - codes[j]) for i in range(len(faces)) for j in range(i)]
    exactly = [d for d in pairs if abs(d / 4 - sigma) < 1e-9 * sigma]
    fitting = [d for d in pairs if rough(d / 4) == sigma]
    assert not exactly
    assert len(fitting) >= 3


@given(st.floats(-1e9, 1e9, allow_nan=False))
def test_bounds_stay_bounds(value):
    assert rough_down(value) <= value <= rough_up(value)
    for near in (rough(value), rough_down(value), rough_up(value)):
        assert near == rough(near)
        assert abs(near - value) <= 0.1 * abs(value) + 1e-300
