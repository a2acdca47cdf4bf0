"""The demo with faces: people who do not exist and one real photograph, released and attacked."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.markup import escape
from rich.table import Table

from ksame.app import talk
from ksame.arrays import ByteArray
from ksame.attacks import AttackData, Eigenfaces, run_attack
from ksame.deidentify import deidentify
from ksame.errors import OutputError, whole_number
from ksame.faces import FaceSet
from ksame.faces.faceset import quantise
from ksame.faces.reading import encode_png
from ksame.faces.sheet import contact_sheet
from ksame.photographs import portrait_mesh, portrait_of
from ksame.pictures import read_rgb
from ksame.privacy.findings import passed
from ksame.privacy.linkage import Linkage
from ksame.privacy.release import Release, require_free, write_release
from ksame.recipes import recipe
from ksame.synthetic import synthetic
from ksame.verification import verify

_COMPARED = ("k-same-m", "k-same-pixel", "k-diff-furthest", "epsilon-k-map", "pixelate", "blur", "t-mask", "blackout")
_SCENARIOS = ("naive", "reverse", "parrot")
_MAX_PEOPLE = 10_000  # people in the demo
_SIZE = (224, 176)


def demo_faces(output: Path, *, people: int, k: int, force: bool) -> None:
    """Write a release and before/after sheets below ``output`` and print what attacks achieve."""
    shared = recipe("k-same-m", k=k, grouping="mdav+refine")
    whole_number("people", "demo", people, 2 * k, _MAX_PEOPLE)
    folder = output / "release"
    require_free(folder, force=force)
    require_free(output / "scenes" / "after", force=force)
    faces = _people(people)
    sheets: dict[str, ByteArray] = {}
    with talk.working("de-identifying"):
        release, linkage = deidentify(faces, shared, remember=False)
        sheets["before-after.png"] = _before_after(faces, release, linkage)
        for sheet, other in (
            ("k-same-pixel.png", recipe("k-same-pixel", k=k, grouping="mdav+refine")),
            ("someone-else.png", recipe("k-same-m", k=k, grouping="mdav+refine", surrogate="someone-else")),
        ):
            sheets[sheet] = _before_after(faces, *deidentify(faces, other, remember=False))
    write_release(release, folder, force=force)
    try:
        for name, picture in sheets.items():
            (output / name).write_bytes(encode_png(picture))
    except OSError as error:
        raise OutputError(f"{output}: cannot be written ({error.strerror}).") from error
    with talk.working("verifying"):
        good = passed(verify(folder, linkage=linkage, originals=faces))
    talk.show(_attack_table(faces, k))
    talk.say(escape(release.certificate.promise.rebuild().render()))
    listed = "\n".join(f"sheet        {escape(str(output / name))}" for name in sheets)
    talk.say(
        f"\nrelease      {escape(str(folder))} ({'verified' if good else 'NOT VERIFIED'})\n"
        f"certificate  {escape(str(folder / 'certificate.json'))}\n{listed}\n"
    )


def _people(n: int) -> FaceSet:
    """Return n - 1 people who do not exist, and Eileen Collins, of whom NASA gives away a photograph."""
    with as_file(files("ksame.data") / "astronaut.webp") as path:
        picture: NDArray[np.float32] = read_rgb(path) / np.float32(255)
    with talk.working("finding the face in the photograph"):
        mesh = portrait_mesh(picture)
    if isinstance(mesh, str):
        raise OutputError(f"The photograph of the demo shows no face: {mesh}. Run: ksame models verify.")
    real = portrait_of(picture, mesh, "astronaut")
    drawn = synthetic(n - 1, size=_SIZE, expressions=("smile",), progress=talk.progress)
    return FaceSet(
        np.concatenate([real.images, drawn.images]),
        np.concatenate([real.subjects, drawn.subjects]),
        np.concatenate([real.landmarks[:, :, :2], drawn.landmarks]),  # type: ignore[index]  # both are meshed
    )


def linked(release: Release, linkage: Linkage) -> FaceSet:
    """Return the released faces labelled with the people they stand for, as an attacker is scored against."""
    return FaceSet(release.faces, np.array([face.subject for face in linkage.faces]))


def _before_after(faces: FaceSet, release: Release, linkage: Linkage, shown: int = 10) -> ByteArray:
    """Return two rows: people, those of one group side by side, and what became of them; the photograph first."""
    became = {face.subject: release.faces[i] for i, face in enumerate(linkage.faces)}
    first = linkage.groups[str(faces.subjects[0])]
    groups = [linkage.groups[str(s)] for s in faces.subjects]
    order = sorted(range(len(faces)), key=lambda i: (groups[i] != first, groups[i], i))[:shown]
    before = quantise(faces.images[order])
    after = np.stack([became[str(faces.subjects[i])] for i in order])
    return contact_sheet(np.concatenate([before, after]), columns=len(order))


def _attack_table(faces: FaceSet, k: int) -> Table:
    table = Table("method", *_SCENARIOS, "promised", title=f"Recognised by Eigenfaces, of {len(faces)} people")
    for name in talk.progress(_COMPARED, "attacking"):
        params: dict[str, Any] = {"k": k} if name.startswith(("k-", "epsilon-k")) else {}
        release, linkage = deidentify(faces, recipe(name, **params), seed=1, remember=False)
        data = AttackData(faces, linked(release, linkage))
        rates = [f"{run_attack(scenario, Eigenfaces(), data).rank1:.1%}" for scenario in _SCENARIOS]
        bound = release.certificate.promise.bound
        held = "nothing" if bound is None else f"at most {bound:.1%}" if bound else "0 % in its own distance"
        table.add_row(name, *rates, held)
    return table
