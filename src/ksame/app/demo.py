"""The demo: people who do not exist, released and attacked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from ksame.app import talk
from ksame.attacks import SCENARIOS, Eigenfaces, attack
from ksame.deidentify import deidentify
from ksame.errors import OutputError, parameter_error
from ksame.faces import FaceSet, drawn_faces
from ksame.faces.faceset import ByteArray, quantise
from ksame.faces.reading import encode_png
from ksame.faces.sheet import contact_sheet
from ksame.privacy.linkage import Linkage
from ksame.privacy.release import Release, require_free, write_release
from ksame.recipes import recipe
from ksame.verification import passed, verify

_COMPARED = (
    "k-same-pixel",
    "k-same-eigen",
    "k-diff-furthest",
    "epsilon-k-map",
    "pixelate",
    "blur",
    "t-mask",
    "blackout",
)


def run_demo(output: Path, *, people: int, k: int, force: bool) -> None:
    """Write a release and a before/after sheet below ``output`` and print what attacks achieve."""
    if people < 2 * k:
        raise parameter_error("people", "demo", f"at least 2k = {2 * k}", people)
    require_free(output / "release", force=force)
    faces = drawn_faces(people, seed=2005)
    folder, picture = output / "release", output / "before-after.png"
    with talk.working("de-identifying"):
        release, linkage = deidentify(faces, recipe("k-same-pixel", k=k, grouping="mdav+refine"))
    write_release(release, folder, force=force)
    try:
        picture.write_bytes(encode_png(_before_after(faces, release, linkage)))
    except OSError as error:
        raise OutputError(f"{picture}: cannot be written ({error.strerror}).") from error
    good = passed(verify(folder, linkage=linkage, originals=faces))
    talk.show(_attack_table(faces, k))
    talk.say(escape(release.certificate.promise.rebuild().render()))
    talk.say(
        f"\nrelease      {escape(str(folder))} ({'verified' if good else 'NOT VERIFIED'})\n"
        f"certificate  {escape(str(folder / 'certificate.json'))}\n"
        f"before/after {escape(str(picture))}"
    )


def linked(release: Release, linkage: Linkage) -> FaceSet:
    """Return the released faces labelled with the people they stand for, as an attacker is scored against."""
    return FaceSet(release.faces, np.array([face.subject for face in linkage.faces]))


def _before_after(faces: FaceSet, release: Release, linkage: Linkage, shown: int = 12) -> ByteArray:
    became = {face.subject: release.faces[i] for i, face in enumerate(linkage.faces)}
    order = sorted(range(len(faces)), key=lambda i: linkage.groups[str(faces.subjects[i])])[:shown]
    before = quantise(faces.images[order])
    after = np.stack([became[str(faces.subjects[i])] for i in order])
    return contact_sheet(np.concatenate([before, after]), columns=len(order))


def _attack_table(faces: FaceSet, k: int) -> Table:
    table = Table("method", *SCENARIOS, "promised", title=f"Recognised by Eigenfaces, of {len(faces)} people")
    for name in talk.track(_COMPARED, "attacking"):
        params: dict[str, Any] = {"k": k} if name.startswith(("k-", "epsilon-k")) else {}
        release, linkage = deidentify(faces, recipe(name, **params), seed=1)
        released = linked(release, linkage)
        rates = [f"{attack(scenario, Eigenfaces(), faces, released).mean():.1%}" for scenario in SCENARIOS]
        bound = release.certificate.promise.bound
        held = "nothing" if bound is None else f"at most {bound:.1%}" + ("" if bound else ", naive only")
        table.add_row(name, *rates, held)
    return table
