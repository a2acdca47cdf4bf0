"""Heads that are invented: what they depend on, what they leave alone, what they keep of an expression."""

import sys
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

import ksame
from ksame.heads.colour import colour_gain
from ksame.heads.covers import COVERS, FACE, HEAD
from ksame.heads.detail import detail_gain, with_detail
from ksame.heads.drawing import Invention, _mesh, draw
from ksame.heads.head import EYES_DRAWN, EyesConfig, Head, Region, expression_of, filled, neutral_shape, wearing
from ksame.heads.invention import FinishedHead, _remove_specks, invent, put, taken_away
from ksame.heads.surrogate import ORDINARY, SURROGATE, Skin, bank, draw_surrogate, skin_of, toned
from ksame.models import BLENDSHAPES, detect
from ksame.models.finisher import finisher
from ksame.models.mesh import FaceMesh
from ksame.privacy.invention import InventedRegion
from ksame.scene.decide import Decision, Treatment, neutral_of
from ksame.scene.render import Renderer, outline_of
from ksame.scene.track import find_tracks
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.geometry import EYES, INNER_LIPS, IRISES, LIDS, OUTLINE, with_forehead
from scene.walkers import background, clip, paste


def surrogate(seed=0, woman=False):
    return draw_surrogate(woman, 1970.0, ORDINARY, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def portrait():
    """A photograph of somebody who does not exist, and their mesh."""
    pixels = (ksame.synthetic(1, seed=8, size=(320, 260)).images[0] * 255 + 0.5).astype(np.uint8)
    return pixels, FaceMesh().fit(pixels, detect(pixels)[0])


@pytest.fixture(scope="module")
def couple():
    """Six frames in which two people come close to one another."""
    pictures = []
    for i in range(6):
        frame = background((420, 260))
        paste(frame, 1, (120 + 6 * i, 130), 200)
        paste(frame, 2, (300, 130), 170)
        pictures.append(frame)
    frames = list(clip(pictures))
    cast = find_tracks(lambda start: frames, (420, 260))
    assert len(cast.people) == 2
    return frames, cast


def invention(portrait, cover=HEAD, shift=(0.0, 0.0), seed=0):
    _, mesh = portrait
    head = Head.of(np.asarray(mesh.points, dtype=np.float64) + np.array([*shift, 0.0]))
    neutral = neutral_shape(head.aligned, expression_of(mesh.blendshapes))
    return Invention.of(surrogate(seed).looks, head, neutral, cover)


def own_neutral(portrait):
    """Return the neutral shape of whoever is in the portrait."""
    _, mesh = portrait
    return neutral_shape(Head.of(mesh.points).aligned, expression_of(mesh.blendshapes))


def invented(pixels, what):
    out = pixels.copy()
    invent(out, taken_away(out.shape, [what.region.outline]), what, finisher("cpu"))
    return out


def hidden_by(cast, plans, frame, cover):
    """Return which pixels are taken away in a frame, worked out anew."""
    outlines = []
    for face in cast.at(frame.index):
        neutral = neutral_of(next(track for track in cast.tracks if track.number == face.track))
        if plans[face.person].treatment is Treatment.REPLACE and face.mesh is not None and neutral is not None:
            outlines.append(Region.of(Head.of(face.mesh.points), neutral, cover).outline)
        else:
            outlines.append(outline_of(face)[0])
    hidden = np.zeros(frame.pixels.shape[:2], dtype=bool)
    for outline in outlines:
        hidden |= filled(hidden.shape, outline) > 0
    return hidden


@pytest.mark.parametrize("cover", COVERS.values(), ids=list(COVERS))
@pytest.mark.parametrize("treatments", [("replace", "replace"), ("replace", "mask")])
def test_noise_in_the_regions_of_a_film_changes_no_byte(couple, cover, treatments):
    """The promise itself: same tracks, same plan, other pixels inside, same picture."""
    frames, cast = couple
    plans = {
        person.name: Decision(Treatment(wish), surrogate(i) if wish == "replace" else None, cover)
        for i, (person, wish) in enumerate(zip(cast.people, treatments, strict=True))
    }
    renderer = Renderer(cast, plans)
    for frame in frames:
        hidden = hidden_by(cast, plans, frame, cover)
        assert hidden.mean() > 0.1

        def render(pixels, frame=frame):
            return renderer.render(type(frame)(frame.index, frame.time, pixels))

        assert InventedRegion().check(render, frame.pixels, hidden, np.random.default_rng(frame.index)) == []


def test_the_check_notices_a_picture_that_reads_what_it_hides(couple):
    """Negative control: a blur of the region depends on what was in it."""
    frame = couple[0][0]
    hidden = np.zeros(frame.pixels.shape[:2], dtype=bool)
    hidden[40:200, 60:180] = True

    def render(pixels):
        out = pixels.copy()
        out[hidden] = cv2.GaussianBlur(pixels, (0, 0), 8)[hidden]
        return out

    assert InventedRegion().check(render, frame.pixels, hidden, np.random.default_rng(0))


@pytest.mark.parametrize("cover", COVERS.values(), ids=list(COVERS))
def test_the_region_is_new_and_what_lies_beyond_is_kept_to_the_bit(portrait, cover):
    pixels, _ = portrait
    what = invention(portrait, cover)
    out = invented(pixels, what)
    inside = filled(pixels.shape, what.region.outline) > 0
    band = cv2.dilate(inside.astype(np.uint8), np.ones((3, 3), np.uint8), iterations=round(what.region.side / 20)) > 0
    assert np.array_equal(out[~band], pixels[~band])
    assert (out[inside] != pixels[inside]).any(axis=1).mean() > 0.9


@pytest.mark.parametrize("cover", COVERS.values(), ids=list(COVERS))
def test_all_of_the_face_lies_in_the_region(portrait, cover):
    _, mesh = portrait
    what = invention(portrait, cover)
    points = with_forehead(np.asarray(mesh.points)[:, :2])
    inside = filled(portrait[0].shape, what.region.outline) > 0
    height, width = inside.shape
    used = points[np.setdiff1d(np.arange(len(points)), OUTLINE)].round().astype(int).clip(0, (width - 1, height - 1))
    assert inside[used[:, 1], used[:, 0]].mean() > (0.999 if cover is HEAD else 0.95)


def test_the_region_does_not_tell_the_contour_that_it_hides(portrait):
    """Two people of other contours in the same pose have the same region."""
    what = invention(portrait)
    wide = what.head.aligned * [1.15, 1.0, 1.0]
    wide += what.head.aligned.mean(axis=0) - wide.mean(axis=0)
    other = Head(wide, what.head.turn, what.head.scale, what.head.centre)
    neutral = own_neutral(portrait) + (wide - what.head.aligned)
    assert np.allclose(Region.of(other, neutral).outline, what.region.outline, atol=1.0)


@pytest.mark.parametrize("shift", [(-150, 0), (150, 40), (0, -180), (0, 190), (900, 900)])
def test_a_head_at_the_edge_or_beyond_it_is_invented_as_far_as_it_shows(portrait, shift):
    pixels, _ = portrait
    what = invention(portrait, shift=shift)
    out = invented(pixels, what)
    inside = filled(pixels.shape, what.region.outline) > 0
    assert out.shape == pixels.shape
    if inside.any():
        assert (out[inside] != pixels[inside]).any(axis=1).mean() > 0.8


@pytest.mark.parametrize("size", [60, 140, 420])
def test_heads_of_all_sizes_are_invented(portrait, size):
    pixels, mesh = portrait
    factor = size / float(np.ptp(mesh.points[:, 1]))
    small = cv2.resize(pixels, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
    head = Head.of(np.asarray(mesh.points, dtype=np.float64) * factor)
    neutral = neutral_shape(head.aligned, expression_of(mesh.blendshapes))
    out = invented(small, Invention.of(surrogate().looks, head, neutral))
    assert detect(out, score=0.3)


def test_a_drawing_opens_eyes_and_mouth_as_the_person_does(portrait):
    what = invention(portrait)
    now = what.head.aligned.copy()
    now[13, 1] -= 3.0
    now[14, 1] += 3.0
    opened = Head(now, what.head.turn, what.head.scale, what.head.centre)
    before, after = (wearing(what.looks.shape, head, own_neutral(portrait)) for head in (what.head, opened))
    gap = lambda shape: shape[14, 1] - shape[13, 1]  # noqa: E731
    assert gap(after) - gap(before) == pytest.approx(6.0, abs=1e-6)
    assert gap(before) == pytest.approx(gap(what.head.aligned), abs=1e-6)


def test_a_stack_of_heads_is_invented_as_each_alone(portrait):
    neutral = own_neutral(portrait)
    points = portrait[1].points
    mirrored = points * [-1.0, 1.0, 1.0] + [260.0, 0.0, 0.0]  # as no head can be: the turn stays a turn
    seen = np.stack([points, 1.5 * points + [20.0, -4.0, 0.0], mirrored])
    looks, covers = [surrogate(seed).looks for seed in range(3)], [HEAD, FACE, HEAD]
    stack = Head.of(seen)
    together = Invention.all(looks, stack, np.stack([neutral] * 3), covers)
    for i, what in enumerate(together):
        alone = Invention.of(looks[i], Head.of(seen[i]), neutral, covers[i])
        assert np.linalg.det(what.head.turn) == pytest.approx(1)
        assert what.looks is alone.looks
        assert what.region.side == pytest.approx(alone.region.side)
        for one, other in (
            (what.head.aligned, alone.head.aligned),
            (what.points, alone.points),
            (what.region.outline, alone.region.outline),
            (what.region.matrix, alone.region.matrix),
            ([what.head.yaw, what.head.roll], [stack.yaw[i], stack.roll[i]]),
        ):
            assert np.allclose(one, other)


def test_irises_look_where_the_person_looks(portrait):
    what = invention(portrait)
    now = what.head.aligned.copy()
    now[468:478, 0] += 2.0
    aside = Head(now, what.head.turn, what.head.scale, what.head.centre)
    before, after = (wearing(what.looks.shape, head, own_neutral(portrait)) for head in (what.head, aside))
    assert (after[468:478, 0] - before[468:478, 0] > 1.4).all()
    assert np.allclose(after[list(EYES[0])], before[list(EYES[0])])


def test_a_drawing_holds_nothing_but_the_surrogate(portrait):
    what = invention(portrait)
    drawing = draw(what, 128)
    assert drawing.shape == (128, 128, 6)
    assert set(np.unique(drawing[..., 3])) == {0.0, 1.0}
    assert not drawing[drawing[..., 3] == 0].any()
    assert 0.1 < drawing[..., 3].mean() < 0.5
    assert (abs(128 * what.points[list(INNER_LIPS)] - 64) < 50).all()


def test_a_shape_without_expression_put_on_again_is_itself(portrait):
    as_they_are = EyesConfig(opened=1.0, closing=0.0, sideways=1.0, upwards=1.0, brows=0.0)
    what = invention(portrait)
    neutral = own_neutral(portrait)
    worn, seen = wearing(neutral, what.head, neutral, as_they_are), what.head.aligned
    lids = np.array(LIDS).ravel()
    assert np.allclose(np.delete(worn, lids, axis=0), np.delete(seen, lids, axis=0), atol=1e-6)
    for upper, lower in LIDS:  # their own lids, as far open as they are
        apart = [np.linalg.norm(shape[list(upper)] - shape[list(lower)], axis=1).mean() for shape in (worn, seen)]
        assert apart[0] == pytest.approx(apart[1], rel=0.02)


def test_how_wide_the_eyes_of_a_person_are_is_not_told(portrait):
    what, neutral = invention(portrait), own_neutral(portrait)
    narrow = neutral.copy()
    upper, lower = (np.array([list(eye[i]) for eye in LIDS]).ravel() for i in (0, 1))
    narrow[upper] += 0.2 * (neutral[lower] - neutral[upper])
    narrow[lower] -= 0.2 * (neutral[lower] - neutral[upper])
    worn = [wearing(what.looks.shape, replace(what.head, aligned=own), own) for own in (neutral, narrow)]
    assert np.allclose(worn[0], worn[1], atol=1e-6)


def test_eyes_are_drawn_wider_and_looking_further_and_nothing_else_is(portrait):
    what = invention(portrait)
    neutral = own_neutral(portrait)
    worn, seen = wearing(neutral, what.head, neutral, replace(EYES_DRAWN, brows=0.0)), what.head.aligned
    eyes = sorted({*EYES[0], *EYES[1], *IRISES[0], *IRISES[1]})
    assert np.allclose(np.delete(worn, eyes, axis=0), np.delete(seen, eyes, axis=0), atol=1e-6)
    for ring, iris in zip(EYES, IRISES, strict=True):
        up, down, middle = ring[4], ring[12], seen[[ring[0], ring[8]]].mean(axis=0)
        wider = np.linalg.norm(worn[up] - worn[down]) / np.linalg.norm(seen[up] - seen[down])
        assert 1 < wider < EYES_DRAWN.opened
        further = [EYES_DRAWN.sideways, EYES_DRAWN.upwards, 1.0]
        assert np.allclose(worn[iris[0]] - middle, (seen[iris[0]] - middle) * further, atol=1e-6)


def test_brows_are_drawn_higher_above_the_eyes(portrait):
    what = invention(portrait)
    low, high = (wearing(what.looks.shape, what.head, own_neutral(portrait), EyesConfig(brows=b)) for b in (0.0, 0.15))
    for brow, corner in ((105, 33), (334, 263)):
        rise = (high[corner] - high[brow] - low[corner] + low[brow])[1]
        assert 1 < rise < 4  # pixels of a face of about 200


def test_specks_below_the_lip_of_a_large_head_are_taken_out_and_nothing_else_is(portrait):
    what = invention(portrait)
    points = 512 * what.points
    rng = np.random.default_rng(0)
    plain = rng.integers(120, 130, (512, 512, 3)).astype(np.uint8)
    speckled = plain.copy()
    x, y = np.rint(0.7 * points[17] + 0.3 * points[200]).astype(int)
    speckled[y - 1 : y + 2, x - 10 : x + 10 : 3] = 0
    _remove_specks(speckled, points)
    assert (speckled[y - 1 : y + 2, x - 10 : x + 10] > 110).all()
    low, high = np.floor(points[[61, 291, 17, 200]].min(axis=0)), np.ceil(points[[61, 291, 17, 200]].max(axis=0))
    outside = np.ones((512, 512), dtype=bool)
    outside[int(low[1]) : int(high[1]) + 1, int(low[0]) : int(high[0]) + 1] = False
    assert np.array_equal(speckled[outside], plain[outside])


def test_a_head_before_a_pale_wall_has_colour_and_one_in_a_grey_picture_has_none(portrait):
    what = invention(portrait)
    face = filled(portrait[0].shape, what.region.outline) > 0
    rng = np.random.default_rng(0)
    wall = (200 + rng.normal(0, 3, portrait[0].shape[:2])).clip(0, 255)

    def colour(tint):
        made = invented(np.rint(wall[..., None] + tint).astype(np.uint8), what)[face].astype(float)
        return np.abs(made - made.mean(axis=1, keepdims=True)).mean()

    assert colour([3.0, 0.0, -3.0]) > 5
    assert colour([0.0, 0.0, 0.0]) < 2


def test_colours_are_strengthened_without_a_jump_and_only_where_they_are_muted():
    known = np.ones((8, 8), dtype=np.float32)
    tinted = np.tile(np.array([1.0, 0.0, -1.0], dtype=np.float32), (8, 8, 1))  # on average 2/3 from grey
    gains = [colour_gain(strength * tinted, known) for strength in np.arange(0, 0.1, 0.0005, dtype=np.float32)]
    assert gains[0] == gains[-1] == 1
    assert max(gains) > 3
    assert np.abs(np.diff(gains)).max() < 0.5


def test_a_head_in_a_hazy_room_is_in_focus(portrait):
    what = invention(portrait)
    pixels, face = portrait[0], filled(portrait[0].shape, what.region.outline) > 0

    def detail(haze):
        mean = pixels.mean(axis=(0, 1))
        made = invented(np.rint(mean + (pixels - mean) * (1 - haze)).astype(np.uint8), what)
        return np.abs(cv2.Laplacian(cv2.cvtColor(made, cv2.COLOR_RGB2GRAY), cv2.CV_32F))[face].mean()

    assert detail(0.7) > 9  # 7.7 where the network is shown the haze as it is
    assert detail(0.0) > detail(0.7)


def test_detail_is_strengthened_without_a_jump_only_where_there_is_little_and_nothing_hidden_counts():
    rng = np.random.default_rng(0)
    known = np.ones((256, 256), dtype=np.float32)
    known[64:192, 64:192] = 0
    noise = rng.normal(0, 1, (256, 256, 3)).astype(np.float32)
    shown = [(share * noise).clip(-1, 1) * known[..., None] for share in np.arange(0.01, 0.5, 0.005)]
    gains = [detail_gain(picture, known) for picture in shown]
    assert gains[0] > 2
    assert gains[-1] == 1
    assert np.abs(np.diff(gains)).max() < 0.7
    assert with_detail(shown[-1], known, 1.0) is shown[-1]
    stronger = with_detail(shown[0], known, 2.0)
    assert not stronger[known == 0].any()
    np.testing.assert_allclose(stronger[known == 1], 2 * shown[0][known == 1], atol=0.02)


def test_half_shut_eyes_are_drawn_more_than_half_shut(portrait):
    what = invention(portrait)
    neutral = what.head.aligned  # with eyes as open as they are at rest
    half = neutral.copy()
    for eye in LIDS:
        upper, lower = (neutral[list(lid)] for lid in eye)
        half[list(eye[0])], half[list(eye[1])] = upper + (lower - upper) / 4, lower - (lower - upper) / 4
    open_, shut = (wearing(neutral, replace(what.head, aligned=seen), neutral) for seen in (neutral, half))
    for eye in LIDS:
        apart = [np.linalg.norm(worn[list(eye[0])] - worn[list(eye[1])], axis=1).mean() for worn in (open_, shut)]
        assert apart[1] == pytest.approx(0.5 ** (1 + EYES_DRAWN.closing) * apart[0])


def test_colours_lie_in_faces_of_the_bank_as_in_the_mean_face():
    """Donors shine, so that beside orange cheeks forehead and nose were grey; and heavy brows became heavier."""
    model, faces = face_model(), bank()
    mean = 255 * model.warp.image(model.textures(np.zeros((1, model.n_codes)))[0])

    def blue(picture, point):
        x, y = np.rint(model.base[point, :2]).astype(int)
        part = picture[y - 6 : y + 7, x - 6 : x + 7].reshape(-1, 3).mean(axis=0)
        return np.log(part[2] / part[1])

    textures = [faces.texture(i) for i in range(len(faces.women))]
    for point in (151, 4, 199):  # forehead, nose, chin; beside a cheek
        apart = [blue(texture, point) - blue(texture, 50) for texture in textures]
        assert np.mean(apart) == pytest.approx(blue(mean, point) - blue(mean, 50), abs=0.06)
    brow, above = (np.rint(model.base[point, :2]).astype(int) for point in (105, 104))
    assert brow[1] > above[1]
    dark = [
        np.log(t[above[1], above[0]].mean() / t[brow[1] : brow[1] + 7, brow[0]].mean(axis=1).min()) for t in textures
    ]
    assert np.median(dark) < 0.45


def test_surrogates_match_in_gender_tone_and_about_in_age():
    faces = bank()
    assert len(faces.shapes) > 100
    assert faces.women.sum() > 40
    assert (~faces.women).sum() > 40
    for woman, born, tone in ((True, 1990.0, -0.9), (False, 1950.0, -0.4)):
        drawn = [draw_surrogate(woman, born, Skin(tone, tone), np.random.default_rng(seed)) for seed in range(6)]
        assert len({one.looks.texture.tobytes() for one in drawn}) == 6
        for one in drawn:
            drawn_tone = tone + SURROGATE.finished_darker
            assert skin_of(one.looks.texture).brightness == pytest.approx(drawn_tone, abs=0.06)


def test_skin_has_one_colour_whatever_the_light_was():
    texture = bank().texture(0)
    blue = texture * [0.8, 0.9, 1.2]
    colour = face_model().evener.skin_colour
    assert np.allclose(colour(toned(texture, ORDINARY)), colour(toned(blue, ORDINARY)), atol=2.0)


def faces_of_tones():
    """A light and a dark texture of the bank, each the median of its half."""
    faces = bank()
    order = np.argsort(faces.tones)
    return [faces.texture(order[len(order) * share // 8]) for share in (7, 1)]


@pytest.mark.parametrize(
    "lit",
    [
        pytest.param(lambda texture: texture * 0.4, id="dim"),
        pytest.param(lambda texture: (texture * [1.12, 1.0, 0.82]).clip(0, 255), id="warm"),
        pytest.param(lambda texture: np.repeat(texture.mean(axis=2, keepdims=True), 3, axis=2), id="grey"),
    ],
)
def test_no_light_gives_skin_another_tone(lit):
    light, dark = faces_of_tones()
    assert skin_of(light).tone > skin_of(dark).tone + 0.3
    for texture in (light, dark):
        assert skin_of(lit(texture)).tone == pytest.approx(skin_of(texture).tone, abs=0.12)


def test_dim_light_makes_skin_darker():
    light, _ = faces_of_tones()
    assert skin_of(light).brightness - skin_of(light * 0.4).brightness == pytest.approx(-np.log(0.4), abs=0.02)


def test_whoever_stands_in_the_dim_gets_a_face_of_their_tone():
    dim = draw_surrogate(False, 1970.0, Skin(-1.0, -0.4), np.random.default_rng(0))
    dark = draw_surrogate(False, 1970.0, Skin(-1.0, -1.0), np.random.default_rng(0))
    red, green, _ = face_model().evener.skin_colour(dim.looks.texture)
    other_red, other_green, _ = face_model().evener.skin_colour(dark.looks.texture)
    assert skin_of(dim.looks.texture).brightness == pytest.approx(-1.0, abs=0.06)
    assert red / green < other_red / other_green - 0.1


def test_expressions_are_read_by_name():
    blendshapes = np.zeros(52)
    blendshapes[BLENDSHAPES.index("jawOpen")] = 0.7
    assert expression_of(blendshapes).max() == pytest.approx(0.7)


def test_the_stored_mesh_is_the_one_that_would_be_built():
    sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
    from coarse_mesh import coarse_mesh

    picks, triangles = coarse_mesh()
    stored_picks, warp, _ = _mesh()
    assert np.array_equal(picks, stored_picks)
    assert np.array_equal(triangles, warp.triangles)


@pytest.mark.parametrize("shift", [0.0, 0.25, 0.5, 1.0])
def test_every_pixel_that_is_taken_away_is_invented(shift):
    """Also where an outline lies between two pixels: what is rounded another way would stay as it was."""
    around = np.linspace(0, 2 * np.pi, 30, endpoint=False)
    ring = np.round(2 * np.stack([np.cos(around), np.sin(around)], axis=1) * [31, 40]) / 2
    for middle in ((60, 70), (61, 71), (3, 5), (118, 139)):
        region = Region(ring + middle + shift, np.array([[1 / 90, 0, 0], [0, 1 / 90, 0]]), 90.0)
        frame = np.full((140, 120, 3), 255, np.uint8)
        hidden = taken_away(frame.shape, [region.outline])
        was = hidden.copy()
        head = FinishedHead(np.zeros((478, 2)), np.zeros((128, 128, 3), np.uint8), 0.0)
        put(frame, hidden, region, head, still=False)
        assert not frame[was].any()
        assert not hidden.any()
