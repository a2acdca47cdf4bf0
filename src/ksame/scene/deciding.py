"""Get to know everyone in a batch, and decide who becomes whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ksame.models import SFace
from ksame.models.finisher import finisher
from ksame.progress import Track
from ksame.scene.choosing import Choice, make_plans
from ksame.scene.counting import Witness
from ksame.scene.masking import MASKS
from ksame.scene.media import Media
from ksame.scene.memory import give_back_memory
from ksame.scene.people import treatments
from ksame.scene.preparing import Prepared, prepare, subjects_of
from ksame.scene.running import Brake, Counted, each
from ksame.scene.track import People
from ksame.scene.track.tracks import Tracks

if TYPE_CHECKING:
    from ksame.scene.pipeline import Options

_KNOWING = "getting to know everyone"


def decide(
    files: Sequence[tuple[Media, Tracks]],
    everyone: People,
    options: Options,
    recogniser: SFace,
    seed: int,
    brake: Brake,
    track: Track,
) -> Choice:
    """Get to know everyone and decide who becomes whom."""
    wishes = treatments(
        everyone.people,
        keep=options.keep,
        only=options.only,
        mask=options.mask,
        strangers=everyone.strangers,
        unsure=everyone.unsure,
    )
    known: list[Prepared] = []
    if options.method not in MASKS:
        inner = track if len(files) == 1 else brake.track
        witness = Witness(options.detector)

        def one(file: tuple[Media, Tracks]) -> Prepared:
            media, cast = file
            people = {person.name for person in cast.people}
            return prepare(inner(Counted(media), _KNOWING), cast, recogniser, witness, people=people)

        known = each(files, one, options.workers or 1, brake, track, _KNOWING)
        give_back_memory()
    return make_plans(
        wishes,
        subjects_of(known, everyone) if known else (),
        recogniser,
        np.random.default_rng(seed),
        method=options.method,
        k=options.k,
        cover=options.cover,
        loop=options.loop,
        network=None if options.method in MASKS else finisher(options.device),
        track=track,
    )
