"""The store of work in progress: a value counts only if it was made from the same, and was completed."""

import pytest

from ksame.errors import UsageError
from ksame.scene.store import OUTPUT, PLAN, TRACKS, Store, can_resume, earlier_outputs, key_of


def begin(folder, *, seed=5, inputs=("f",), resume=False):
    return Store.begin(folder / "work", inputs, "key", seed, outputs=["000002.png"], resume=resume)


def test_a_value_counts_only_if_it_was_made_from_the_same(tmp_path):
    store = begin(tmp_path)
    assert can_resume(store.folder)
    store.finish(OUTPUT, 3, key_of("pixels", 1), {"n_frames": 7})
    again = begin(tmp_path, seed=None, resume=True)
    assert again.seed == 5
    assert earlier_outputs(again.folder) == ["000002.png"]
    assert again.value(OUTPUT, 3, key_of("pixels", 1)) == {"n_frames": 7}
    assert again.value(OUTPUT, 3, key_of("pixels", 2)) is None
    assert again.value(OUTPUT, 4, key_of("pixels", 1)) is None
    assert again.value(TRACKS, 3, key_of("pixels", 1)) is None


def test_a_value_that_was_not_completed_does_not_count(tmp_path):
    store = begin(tmp_path)
    (store.place(PLAN) / "plan.npz").write_bytes(b"half")
    assert begin(tmp_path, resume=True).value(PLAN, 0, "key") is None
    (store.place(PLAN) / "stage.json").write_bytes(b'{"key": "k')
    assert begin(tmp_path, resume=True).value(PLAN, 0, "key") is None


def test_without_resume_nothing_counts(tmp_path):
    begin(tmp_path).finish(PLAN, 0, "key")
    assert begin(tmp_path).value(PLAN, 0, "key") is None


@pytest.mark.parametrize("other", [{"seed": 6}, {"inputs": ("g",)}])
def test_another_job_is_refused(tmp_path, other):
    begin(tmp_path)
    with pytest.raises(UsageError, match="other files or options"):
        begin(tmp_path, resume=True, **other)


def test_only_an_output_that_was_about_to_get_its_name_may_be_replaced(tmp_path):
    store = begin(tmp_path)
    store.renaming(1)
    again = begin(tmp_path, resume=True)
    assert again.may_replace(1)
    assert not again.may_replace(0)
    assert store.may_replace(1), "a worker that does it again finds what the first one left"
    assert not begin(tmp_path).may_replace(1), "this is not a resumed run"


def test_edited_tracks_must_not_change_meanwhile(tmp_path):
    begin(tmp_path).expect("tracks", "abc")
    with pytest.raises(UsageError, match="tracks were changed"):
        begin(tmp_path, resume=True).expect("tracks", "xyz")


def test_the_folder_is_its_owners_alone(tmp_path):
    assert begin(tmp_path).folder.stat().st_mode & 0o077 == 0
