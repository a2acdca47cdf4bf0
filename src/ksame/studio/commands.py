"""What a project asks for, as commands of ``ksame``: the studio does nothing that these do not do."""

from __future__ import annotations

from pathlib import Path

from ksame.errors import UsageError
from ksame.recipes import METHODS
from ksame.scene.config import JobConfig
from ksame.studio.projects import JOBS, TRACKS
from ksame.studio.state import Action, Project, Settings, Wish
from ksame.vault import Recipients

OUT, ZIP, REVIEW, REPORT = "out", "publish.zip", "review.png", "report.html"
LINKAGE, VAULT = "link-table.json", "vault.age"


def command(project: Project, action: Action, number: int, source: int | None = None) -> list[str]:
    """Return the words after ``ksame``, for the folder of the project.

    Parameters
    ----------
    number : int
        Of the job; it writes below ``jobs``.
    source : int, optional
        The job whose outputs are audited.
    """
    place = f"{JOBS}/{number:04d}"
    if project.kind == "audit" and action == "run":
        return _audit(project.settings, "originals", "released", place)
    if action == "audit" and project.kind != "audit":
        if source is None:
            raise UsageError("There is nothing to audit yet: run first.")
        before = "media" if project.kind == "scene" else "faces"
        made = f"{JOBS}/{source:04d}"
        view = ["--view", "faces"] if project.kind == "faces" else []
        return [*_audit(project.settings, before, f"{made}/{OUT}", place), "--linkage", f"{made}/{LINKAGE}", *view]
    if project.kind == "scene" and action == "find":
        return ["people", "media/", "--tracks", TRACKS, "--json"]
    if project.kind == "scene" and action == "run":
        beside = ["--tracks", TRACKS, "--review", f"{place}/{REVIEW}", *_undoing(project.settings, place)]
        return ["deidentify", "media/", "-o", f"{place}/{OUT}/", *_scene_options(project), *beside, "--json"]
    if project.kind == "faces" and action == "run":
        options = [*_face_options(project.settings), *_undoing(project.settings, place)]
        return ["release", "faces", "-o", f"{place}/{OUT}", *options, "--json"]
    raise UsageError(f"A project of this kind has nothing to {action}.")


def scene_config(project: Project) -> JobConfig:
    """Return the settings of a scene as ``ksame deidentify`` makes them of the command."""
    from ksame.heads.covers import COVERS
    from ksame.scene.media import EncoderConfig

    chosen = project.settings
    return JobConfig(
        method=chosen.method,
        k=chosen.k,
        cover=COVERS[chosen.cover],
        level=chosen.level,
        keep=_who(project, "keep"),
        mask=_who(project, "mask"),
        another=_another(project),
        encoding=EncoderConfig(audio=chosen.audio),
    )


def check(project: Project) -> None:
    """Refuse settings with which no command would begin."""
    chosen = project.settings
    if chosen.recipient is not None:
        try:
            Recipients((chosen.recipient,))
        except UsageError as error:
            raise UsageError(
                "A vault is sealed for a public key of age: 62 letters and digits that begin with age1. This is "
                "something else, and was not kept. A secret key stays with its owner."
            ) from error
    if project.kind == "scene":
        scene_config(project)
    elif project.kind == "faces":
        entry = METHODS.choose(chosen.method, lambda entry: entry.for_sets)
        entry.build(**({"k": chosen.k} if "k" in entry.parameters else {}), **entry.at(chosen.level))


def _who(project: Project, wish: Wish) -> tuple[str, ...]:
    return tuple(name for name, wanted in project.wishes.items() if wanted == wish)


def _another(project: Project) -> tuple[str, ...]:
    """Return whose face is drawn again: nobody's who has none, nor where the method draws none."""
    draws = METHODS[project.settings.method].scenes.judged
    return tuple(name for name in project.another if draws and project.wishes.get(name, "replace") == "replace")


def _undoing(chosen: Settings, place: str) -> list[str]:
    """Return options for what undoes the work: the link table, and a vault where there is a key to seal it for."""
    words = ["--link-table", f"{place}/{LINKAGE}"]
    return (
        words if chosen.recipient is None else [*words, "--vault", f"{place}/{VAULT}", "--recipient", chosen.recipient]
    )


def _scene_options(project: Project) -> list[str]:
    chosen = project.settings
    words = ["--method", chosen.method, "--k", str(chosen.k), "--cover", chosen.cover, "--audio", chosen.audio]
    words += [] if chosen.level is None else ["--level", str(chosen.level)]
    for name in _who(project, "keep"):
        words += ["--keep", name]
    for name in _who(project, "mask"):
        words += ["--mask", name]
    for name in _another(project):
        words += ["--another", name]
    return [*words, "--seed", str(chosen.seed)]


def _face_options(chosen: Settings) -> list[str]:
    entry = METHODS.choose(chosen.method, lambda entry: entry.for_sets)
    words = ["--method", chosen.method]
    words += ["--k", str(chosen.k)] if "k" in entry.parameters else []
    words += [] if chosen.level is None else ["--level", str(chosen.level)]
    words += [] if chosen.select is None else ["--select", chosen.select, "--small-classes", chosen.small_classes]
    words += ["--reference", "builtin"] if "reference" in entry.needs else []
    return [*words, "--seed", str(chosen.seed)]


def _audit(chosen: Settings, before: str, after: str, place: str) -> list[str]:
    return ["audit", before, after, "-o", f"{place}/{REPORT}", "--attackers", chosen.attackers, "--json"]


def resumed(words: list[str]) -> list[str]:
    """Return the command that goes on with an interrupted one; what cannot go on begins anew."""
    return [*words, "--resume"] if words[0] == "deidentify" and "--resume" not in words else words


def outputs(folder: Path) -> list[tuple[Path, bool, str]]:
    """Return what a job wrote below its folder: where, whether it may be published, and what it is.

    A new kind of file that jobs write gets its line here.
    """
    out = folder / OUT
    published = sorted(path for path in out.rglob("*") if path.is_file())
    written = [(folder / ZIP, True, "everything to publish, in one file")]
    written += [(path, True, _about(path)) for path in published]
    written += [
        (folder / f"{OUT}.at-risk.csv", False, "frames to look at before publishing"),
        (folder / REPORT, False, "the audit's report; it shows originals"),
        (folder / "audit.json", False, "the audit's numbers"),
        (folder / REVIEW, False, "everyone before and after; it shows originals"),
        (folder / LINKAGE, False, "who became whom; it undoes the work"),
        (folder / VAULT, False, "the vault; whoever has the secret key undoes the work with it"),
    ]
    return [each for each in written if each[0].is_file()]


def _about(path: Path) -> str:
    return {"certificate.json": "the certificate", "contact-sheet.png": "all faces on one sheet"}.get(path.name, "")
