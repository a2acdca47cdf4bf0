"""Whether a detection is a face: second opinions on what the detector found.

One look of one detector takes buttons, wheels, ties and leaves for faces. Each detection is cut out upright at several
sizes, mirrored and closely framed. The detector looks at every crop again, and a second one, BlazeFace, at some: a face
is found again nearly as surely as at first, a print on cloth is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import cv2
import numpy as np

from ksame.arrays import ByteArray, FloatArray
from ksame.geometry import centre, side
from ksame.models import BlazeFace, Face, FaceDetector
from ksame.models.blazeface import SIDE
from ksame.scene.observe.config import DetectorConfig

# Crops for the detector: side of the face in pixels, side of the crop in sides of the face, whether mirrored.
_CROPS = (*((pixels, 3.0, False) for pixels in (32, 48, 64, 96, 128)), (64, 3.0, True), (64, 1.6, False))
_SECOND = ((2.0, False), (3.0, False), (4.0, False), (2.0, True), (3.0, True))  # side of the crop, whether mirrored
_ASIDE, _UNLIKE = 0.3, 1.5  # how far off, in sides, and how many times larger or smaller the face may be found again
_TILTED = 0.7  # radians; of a head tilted by 45 degrees the detector misjudges the tilt, by about so much
_ENOUGH = 192.0  # side of a face in pixels, from twice which on the picture is reduced first
_FAINT = 0.02  # score below which nothing counts as found again
_NOTHING = -3.0  # logit where BlazeFace considers no box of about that size there


class Verdict(IntEnum):
    """What the opinions come to; a face may rise in a later frame, never fall."""

    NO_FACE = 0
    UNCONFIRMED = 1
    FACE = 2


@dataclass(frozen=True)
class Opinions:
    """What is said of one detection."""

    score: float  # of the detector where it found it, in [0, 1]
    again: float  # of the detector in crops, on average; 0 for a crop in which it finds no such face
    second: float  # logit of BlazeFace, on average over crops

    def verdict(self, config: DetectorConfig) -> Verdict:
        """Weigh the opinions.

        Examples
        --------
        >>> opinions = Opinions(0.9, 0.9, 2.5), Opinions(0.8, 0.7, 0.4), Opinions(0.6, 0.3, 0)
        >>> [each.verdict(DetectorConfig()).name for each in opinions]
        ['FACE', 'UNCONFIRMED', 'NO_FACE']
        """
        if self.again >= config.again or self.second >= config.second:
            return Verdict.FACE
        evidence = float(np.dot(config.weights, (self.score, self.again, self.second)))
        in_doubt = evidence >= config.evidence or self.score >= config.never_dropped
        return Verdict.UNCONFIRMED if in_doubt else Verdict.NO_FACE


class Examiner:
    """Asks for second opinions: of the detector that finds faces, and of BlazeFace."""

    def __init__(self, detector: FaceDetector) -> None:
        self._detector = detector
        self._blazeface = BlazeFace()

    def judge(self, rgb: ByteArray, detection: Face, config: DetectorConfig) -> Verdict:
        """Say whether a detection is a face.

        What is none at first sight, or in doubt, is looked at tilted too, which counts only if it is a face then.
        """
        rgb, detection = _reduced(rgb, detection)
        second = self._second(rgb, detection, 0.0)
        if second >= config.second:
            return Verdict.FACE  # whatever the others say, and they take longer
        verdict = Opinions(detection.score, self._again(rgb, detection, 0.0), second).verdict(config)
        if verdict is not Verdict.FACE:
            for tilt in (-_TILTED, _TILTED):
                if self._second(rgb, detection, tilt) >= config.second:
                    return Verdict.FACE
                if self._again(rgb, detection, tilt, config.again) >= config.again:
                    return Verdict.FACE
        return verdict

    def examine(self, rgb: ByteArray, detection: Face) -> Opinions:
        """Return all opinions on a detection."""
        rgb, detection = _reduced(rgb, detection)
        return Opinions(detection.score, self._again(rgb, detection, 0.0), self._second(rgb, detection, 0.0))

    def _again(self, rgb: ByteArray, detection: Face, tilt: float, wanted: float = 0.0) -> float:
        """Return the opinion of the detector on crops; 0 as soon as it cannot come to what is wanted."""
        scores: list[float] = []
        for pixels, reach, flip in _CROPS:
            if sum(scores) + len(_CROPS) - len(scores) < wanted * len(_CROPS):
                return 0.0
            crop = _cut(rgb, detection, tilt, pixels, reach, flip=flip)
            faces = self._detector.detect(crop, score=_FAINT)
            boxes = np.array([face.box for face in faces]).reshape(-1, 4)
            again = np.array([face.score for face in faces])
            scores.append(again[_in_the_middle(boxes, len(crop), pixels)].max(initial=0.0))
        return float(np.mean(scores))

    def _second(self, rgb: ByteArray, detection: Face, tilt: float) -> float:
        """Return the opinion of BlazeFace on crops."""
        opinions = []
        for reach, flip in _SECOND:
            boxes, logits = self._blazeface.detect(_cut(rgb, detection, tilt, SIDE / reach, reach, flip=flip))
            opinions.append(logits[_in_the_middle(boxes, SIDE, SIDE / reach)].max(initial=_NOTHING))
        return float(np.mean(opinions))


def _reduced(rgb: ByteArray, detection: Face) -> tuple[ByteArray, Face]:
    """Reduce a picture with a large face once, not for every crop, to still more than any crop shows of it."""
    times = int(detection.side / _ENOUGH)
    if times < 2:
        return rgb, detection
    height, width = (length // times for length in rgb.shape[:2])
    whole = rgb[: height * times, : width * times]
    small = np.asarray(cv2.resize(whole, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)
    x, y, wide, high = detection.box
    shift = 0.5 / times - 0.5
    box = (x / times + shift, y / times + shift, wide / times, high / times)
    return small, Face(box, detection.landmarks / times + shift, detection.score)


def _in_the_middle(boxes: FloatArray, length: int, face: float) -> FloatArray:
    """Tell which boxes, (n, 4), are about the middle of a crop and about as large as the face, (n,)."""
    off = np.hypot(*(boxes[:, :2] + boxes[:, 2:] / 2 - (length - 1) / 2).T) / face
    size = boxes[:, 2:].mean(axis=1) / face
    return np.asarray((off < _ASIDE) & (size > 1 / _UNLIKE) & (size < _UNLIKE))


def _cut(rgb: ByteArray, detection: Face, tilt: float, face: float, reach: float, *, flip: bool) -> ByteArray:
    """Cut out a square about a face, turned upright, in which it has a side of ``face`` pixels; black outside."""
    box, roll = np.array(detection.box), detection.roll + tilt
    scale, length = face / max(side(box), 4.0), round(face * reach)
    reached = (0.5 * length / scale + 1 / scale) * (abs(np.cos(roll)) + abs(np.sin(roll)))  # turned as it is
    x, y = (max(0, int(low)) for low in centre(box) - reached)
    right, bottom = (int(high) + 2 for high in centre(box) + reached)
    part = rgb[y : max(y + 1, bottom), x : max(x + 1, right)]
    middle, shrink = centre(box) - (x, y), max(1, int(1 / scale))
    if shrink > 1:  # the warp does not average
        small = tuple(max(1, round(size / shrink)) for size in part.shape[1::-1])
        middle = (middle + 0.5) * [small[0] / part.shape[1], small[1] / part.shape[0]] - 0.5
        part = np.asarray(cv2.resize(part, small, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        scale *= shrink
    cos, sin = np.cos(roll) * scale, np.sin(roll) * scale
    turn = np.array([[cos, sin], [-sin, cos]])
    matrix = np.column_stack([turn, (length - 1) / 2 - turn @ middle])
    crop = cv2.warpAffine(part, matrix, (length, length), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)
    return np.ascontiguousarray(crop[:, ::-1] if flip else crop, dtype=np.uint8)
