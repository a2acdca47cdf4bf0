"""Faces of audits and releases are found in other processes with the same result."""

from importlib.resources import files

import numpy as np
import pytest
from PIL import Image, ImageFilter

from ksame.audit import AuditConfig, audit
from ksame.errors import UsageError
from ksame.photographs import load_photographs
from ksame.scheduling import open_scheduler

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'ksame[cluster]'")
SAMPLES = files("ksame.data") / "samples"


@pytest.fixture(scope="module")
def address():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def album(tmp_path_factory):
    folder = tmp_path_factory.mktemp("album")
    for side in ("before", "after"):
        (folder / side).mkdir()
    for name in ("f99", "f38", "m12"):
        with Image.open(str(SAMPLES / f"{name}.jpg")) as picture:
            picture.save(folder / "before" / f"{name}.png")
            picture.filter(ImageFilter.GaussianBlur(2)).save(folder / "after" / f"{name}.png")
    (folder / "before" / "broken.png").write_bytes(b"\x89PNG and no more")
    (folder / "after" / "broken.png").write_bytes(b"\x89PNG and no more")
    return folder


def test_an_audit_on_a_cluster_says_the_same(album, address):
    config = {"attackers": ["eigenfaces"], "scenarios": ["naive"], "view": "photographs"}
    here = audit(album / "before", album / "after", AuditConfig(**config))
    there = audit(album / "before", album / "after", AuditConfig(**config, scheduler=address))
    assert there.to_json() == here.to_json()
    assert {each.name for each in there.not_judged} == {"broken.png"}
    assert there.counts.pairs == 3


def test_photographs_on_a_cluster_give_the_same_faces(album, address, recwarn):
    with open_scheduler(address) as scheduler:
        there = load_photographs(album / "before", skip_unreadable=True, scheduler=scheduler)
    here = load_photographs(album / "before", skip_unreadable=True)
    assert np.array_equal(there.faces.images, here.faces.images)
    assert np.array_equal(there.blendshapes, here.blendshapes)
    assert there.faces.names == here.faces.names
    assert there.unreadable == here.unreadable != ()


def test_workers_without_processes_are_refused():
    with pytest.raises(UsageError, match="--workers is for --scheduler processes"):
        AuditConfig(workers=2)
    with pytest.raises(UsageError, match=r"must be an integer in \[1, 256\]. Got 0"):
        AuditConfig(scheduler="processes", workers=0)
