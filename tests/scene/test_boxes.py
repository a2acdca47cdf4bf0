"""Boxes of another detector: read strictly, filled where nothing else is done, and refused where they do not fit."""

import json
from pathlib import Path

import numpy as np
import pytest

from ksame.errors import InputError
from ksame.scene.boxes import GivenBoxes, read_boxes
from ksame.scene.config import JobConfig
from ksame.scene.decide import Decision, Treatment
from ksame.scene.media import Frame
from ksame.scene.render import Renderer
from scene.test_touched import face_at

NOISE = np.random.default_rng(2).integers(0, 256, (80, 96, 3), dtype=np.uint8)
TABLE = "frame,x,y,width,height\n0,10,20,30,40\n3,1.5,2,3,4\n3,50,2,3,4\n"


def read(tmp_path, text, name="boxes.csv"):
    (tmp_path / name).write_text(text if isinstance(text, str) else json.dumps(text))
    return read_boxes(tmp_path / name)


def test_a_table_holds_for_its_frames_alone(tmp_path):
    found = read(tmp_path, TABLE)
    assert found.files == {None: {0: [(10, 20, 30, 40)], 3: [(1.5, 2, 3, 4), (50, 2, 3, 4)]}}
    assert len(found) == 3


@pytest.mark.parametrize(
    "content",
    [
        "frame,x1,y1,x2,y2,score\n5,10,20,40,60,0.98\n",
        "\ufeffFRAME, X, Y, Width, Height\n5,10,20,30,40\n",
        [{"frame": 5, "x": 10, "y": 20, "width": 30, "height": 40, "score": 0.98}],
        [{"image_id": 5, "category_id": 1, "bbox": [10, 20, 30, 40], "score": 0.5}],
        {
            "images": [{"id": 9, "file_name": "anything.png", "frame_id": 5}],
            "annotations": [{"image_id": 9, "bbox": [10, 20, 30, 40], "segmentation": []}],
        },
    ],
)
def test_formats_say_the_same(content, tmp_path):
    assert read(tmp_path, content).files == {None: {5: [(10, 20, 30, 40)]}}


def test_frames_between_are_filled_only_where_the_file_says_so(tmp_path):
    table = "frame,x,y,width,height,interpolate\n2,10,0,5,5,car\n4,30,0,5,5,car\n2,60,0,5,5,\n4,60,0,5,5,\n"
    frames = read(tmp_path, table).files[None]
    assert frames[3] == [(20, 0, 5, 5)]
    assert set(frames) == {2, 3, 4}


def test_photographs_are_meant_by_their_names(tmp_path):
    coco = {
        "images": [{"id": 1, "file_name": "a/one.png"}, {"id": 2, "file_name": "two.png"}],
        "annotations": [{"image_id": 1, "bbox": [1, 2, 30, 4]}, {"image_id": 2, "bbox": [5, 6, 7, 8]}],
    }
    found = read(tmp_path, coco)
    sizes = {Path("in/a/one.png"): (96, 80), Path("in/b/two.png"): (96, 80)}
    found.check(sizes)
    assert found.of(Path("in/a/one.png"), 1) == {0: [(1, 2, 30, 4)]}
    with pytest.raises(InputError, match=r"'two.png', which is none of the files"):
        found.check({Path("in/a/one.png"): (96, 80)})
    with pytest.raises(InputError, match="'two.png', which may be"):
        found.check(sizes | {Path("in/c/two.png"): (96, 80)})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "line 1: expected columns frame and x,y,width,height"),
        ("frame,x,y\n0,1,2\n", "line 1: expected columns"),
        ("frame,x,y,width,height\n", "there is no box"),
        ("frame,x,y,width,height\n0,1,2,3,4\n1,two,2,3,4\n", "line 3: x must be a number. Got 'two'"),
        ("frame,x,y,width,height\n0,1,2,3\n", "line 2: expected 5 values"),
        ("frame,x,y,width,height\n0,1,2,3,4,5\n", "line 2: expected 5 values"),
        ("frame,x,y,width,height\n0,1,2,3,0\n", "line 2: a box needs a width and a height"),
        ("frame,x,y,width,height\n0,1,2,nan,9\n", "line 2: a box needs"),
        ("frame,x,y,width,height\n-1,1,2,3,4\n", "line 2: frames are counted from 0"),
        ("frame,x,y,width,height\n1.5,1,2,3,4\n", "line 2: frame must be a number"),
        ("frame,x,x,y,width,height\n0,1,2,3,4,5\n", "line 1: a column has the name"),
        ("frame,x,y,width,height\n0,0.1,0.2,0.3,0.4\n", "fractions of the picture"),
        ("frame,x,y,width,height,interpolate\n2,1,2,3,4,a\n2,1,2,3,4,a\n", "line 3: 'a' is in frame 2 twice"),
        ("[]", "there is no box"),
        ([{"frame": 0}], "entry 1: expected frame and"),
        ([{"frame": 0, "bbox": [1, 2, 3, 4], "x1": 1, "y1": 1, "x2": 2, "y2": 2}], "entry 1: .* in one way"),
        ([{"frame": "0", "bbox": [1, 2, 3, 4]}], "0.frame"),
        ({"images": [], "annotations": [{"image_id": 1, "bbox": [1, 2, 3, 4]}]}, "annotation 1: there is no image 1"),
        ({"annotations": []}, "images"),
        ('[{"frame": 1, "frame": 2, "bbox": [1, 2, 3, 4]}]', "'frame' is said twice"),
        ("\x00\x01", "line 1"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(content, told, tmp_path):
    with pytest.raises(InputError, match=f"boxes.csv: .*{told}"):
        read(tmp_path, content)


def test_boxes_of_another_recording_are_refused(tmp_path):
    found = read(tmp_path, TABLE)
    with pytest.raises(InputError, match="frame 3, but film.mp4 has 3 frames"):
        found.of(Path("film.mp4"), 3)
    with pytest.raises(InputError, match="outside of the 40x40 pixels"):
        found.check({Path("film.mp4"): (40, 40)})
    with pytest.raises(InputError, match="there are 2 files"):
        found.check({Path("a.mp4"): (96, 80), Path("b.mp4"): (96, 80)})


def rendered(box, treatment):
    renderer = Renderer(face_at(), {"P1": Decision(treatment)}, boxes={0: [box]})
    return renderer, renderer.render(Frame(0, 0.0, NOISE))


def test_a_box_is_filled_to_its_corners():
    _, made = rendered((5, 55, 20, 15), Treatment.KEEP)
    changed = (made != NOISE).any(axis=2)
    assert changed[56:69, 6:24].mean() > 0.97
    assert all(changed[y, x] for y in (56, 68) for x in (6, 23))


def test_where_a_face_is_masked_anyway_a_box_adds_nothing_and_where_it_is_kept_it_is_filled():
    renderer, _ = rendered((32, 22, 20, 26), Treatment.MASK)
    assert not renderer.plan(0, 0.0).filled
    renderer, made = rendered((32, 22, 20, 26), Treatment.KEEP)
    assert len(renderer.plan(0, 0.0).filled) == 1
    assert (made[24:46, 34:50] != NOISE[24:46, 34:50]).any(axis=2).mean() > 0.95


def test_boxes_decide_what_is_resumed(tmp_path):
    first, second = read(tmp_path, TABLE), read(tmp_path, TABLE + "4,1,2,3,4\n")
    keys = {JobConfig(boxes=boxes).key() for boxes in (None, first, second)}
    assert len(keys) == 3
    assert isinstance(first, GivenBoxes)
