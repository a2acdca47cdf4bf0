"""Get to know everyone in a batch, and decide who becomes whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ksame.models import RECOGNISERS
from ksame.models.finisher import finisher
from ksame.progress import Track
from ksame.recipes import METHODS
from ksame.scene.choosing import LOOP, Choice, make_plans
from ksame.scene.counting import Witness
from ksame.scene.frames import Frames
from ksame.scene.identities import Loop
from ksame.scene.looking.storage import give_back_memory
from ksame.scene.media import Media
from ksame.scene.people import Everyone, treatments
from ksame.scene.preparing import Prepared, prepare, subjects_of
from ksame.scene.sightings import Cast

if TYPE_CHECKING:
    from ksame.scene.config import JobConfig

_KNOWING = "getting to know everyone"


def decide(
    files: Sequence[tuple[Media, Cast]],
    everyone: Everyone,
    options: JobConfig,
    seed: int,
    map_files: Callable[[Callable[[Any], Prepared], Sequence[Any], str], list[Prepared]],
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
    loop = None
    if not METHODS[options.method].masks:
        loop = Loop(RECOGNISERS[LOOP].build(), finisher(options.device), options.cover)
        recogniser = loop.recogniser
        witness = Witness(options.looking)

        def one(file: tuple[Media, Cast]) -> Prepared:
            media, cast = file
            people = {person.name for person in cast.people}
            return prepare(Frames(media), cast, recogniser, witness, people=people)

        known = map_files(one, files, _KNOWING)
        give_back_memory()
    return make_plans(
        wishes,
        subjects_of(known, everyone) if known else (),
        loop,
        np.random.default_rng(seed),
        method=options.method,
        k=options.k,
        judged=options.judged,
        track=track,
    )
