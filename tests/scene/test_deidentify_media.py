"""The public function: files in, a release out; nothing that the command line does is missing."""

from importlib.resources import files

import numpy as np
import pytest
from PIL import Image

import ksame
from ksame.errors import ExitCode, PrivacyWarning, UsageError
from scene.walkers import background


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    for name in ("f99.jpg", "m12.jpg"):
        (folder / name).write_bytes((files("ksame.data") / "samples" / name).read_bytes())
    return folder


def test_a_folder_becomes_a_release_that_verifies(people, tmp_path):
    seen = []
    release = ksame.deidentify_media(
        people,
        tmp_path / "out",
        config=ksame.JobConfig(method="fill"),
        seed=1,
        on_progress=lambda what, done, total: seen.append((what, done, total)),
    )
    assert {file.source.name for file in release.files} == {"f99.jpg", "m12.jpg"}
    assert release.certificate.counts.masked == 2
    assert release.exit_code is ExitCode.DONE
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "000001.jpg",
        "000002.jpg",
        "certificate.json",
    ]
    assert not list(tmp_path.glob(".*")), "the work in progress is gone"
    assert ("writing", 2, 2) in seen
    for file in release.files:
        before, after = (np.asarray(Image.open(path), dtype=int) for path in (file.source, file.output))
        assert np.abs(before - after).max() > 40


def test_people_are_chosen_by_name(people, tmp_path):
    wanted = {"P1": "mask", "others": "keep"}
    with pytest.warns(PrivacyWarning, match="recognised"):
        release = ksame.deidentify_media(people, tmp_path / "out", people={"P2": "keep", "P1": "mask"})
    counts = release.certificate.counts
    assert (counts.masked, counts.kept, counts.replaced) == (1, 1, 0)
    with pytest.warns(PrivacyWarning, match="recognised"):
        release = ksame.deidentify_media(people, tmp_path / "other", people={**wanted, "P2": "replace"})
    assert release.certificate.counts.replaced + release.certificate.counts.masked_instead == 1
    with pytest.raises(UsageError, match="P1: a person can be one of keep, mask, replace"):
        ksame.deidentify_media(people, tmp_path / "third", people={"P1": "blur"})


def test_a_file_without_a_face_is_told_of(tmp_path):
    Image.fromarray(background((200, 150))).save(tmp_path / "wall.png")
    release = ksame.deidentify_media(tmp_path / "wall.png", tmp_path / "safe.png")
    assert release.exit_code is ExitCode.WITHHELD
    assert release.certificate.counts.without_faces == 1
    assert (tmp_path / "safe.at-risk.csv").is_file()


def test_a_photograph_is_replaced_and_its_release_keeps_secrets(people, tmp_path):
    release = ksame.deidentify_media(people / "m12.jpg", tmp_path / "safe.jpg", seed=918273645)
    assert release.certificate.counts.replaced == 1
    assert release.paths.certificate == tmp_path / "safe.certificate.json"
    assert release.result.seed == 918273645
    assert "918273645" not in repr(release), "the seed is a secret"
