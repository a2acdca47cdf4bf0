"""Frames between others: heads like those before and after are mixed of both, bent, and nothing else changes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice

import cv2
import numpy as np
import pytest

from ksame.heads.between import FinishedHead, between
from ksame.heads.head import Head, Region, filled
from ksame.heads.surrogate import draw_surrogate
from ksame.models.finisher import Finisher
from ksame.scene.decide import Decision, Treatment, neutral_of
from ksame.scene.render import STEP, Renderer, first_needed, render_frames
from ksame.scene.track import find_tracks
from scene.walkers import background, clip, paste


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
    """Eleven frames in which one person moves to the right, evenly; and who is where in them."""
    pictures = []
    for i in range(11):
        frame = background((320, 240))
        paste(frame, 1, (130 + 2 * i, 120), 190)
        pictures.append(frame)
    frames = list(clip(pictures))
    return frames, find_tracks(lambda start: frames, (320, 240))


@pytest.fixture(scope="module")
def network():
    return Counting()


def renderer(cast, network):
    face = draw_surrogate(False, 1970.0, -0.5, np.random.default_rng(1))
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


def test_the_network_is_asked_in_one_frame_of_three_while_a_head_changes_little(scene, network):
    made, count = asked(scene, network)
    assert len(made) == len(scene[0])
    assert count == 5, "frames 0, 3, 6 and 9, and the last, after which there is none"


def test_frames_between_look_as_if_they_had_been_made(scene, network):
    made, _ = asked(scene, network)
    alone = [renderer(scene[1], network).render(frame) for frame in scene[0]]
    for i, (mixed, whole, frame) in enumerate(zip(made, alone, scene[0], strict=True)):
        assert np.array_equal(mixed, whole) == (i % STEP == 0 or i == 10)
        changed = (whole != frame.pixels).any(axis=2)
        assert np.abs(mixed[changed].astype(float) - whole[changed]).mean() < 4
        near = cv2.dilate(changed.astype(np.uint8), np.ones((9, 9))) > 0
        assert np.array_equal(mixed[~near], frame.pixels[~near])


def test_frames_do_not_depend_on_the_number_of_threads(scene, network):
    """With one thread nothing can be waited for by what runs in it: it would wait for ever."""
    one, count = asked(scene, network, threads=1)
    four, _ = asked(scene, network, threads=4)
    assert count == 5
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
    assert count == 6
    assert np.array_equal(made[4], renderer(shut, network).render(scene[0][4]))


def test_frames_that_come_slowly_are_all_made(scene, network):
    slow = [replace(frame, time=4 * frame.time) for frame in scene[0]]
    assert asked(scene, network, slow)[1] == len(slow)


def test_large_frames_do_not_wait_for_each_other(scene, network, monkeypatch):
    monkeypatch.setattr("ksame.scene.render.sequence._MAX_BYTES", 0)
    made, count = asked(scene, network)
    assert count == len(made) == len(scene[0])


@pytest.mark.parametrize("begin", [1, 3, 5, 10])
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
        square = np.full((128, 128, 3), -1, dtype=np.float32)
        cv2.circle(square, (x, 64), 12, (1, 1, 1), -1)
        return FinishedHead(points + np.array([(x - 64) / 128, 0]), square)

    mixed = between(made(61), points, made(67), 0.5)
    assert mixed is not None
    assert (
        np.abs(mixed - made(64).square).mean()
        < 0.3 * np.abs((made(61).square + made(67).square) / 2 - made(64).square).mean()
    )


@pytest.mark.parametrize("away", [0.0, 0.03])
def test_a_head_unlike_both_beside_it_has_to_be_made(away):
    points = np.random.default_rng(0).uniform(0.2, 0.8, (478, 2))
    one = FinishedHead(points, np.zeros((128, 128, 3), dtype=np.float32))
    now = points.copy()
    now[13] += away
    assert (between(one, now, one, 0.5) is None) == (away > 0)
