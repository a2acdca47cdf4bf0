"""One line adds a method, a cover or a recogniser, and everything else knows it: tests/toys.py adds one of each."""

import json
import subprocess
import sys

import jsonschema
import numpy as np
import pytest
from PIL import Image

import ksame
import toys
from ksame.errors import UsageError
from ksame.faces.faceset import quantise
from ksame.heads import COVERS
from ksame.methods import Furthest, Pixelate
from ksame.models import RECOGNISERS
from ksame.parameters import specs
from ksame.recipes import METHODS, for_scenes
from ksame.registry import Registry


@pytest.fixture
def added():
    toys.add()
    yield
    toys.remove()


@pytest.fixture(scope="module")
def portrait(tmp_path_factory):
    """Somebody who does not exist."""
    path = tmp_path_factory.mktemp("portrait") / "portrait.png"
    Image.fromarray(quantise(ksame.synthetic(1, seed=8, size=(280, 220)).images)[0]).save(path)
    return path


def pixels(path):
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


def test_a_new_method_has_options_help_a_certificate_and_a_schema(added, run, people, tmp_path):
    def toy(*words):  # in a process of its own: options are made when the command line is loaded
        call = [sys.executable, toys.__file__, *map(str, words)]
        return subprocess.run(call, capture_output=True, text=True, check=True).stdout

    shown = " ".join(toy("release", "--help").replace("│", " ").split())
    assert "--wide" in shown
    assert "dusk: columns at the left that go dark" in shown
    told = json.loads(
        toy("release", people, "-o", tmp_path / "out", "-m", "dusk", *("--wide", 5, "--level", 0.25, "--json"))
    )
    params = told["certificate"]["method"]["params"]
    assert params == {"light": 0.25, "wide": 5}
    run("verify", tmp_path / "out", code=0)
    (listed,) = (entry for entry in json.loads(run("methods", "--json", code=0).stdout) if entry["name"] == "dusk")
    assert listed["params"]["properties"]["wide"]["maximum"] == 20
    assert listed["scenes"]
    jsonschema.validate(params, listed["params"])


def test_a_new_mask_works_on_a_photograph_and_grows_with_the_face(added, run, portrait, tmp_path):
    run("deidentify", portrait, "-o", tmp_path / "safe.png", "-m", "dusk", "--level", 0.25, code=0)
    certificate = json.loads((tmp_path / "safe.certificate.json").read_text())
    assert (certificate["method"]["name"], certificate["method"]["level"], certificate["k"]) == ("dusk", 0.25, None)
    before, after = pixels(portrait).astype(float), pixels(tmp_path / "safe.png").astype(float)
    middle = np.s_[130:150, 100:120]
    assert after[middle].mean() == pytest.approx(0.25 * before[middle].mean(), abs=1.0)
    run("verify", tmp_path / "safe.png", code=0)
    message = " ".join(
        run("deidentify", portrait, "-o", tmp_path / "x.png", "-m", "dusk", "--level", 3, code=2).stderr.split()
    )
    assert "The 'light' parameter of dusk must be a number in [0, 1]. Got 3.0." in message


def test_a_new_cover_is_invented_and_certified(added, run, portrait, tmp_path):
    changed = {}
    for cover in ("face", "bonnet"):
        result = run("deidentify", portrait, "-o", tmp_path / f"{cover}.png", "--cover", cover, "-k", 2, "--json")
        told = json.loads(result.stdout)["certificate"]
        assert told["method"]["cover"] == cover
        assert told["counts"]["replaced"] == 1
        gap = np.abs(pixels(portrait).astype(int) - pixels(tmp_path / f"{cover}.png")).max(axis=2)
        changed[cover] = (gap > 0).mean()
    assert 1.1 < changed["bonnet"] / changed["face"] < 1.8  # about 1.2 squared


def test_a_new_recogniser_attacks(added, tmp_path):
    faces = ksame.synthetic(6, size=(112, 88), seed=3)
    names = [f"p{i}.png" for i in range(6)]
    for folder, images in (("before", faces.images), ("after", ksame.recipe("blur").method.apply(faces.images, None))):
        (tmp_path / folder).mkdir()
        for name, image in zip(names, quantise(images), strict=True):
            Image.fromarray(image).save(tmp_path / folder / name)
    result = ksame.audit(
        tmp_path / "before", tmp_path / "after", attackers=["glance"], scenarios=["naive"], view="faces"
    )
    (attack,) = result.attacks
    assert (attack.recogniser, attack.rank1) == ("glance", 1.0)  # a blur keeps mean colours


def test_a_name_is_taken_once_and_a_wrong_one_is_told_the_nearest():
    for registry in (METHODS, COVERS, RECOGNISERS):
        first = next(iter(registry.values()))
        with pytest.raises(UsageError, match=f"A {registry.kind} called '{first.name}' exists already"):
            registry.add(first)
    with pytest.raises(UsageError, match="Unknown method 'k-same-pixle'. Did you mean 'k-same-pixel'?"):
        ksame.recipe("k-same-pixle")
    with pytest.raises(UsageError, match="Unknown cover 'had'. Did you mean 'head'?"):
        COVERS["had"]
    assert "had" not in COVERS
    assert isinstance(COVERS, Registry)


@pytest.mark.parametrize("name", ["k-diff-furthest", "k-same-pixel", "eigen-reduce"])
def test_scenes_have_only_what_means_something_there(name):
    with pytest.raises(UsageError, match=f"'{name}' does not work here.* Choose one of: someone-else, k-same-m"):
        for_scenes(name)


@pytest.mark.parametrize("name", ["someone-else", "fill"])
def test_face_sets_have_only_what_means_something_there(name):
    with pytest.raises(UsageError, match=f"'{name}' does not work here.* Choose one of: k-same-pixel"):
        ksame.recipe(name)


@pytest.mark.parametrize("entry", METHODS.values(), ids=list(METHODS))
def test_every_parameter_says_what_it_is(entry):
    for spec in entry.parameters.values():
        assert spec.help
    if entry.for_sets:
        params = ksame.recipe(entry.name).params()
        assert set(params) <= set(entry.parameters)
        jsonschema.validate(params, entry.schema())


def test_what_a_name_stands_for_cannot_be_chosen():
    assert "release" in specs(Furthest)
    with pytest.raises(UsageError, match="k-diff-furthest takes no 'release'. It takes: k, condition, repair."):
        ksame.recipe("k-diff-furthest", release="centroid")
    assert "surrogate" not in METHODS["k-same-pixel"].parameters
    assert specs(Pixelate)["p"].level


def test_the_help_of_audits_lists_every_attacker(run):
    from ksame.app.audit import PIXEL_ATTACKERS
    from ksame.audit.attackers import known

    assert (*PIXEL_ATTACKERS, *RECOGNISERS) == tuple(known())


def test_methods_lists_covers_and_recognisers_with_their_licence(run):
    shown = " ".join(run("methods", code=0).stdout.split())
    for word in (*COVERS, *RECOGNISERS, "Apache-2.0"):
        assert word in shown
