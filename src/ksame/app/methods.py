"""``ksame methods``: what there is to choose from."""

from __future__ import annotations

from rich.table import Column, Table

from ksame.app import talk
from ksame.app.options import AsJson


@talk.guarded
def methods_command(as_json: AsJson = False) -> None:
    """List every method, cover and recogniser: what it does, what it promises and needs, and its origin."""
    from ksame.heads import COVERS
    from ksame.models import RECOGNISERS
    from ksame.recipes import METHODS

    if as_json:
        told = ("name", "summary", "promise", "bound", "needs", "paper", "codings", "masks")
        talk.emit(
            [
                {
                    **{field: getattr(entry, field) for field in told},
                    "accepts": list(entry.parameters),
                    "params": entry.schema(),
                    "scenes": entry.scenes.works,
                }
                for entry in METHODS.values()
            ]
        )
        return
    table = Table(
        *(Column("name", no_wrap=True), "what it does", "promise", "bound on recognition", "needs", "paper", "works on")
    )
    for entry in METHODS.values():
        places = [place for place, works in (("face sets", entry.for_sets), ("scenes", entry.scenes.works)) if works]
        words = (entry.summary, entry.promise, entry.bound, entry.needs, entry.paper)
        table.add_row(entry.name, *words, ", ".join(places))
    talk.show(table)
    covers = Table(Column("cover", no_wrap=True), "what is invented", "what it leaves")
    for cover in COVERS.values():
        covers.add_row(cover.name, cover.summary, cover.leaks)
    talk.show(covers)
    recognisers = Table(Column("recogniser", no_wrap=True), "what it is", "weights")
    for each in RECOGNISERS.values():
        recognisers.add_row(each.name, each.summary, each.licence)
    talk.show(recognisers)
    talk.say(
        "Every method whose people share faces also takes --select LABEL. All promises are about the face region only. "
        "In scenes a mask promises nothing, and others promise only that the people of a group share one surrogate "
        "identity."
    )
