"""What people hand over from Python: other number types, sets, missing names, masked arrays, plain strings."""

import json

import numpy as np
import pytest

import ksame
from drawn import drawn_faces
from ksame import FaceSet, recipe
from ksame.errors import InputError, UsageError
from ksame.faces.reading import encode_png, read_image
from ksame.privacy.signing import load_private_key, load_public_key

BYTES = np.arange(2 * 4 * 3, dtype=np.int64).reshape(2, 4, 3, 1) * 10


def some(**changes):
    return FaceSet(**{"images": BYTES.astype(np.uint8), "subjects": ["ann", "bob"], **changes})


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32", "int16", "int8", "uint64"])
def test_integers_without_an_agreed_range_are_refused_not_blackened(dtype):
    with pytest.raises(InputError, match=rf"uint8 or uint16. Got {dtype} with values from 0 to .*astype"):
        some(images=(BYTES // 2).astype(dtype))


def test_bytes_in_16_bits_are_refused_not_blackened():
    with pytest.raises(InputError, match=r"Got uint16 with values from 0 to 230.*astype\('uint8'\)"):
        some(images=BYTES.astype(np.uint16))


@pytest.mark.parametrize("images", [BYTES.astype(object), BYTES.astype(str), BYTES.astype(complex)])
def test_images_that_are_no_numbers_are_refused(images):
    with pytest.raises(InputError, match="must be numbers"):
        some(images=images)


@pytest.mark.parametrize("field", ["images", "landmarks"])
def test_masked_arrays_do_not_lose_their_mask(field):
    values = {"images": BYTES / 255, "landmarks": np.ones((2, 3, 2))}[field]
    masked = np.ma.masked_array(values, mask=np.zeros(values.shape, dtype=bool))
    some(**{field: masked})
    masked[0, 0, 0] = np.ma.masked
    with pytest.raises(InputError, match="masked"):
        some(**{field: masked})


class Missing:
    """Like pandas' NA: a comparison with it has no truth."""

    def __ne__(self, other):
        return self

    __hash__ = None

    def __bool__(self):
        raise TypeError("ambiguous")


@pytest.mark.parametrize(
    "subject", [None, float("nan"), np.nan, np.float32("nan"), np.datetime64("NaT"), np.ma.masked, Missing(), "", "  "]
)
def test_people_without_a_name_are_not_merged_into_one(subject):
    with pytest.raises(InputError, match="subject of face 2 is missing"):
        some(subjects=["ann", subject])


def test_missing_labels_are_all_empty():
    faces = some(attributes={"gender": [None, float("nan")]})
    assert faces.attribute("gender").tolist() == ["", ""]


@pytest.mark.parametrize("values", [{"ann", "bob"}, frozenset({"ann", "bob"}), {"ann": 1, "bob": 2}, "ab", b"ab"])
@pytest.mark.parametrize("field", ["subjects", "names", "attributes"])
def test_collections_without_an_order_are_refused(field, values):
    with pytest.raises(InputError, match=r"in the order of the images. Got (set|frozenset|dict|str|bytes)"):
        some(**{field: {"gender": values} if field == "attributes" else values})


def test_rows_of_a_table_are_no_subjects():
    with pytest.raises(InputError, match="one value for each image"):
        some(subjects=np.array([["a", "b"], ["c", "d"]]))


def test_labels_that_are_no_mapping_are_refused():
    with pytest.raises(InputError, match="mapping"):
        some(attributes=["F", "M"])


def test_anything_with_an_order_is_taken():
    assert some(subjects=np.array(["ann", "bob"])).subjects.tolist() == ["ann", "bob"]
    assert some(subjects=(name for name in ("ann", "bob"))).subjects.tolist() == ["ann", "bob"]


@pytest.mark.parametrize("indices", [[0.5], {0}, [True], ["a"]])
def test_taking_by_what_is_no_index_is_refused(indices):
    with pytest.raises(InputError, match="indices or one truth value for each face"):
        some().take(indices)


NUMPY = [
    ("k-same-pixel", {"k": np.int64(3)}),
    ("k-same-eigen", {"k": np.uint8(3), "components": np.float32(0.5)}),
    ("k-same-eigen", {"k": 3, "components": np.int32(4)}),
    ("k-same-furthest", {"k": np.int16(3), "repair": np.bool_(True)}),
    ("epsilon-k-map", {"k": np.int64(3), "lam": np.float32(0.5), "sigma": np.float64(2)}),
    ("epsilon-map", {"epsilon": np.float32(0.5), "sigma": np.float32(1)}),
    ("wrong-map", {"margin": np.float32(0.25)}),
    ("pixelate", {"p": np.int64(4)}),
    ("blur", {"sigma": np.float32(2)}),
    ("threshold", {"t": np.uint8(100)}),
    ("noise", {"m": np.int64(9)}),
    ("blackout", {"value": np.float16(0.5)}),
    ("eigen-reduce", {"e": np.int64(2)}),
]


@pytest.mark.filterwarnings("ignore::ksame.errors.KsameWarning")
@pytest.mark.parametrize(("name", "params"), NUMPY, ids=lambda value: value if isinstance(value, str) else "")
def test_numpy_scalars_are_as_good_as_numbers_and_can_be_written(name, params, tmp_path):
    plain = {key: value.item() for key, value in params.items() if hasattr(value, "item")} | {
        key: value for key, value in params.items() if not hasattr(value, "item")
    }
    assert recipe(name, **params).params() == recipe(name, **plain).params()
    json.dumps(recipe(name, **params).params())
    release, _ = ksame.deidentify(drawn_faces(9, width=24, height=32), recipe(name, **params), seed=np.int64(3))
    ksame.write_release(release, tmp_path / "out")


@pytest.mark.parametrize("seed", [1.5, -1, "7", True, 2**70, np.float64(2)])
def test_seeds_that_are_no_seeds_are_refused(seed):
    with pytest.raises(UsageError, match=r"The 'seed' parameter of deidentify must be an integer in \[0, "):
        ksame.deidentify(drawn_faces(6, width=24, height=32), recipe("k-same-pixel", k=3), seed=seed)


def test_plain_strings_are_as_good_as_paths(tmp_path):
    faces = drawn_faces(6, width=24, height=32)
    folder = tmp_path / "in"
    folder.mkdir()
    rows = ["file,subject"]
    for i, image in enumerate((faces.images * 255).astype(np.uint8)):
        (folder / f"{i}.png").write_bytes(encode_png(image))
        rows.append(f"{i}.png,p{i}")
    table = tmp_path / "table.csv"
    table.write_text("\n".join(rows))
    loaded = ksame.load_folder(str(folder), labels=str(table)).faces
    assert read_image(str(folder / "0.png")).shape == loaded.shape[1:]
    release, linkage = ksame.deidentify(loaded, recipe("k-same-pixel", k=3), seed=1)
    ksame.write_release(release, str(tmp_path / "out"))
    linkage.write(str(tmp_path / "linkage.json"))
    assert ksame.Linkage.read(str(tmp_path / "linkage.json")) == linkage
    assert ksame.read_release(str(tmp_path / "out"))[0].certificate == release.certificate
    for load in (load_private_key, load_public_key, ksame.load_photographs):
        with pytest.raises(InputError, match="no-such-file"):
            load(str(tmp_path / "no-such-file"))
