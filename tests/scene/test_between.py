"""Frames between others: heads like those before and after are mixed of both, bent, and nothing else changes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice

import cv2
import numpy as np
import pytest

from ksame.heads.between import between, keyframes
from ksame.heads.head import Head, Region, filled
from ksame.heads.invention import FinishedHead
from ksame.heads.surrogate import ORDINARY, draw_surrogate
from ksame.models.finisher import Finisher
from ksame.scene.decide import Decision, Treatment, neutral_of
from ksame.scene.render import STEP, Renderer, first_needed, render_frames
from ksame.scene.track import find_tracks
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.geometry import BROWS, EYES
from scene.walkers import background, clip, paste

N_FRAMES = STEP + 3


class Counting(Finisher):
    """The network, and how often it was asked."""

    def __init__(self):
        super().__init__("cpu")
        self.count = 0

    def finish(self, *given):
        self.count += 1
        return super().finish(*given)


@pytest.fixture(scope="module")
def scene():
    """Frames in which one person moves to the right, evenly; and who is where in them."""
    pictures = []
    for i in range(N_FRAMES):
        frame = background((320, 240))
        paste(frame, 1, (130 + i, 120), 190)
        pictures.append(frame)
    frames = list(clip(pictures))
    return frames, find_tracks(lambda start: frames, (320, 240))


@pytest.fixture(scope="module")
def network():
    return Counting()


def renderer(cast, network):
    face = draw_surrogate(False, 1970.0, ORDINARY, np.random.default_rng(1))
    return Renderer(cast, {person.name: Decision(Treatment.REPLACE, face) for person in cast.people}, network=network)


def asked(scene, network, frames=None, threads=2):
    """Return the new frames and how often the network was asked for them."""
    network.count = 0
    with ThreadPoolExecutor(threads) as pool:
        frames = scene[0] if frames is None else frames
        made = [new for _, new in render_frames(frames, renderer(scene[1], network), pool)]
    return made, network.count


def blinking(cast, frame):
    """Return the cast with eyes that are shut in one frame."""
    (track,) = cast.tracks
    points = track.points.copy()
    for upper, lower in ((159, 145), (386, 374), (158, 153), (385, 380), (160, 144), (387, 373)):
        points[frame - track.first, upper] = points[frame - track.first, lower]
    return replace(cast, tracks=(replace(track, points=points),))


def test_the_network_is_asked_seldom_while_a_head_changes_little(scene, network):
    made, count = asked(scene, network)
    assert len(made) == len(scene[0])
    assert count == 3, "the first frames of two blocks, and the last, after which there is none"


def test_frames_between_look_as_if_they_had_been_made(scene, network):
    made, _ = asked(scene, network)
    alone = [renderer(scene[1], network).render(frame) for frame in scene[0]]
    for i, (mixed, whole, frame) in enumerate(zip(made, alone, scene[0], strict=True)):
        assert np.array_equal(mixed, whole) == (i % STEP == 0 or i == N_FRAMES - 1)
        changed = (whole != frame.pixels).any(axis=2)
        assert np.abs(mixed[changed].astype(float) - whole[changed]).mean() < 4
        near = cv2.dilate(changed.astype(np.uint8), np.ones((9, 9))) > 0
        assert np.array_equal(mixed[~near], frame.pixels[~near])


def test_frames_do_not_depend_on_the_number_of_threads(scene, network):
    """With one thread nothing can be waited for by what runs in it: it would wait for ever."""
    one, count = asked(scene, network, threads=1)
    four, _ = asked(scene, network, threads=4)
    assert count == 3
    assert all(np.array_equal(a, b) for a, b in zip(one, four, strict=True))


def test_recordings_may_share_their_threads(scene, network):
    """Two recordings, each in a thread of its own, and one thread for the pictures of both."""
    alone, _ = asked(scene, network)
    with ThreadPoolExecutor(1) as pictures, ThreadPoolExecutor(2) as files:
        tasks = [
            files.submit(lambda: [new for _, new in render_frames(scene[0], renderer(scene[1], network), pictures)])
            for _ in range(2)
        ]
        for task in tasks:
            assert all(np.array_equal(a, b) for a, b in zip(alone, task.result(timeout=120), strict=True))


def test_a_blink_is_made_and_not_mixed_away(scene, network):
    shut = blinking(scene[1], 4)
    made, count = asked((scene[0], shut), network)
    assert count == 6, "the first of two blocks and the last; the blink, and the open eyes before and after it"
    assert np.array_equal(made[4], renderer(shut, network).render(scene[0][4]))


def test_frames_that_come_slowly_are_all_made(scene, network):
    slow = [replace(frame, time=4 * frame.time) for frame in scene[0]]
    assert asked(scene, network, slow)[1] == len(slow)


def test_large_frames_do_not_wait_for_each_other(scene, network, monkeypatch):
    monkeypatch.setattr("ksame.scene.render.sequence._MAX_BYTES", 0)
    made, count = asked(scene, network)
    assert count == len(made) == len(scene[0])


@pytest.mark.parametrize("begin", [1, STEP - 1, STEP, STEP + 2])
def test_a_frame_comes_out_the_same_wherever_a_run_goes_on(scene, network, begin):
    whole, _ = asked(scene, network)
    first = first_needed(begin)
    with ThreadPoolExecutor(3) as pool:
        both = islice(render_frames(scene[0][first:], renderer(scene[1], network), pool), begin - first, None)
        rest = [new for _, new in both]
    assert len(rest) == len(whole) - begin
    assert all(np.array_equal(a, b) for a, b in zip(whole[begin:], rest, strict=True))


def test_noise_in_the_regions_of_all_frames_changes_no_byte(scene, network):
    """The promise, for frames that are mixed: no pixel that is hidden in any frame is read."""
    frames, cast = scene
    rng = np.random.default_rng(0)
    (track,) = cast.tracks
    neutral = neutral_of(track)
    noisy = []
    for frame in frames:
        pixels = frame.pixels.copy()
        (face,) = cast.at(frame.index)
        hidden = filled(pixels.shape, Region.of(Head.of(face.mesh.points), neutral).outline) > 0
        assert hidden.mean() > 0.1
        pixels[hidden] = rng.integers(0, 256, (int(hidden.sum()), 3))
        noisy.append(replace(frame, pixels=pixels))
    for before, after in zip(asked(scene, network)[0], asked(scene, network, noisy)[0], strict=True):
        assert np.array_equal(before, after)


def test_an_error_on_the_way_is_raised(scene, network):
    def broken():
        yield from scene[0][:5]
        raise OSError("the recording ends here")

    with pytest.raises(OSError, match="ends here"):
        asked(scene, network, broken())
    bad = [*scene[0][:4], replace(scene[0][4], pixels=cv2.cvtColor(scene[0][4].pixels, cv2.COLOR_RGB2GRAY))]
    with pytest.raises((ValueError, IndexError, cv2.error)):
        asked(scene, network, bad)


def test_a_head_that_moves_is_bent_to_where_it_is_and_not_doubled():
    """Between a shape on the left and the same on the right there is one in the middle; plain mixing shows two."""
    points = np.random.default_rng(0).uniform(0.2, 0.8, (478, 2))

    def made(x):
        square = np.zeros((128, 128, 3), dtype=np.uint8)
        cv2.circle(square, (x, 64), 12, (255, 255, 255), -1)
        return FinishedHead(points + np.array([(x - 64) / 128, 0]), square, grain=0.1 * x)

    mixed = between(made(61), points, made(67), 0.5)
    assert mixed is not None
    assert mixed.grain == pytest.approx(6.4)
    left, middle, right = (made(x).square.astype(float) for x in (61, 64, 67))
    assert np.abs(mixed.square - middle).mean() < 0.3 * np.abs((left + right) / 2 - middle).mean()


@pytest.mark.parametrize(
    ("point", "away", "side", "made"),
    [
        (1, 0.0, 300, [0, 6]),
        (1, 0.015, 300, [0, 6]),
        (1, 0.04, 300, [0, 1, 2, 3, 6]),  # the one that is off, and those beside it that are on the line
        (1, 0.04, 40, [0, 6]),  # hardly more than a pixel
        (159, 0.01, 300, [0, 6]),  # a point of a lid that trembles
        (EYES[0][1:8], 0.007, 300, [0, 2, 3, 6]),  # a whole lid
        (473, 0.007, 300, [0, 2, 3, 6]),  # an iris
        (BROWS[:5], 0.007, 300, [0, 2, 3, 6]),
    ],
)
def test_a_head_that_leaves_the_line_has_to_be_made(point, away, side, made):
    face = face_model()
    points = [face.base[:, :2] / face.size[0] for _ in range(7)]
    points[2][point, 1] += away
    assert keyframes(points, side) == made


def test_a_head_that_moves_far_is_made_more_often():
    start = np.random.default_rng(0).uniform(0.2, 0.8, (478, 2))
    assert keyframes([start + 0.02 * i for i in range(7)], 300) == [0, 3, 6]
    assert keyframes([start], 300) == [0]


def test_heads_of_different_sizes_are_not_mixed():
    points = np.zeros((478, 2))
    first, last = (FinishedHead(points, np.zeros((size, size, 3), dtype=np.uint8), 0.0) for size in (128, 256))
    assert between(first, points, last, 0.5) is None
    assert between(first, points, first, 0.0) is first


def test_the_network_sees_nothing_of_another_head(network):
    """Two heads overlap: each is made from what is outside both, so that their order does not matter."""
    pictures = background((420, 260))
    paste(pictures, 1, (150, 130), 180)
    paste(pictures, 2, (290, 130), 180)
    (frame,) = clip([pictures])
    cast = find_tracks(lambda start: [frame], (420, 260))
    drawn = renderer(cast, network)
    tracks = list(drawn.plan(0, 0.0).heads)
    assert len(tracks) == 2
    both, alone = drawn.finish(frame, tracks), drawn.finish(frame, tracks[1:])
    assert np.array_equal(both[tracks[1]].square, alone[tracks[1]].square)
