"""What there is to choose from, in the words of the registries."""

from __future__ import annotations

from ksame.app.audit import PIXEL_ATTACKERS
from ksame.heads.covers import COVERS
from ksame.methods.entry import Entry
from ksame.models import RECOGNISERS
from ksame.recipes import METHODS
from ksame.scene.certificate import SOUND
from ksame.studio.state import Choices, Method


def offered(max_upload: int) -> Choices:
    """Return methods, covers, sounds and attackers."""
    return Choices(
        scenes=tuple(_in_scenes(entry) for entry in METHODS.values() if entry.scenes.works),
        faces=tuple(_method(entry) for entry in METHODS.values() if entry.for_sets),
        covers=tuple((cover.name, cover.summary, cover.leaks) for cover in COVERS.values()),
        sounds=tuple(SOUND.items()),
        attackers=(
            *((name, "compares pixels") for name in PIXEL_ATTACKERS),
            *((name, "a trained network") for name in RECOGNISERS),
        ),
        max_upload=max_upload,
    )


def _method(entry: Entry) -> Method:
    return Method(
        name=entry.name,
        summary=entry.summary,
        promise=entry.promise,
        bound=entry.bound,
        needs=entry.needs,
        masks=entry.masks,
        takes_k="k" in entry.parameters,
        level="" if entry.level is None else entry.level.help,
    )


def _in_scenes(entry: Entry) -> Method:
    """Return a method as it works on photographs and video, where the bounds for face sets do not hold."""
    shared = f"the people of a group share one surrogate identity: {entry.scenes.shares}"
    bound = "none; the certificate counts the real people who share it, and a recogniser judges the likeness"
    said = {"promise": "nothing", "bound": "none"} if entry.masks else {"promise": shared, "bound": bound}
    other = {"needs": "", "takes_k": not entry.masks, "draws": entry.scenes.judged}
    return _method(entry).model_copy(update={**said, **other})
