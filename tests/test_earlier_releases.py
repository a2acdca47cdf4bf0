"""What earlier versions certified is still verified, and forgeries of it are still found.

``earlier_releases.zip`` was written by ksame 0.1.0: a release of six people who do not exist, and two drawn
photographs.
"""

import json
import math
import zipfile
from pathlib import Path

import pytest

from ksame.errors import InputError
from ksame.privacy.findings import agree, passed
from ksame.scene.linkage import read_linkage
from ksame.verification import verify

KINDS = ("faces", "scenes")


@pytest.fixture
def earlier(tmp_path):
    with zipfile.ZipFile(Path(__file__).with_name("earlier_releases.zip")) as archive:
        archive.extractall(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_an_earlier_release_is_verified_from_folder_or_certificate(earlier, kind):
    table = read_linkage(earlier / kind / "link.json")
    for path in (earlier / kind / "out", earlier / kind / "out" / "certificate.json"):
        findings = verify(path, linkage=table)
        assert passed(findings), [finding for finding in findings if finding.passed is False]
        assert {"signature", "digest", "method", "counts", "people behind each face"} <= {f.name for f in findings}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("field", "to"), [("digest", "0" * 64), ("files", {}), ("warnings", ["Safe."]), ("software", {"ksame": "9"})]
)
def test_a_forgery_of_it_is_found(earlier, kind, field, to):
    file = earlier / kind / "out" / "certificate.json"
    content = json.loads(file.read_bytes())
    file.write_text(json.dumps({**content, field: to}))
    harmless = field == "software" or (field == "warnings" and kind == "faces")  # only a key finds these
    assert passed(verify(file)) is harmless


def test_a_link_table_of_the_other_kind_is_refused(earlier):
    for kind, other in (KINDS, KINDS[::-1]):
        with pytest.raises(InputError, match="link table is not"):
            verify(earlier / kind / "out", linkage=read_linkage(earlier / other / "link.json"))


def test_a_link_table_of_another_release_is_found(earlier):
    for kind in KINDS:
        table = read_linkage(earlier / kind / "link.json").model_copy(update={"release_digest": "0" * 64})
        findings = verify(earlier / kind / "out", linkage=table)
        assert [finding.name for finding in findings if finding.passed is False] == ["linkage"]


def test_where_no_certificate_is_the_next_step_is_named(tmp_path):
    (tmp_path / "safe.mp4").touch()
    for path in (tmp_path, tmp_path / "safe.mp4", tmp_path / "missing"):
        with pytest.raises(InputError, match="no certificate is there. Name the folder"):
            verify(path)


@pytest.mark.parametrize("name", ["smallest_group", "largest_group", "mean_group", "loss_sse"])
@pytest.mark.parametrize("value", [10**400, -(10**400), 10**4000], ids=["large", "negative", "huge"])
def test_a_number_too_large_for_a_computer_is_no_traceback(earlier, name, value):
    file = earlier / "faces" / "out" / "certificate.json"
    content = json.loads(file.read_bytes())
    content["figures"][name] = value
    file.write_text(json.dumps(content))
    harmless = name == "loss_sse" and value > 0  # without the originals nobody can tell
    assert passed(verify(file)) is harmless


def test_rounded_numbers_agree_and_no_size_is_too_large():
    for one, other in (
        (10**400, 0.02),
        (0.02, 10**400),
        (3.5, 10**400),
        (-(10**400), 1e308),
        (1.0, math.inf),
        (1.0, math.nan),
    ):
        assert not agree(one, other)
    assert agree(10**400, 10**400)
