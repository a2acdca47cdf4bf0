"""Outputs of ``ksame deidentify``: their certificate is read, their pairs found, and faces judged, not backgrounds."""

import json
import shutil

import numpy as np
import pytest
from PIL import Image

from ksame.audit.crops import _guess, choose_cropper
from ksame.audit.judging import SAME_PHOTOGRAPH, JudgedAttack, conclude
from ksame.audit.pairing import Pairing, pair_images
from ksame.audit.result import AttackRecord
from ksame.audit.scenes import promise_of
from ksame.errors import InputError, UsageError
from ksame.scene.certificate import SceneCertificate
from ksame.scene.linkage import SceneLinkage, read_linkage
from scene_release import write_scene_release


@pytest.fixture
def scenes(tmp_path):
    """Originals, outputs and link table of two photographs."""
    out = write_scene_release(tmp_path)
    originals = tmp_path / "in"
    originals.mkdir()
    table = json.loads((tmp_path / "link.json").read_bytes())
    for person in table["people"]:
        for place in person["places"]:
            place["source"] = str(originals / f"photo {place['output'][5]}.png")
            Image.fromarray(np.full((8, 8, 3), 50, np.uint8)).save(place["source"])
    (tmp_path / "link.json").write_text(json.dumps(table))
    return originals, out, tmp_path / "link.json"


def test_the_certificate_is_read_and_the_link_table_pairs(scenes):
    originals, out, table = scenes
    linkage = read_linkage(table)
    assert isinstance(linkage, SceneLinkage)
    pictures = pair_images(originals, out, Pairing(linkage=linkage))
    assert isinstance(pictures.certificate, SceneCertificate)
    pairs = [(p.original.name, p.released.name) for p in pictures.pairs]
    assert pairs == [("photo 1.png", "000001.png"), ("photo 2.png", "000002.png")]
    assert pictures.pairing == "by the link table of the outputs"
    assert not pictures.not_paired


def test_a_link_table_finds_originals_that_moved(scenes, tmp_path):
    originals, out, table = scenes
    moved = shutil.move(originals, tmp_path / "elsewhere")
    assert len(pair_images(moved, out, Pairing(linkage=read_linkage(table))).pairs) == 2


def test_the_person_in_a_photograph_is_who_the_link_table_says(scenes):
    originals, out, table = scenes
    content = json.loads(table.read_bytes())
    content["people"] = [p for p in content["people"] if p["name"] in ("P1", "P3")]
    table.write_text(json.dumps(content))
    pictures = pair_images(originals, out, Pairing(linkage=read_linkage(table)))
    assert [p.original.subject for p in pictures.pairs] == ["P1", "P3"]


def test_kept_names_pair_by_themselves(scenes):
    originals, out, _ = scenes
    for path in originals.iterdir():
        path.rename(originals / f"00000{path.stem[-1]}.png")
    assert pair_images(originals, out).pairing == "by equal file names"


def test_numbered_outputs_ask_for_the_link_table(scenes):
    originals, out, _ = scenes
    with pytest.raises(UsageError, match="--linkage FILE .*deidentify --link-table"):
        pair_images(originals, out)


def test_another_link_table_is_refused(scenes):
    originals, out, table = scenes
    table.write_text(table.read_text().replace('"release_digest": "', '"release_digest": "0'))
    with pytest.raises(UsageError, match="belongs to another release"):
        pair_images(originals, out, Pairing(linkage=read_linkage(table)))
    table.write_text("[" * 100_000)
    with pytest.raises(InputError, match="link.json: not a ksame link table"):
        read_linkage(table)


def test_recordings_are_named_as_not_judged(scenes):
    originals, out, table = scenes
    file = out / "certificate.json"
    content = json.loads(file.read_bytes())
    content["files"]["000003.mp4"] = "0" * 64
    file.write_text(json.dumps(content))
    not_paired = pair_images(originals, out, Pairing(linkage=read_linkage(table))).not_paired
    assert [(m.name, m.reason) for m in not_paired] == [("000003.mp4", "a recording: only pictures are judged")]


def test_photographs_are_looked_at_as_photographs(scenes):
    originals, out, table = scenes
    assert choose_cropper(pair_images(originals, out, Pairing(linkage=read_linkage(table))), None).view == "photographs"


@pytest.mark.parametrize(("between", "view"), [(0.46, "faces"), (0.32, "faces"), (0.15, "photographs")])
def test_pictures_with_much_beside_the_face_are_photographs(between, view):
    """Portraits of one size with the eyes in one place are no face crops where the face is small in them."""
    left, right = 200 * (0.5 - between / 2), 200 * (0.5 + between / 2)
    eyes = np.array([[left, 80], [right, 80], [100, 110], [90, 130], [110, 130]])
    assert _guess({(250, 200)}, [eyes + shift for shift in (0.0, 0.3, 0.6)], certified=False) == view


def test_nothing_is_bounded_by_a_scene_certificate(scenes):
    promise = promise_of(SceneCertificate.from_json((scenes[1] / "certificate.json").read_bytes()))
    assert promise.bound is None
    assert "real people share" in promise.statement


def attack(recogniser, scores):
    return JudgedAttack(
        AttackRecord(
            scenario="naive",
            recogniser=recogniser,
            params={},
            n_probes=len(scores),
            n_gallery=len(scores),
            without_face=0,
            rank1=float(np.mean(scores)),
            interval=(0.0, 1.0),
            chance=1 / len(scores),
            cmc=(1.0,),
            eer=None,
            tar_at_far={},
            covered=True,
            verdict=None,
            notes=(),
        ),
        np.array(scores),
    )


class _Pair:
    def __init__(self, subject):
        self.pair = self.original = self
        self.subject = subject


def test_the_headline_of_photographs_is_about_faces_not_pixels():
    """Light and pose are kept on purpose, and find the very photograph again."""
    pairs = [_Pair(f"P{i}") for i in range(30)]
    judged = [attack("eigenfaces", [1.0] * 28 + [0.0] * 2), attack("sface", [1.0] * 2 + [0.0] * 28)]
    found = conclude(judged, pairs, None, "photographs")
    assert found.line.startswith("Of 30 people, 2 are still recognised by the strongest attack (sface, naive).")
    assert "Comparing pixels (eigenfaces, naive) finds the photograph that was altered for 28." in found.line
    assert found.rate == pytest.approx(2 / 30)
    assert "Judged was the face cut out of each photograph" in found.explanation
    assert SAME_PHOTOGRAPH in found.explanation
    assert "Judged were whole pictures" in conclude(judged, pairs, None, "faces").explanation
    assert conclude(judged, pairs, None, "faces").recogniser == "eigenfaces"
    assert conclude(judged[:1], pairs, None, "photographs").recogniser == "eigenfaces"
