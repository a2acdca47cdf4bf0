"""What ``ksame deidentify`` says about what it wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Column, Table

from ksame.app import talk
from ksame.scene.at_risk import WHOLE_FILE, count_risks
from ksame.scene.certificate import SceneCounts
from ksame.scene.decide import Treatment
from ksame.scene.media.images import natural_order
from ksame.scene.release import MediaRelease
from ksame.scene.result import FileResult, JobResult
from ksame.scene.track.tracks import in_order

_SHOWN = 20
"""Stretches at risk that are printed; the file has all of them."""


def _name(file: FileResult, release: MediaRelease) -> str:
    return file.output.relative_to(release.paths.certificate.parent).as_posix()


def _people(result: JobResult, done: FileResult, *, instead: bool | None, treatment: Treatment) -> list[str]:
    unchanged = {shown.person for shown in done.shown}
    plans = {name: result.plan.decisions[name] for name in done.people if name not in unchanged}
    treated = {name: plan for name, plan in plans.items() if plan.treatment is treatment}
    return [name for name, plan in treated.items() if instead is None or plan.masked_instead is instead]


def _there(result: JobResult, done: FileResult, *, sure: bool) -> list[str]:
    """Return who was found in a file, also if the tracks no longer have them: people, or what is perhaps nobody."""
    confirmed = {name: name not in result.people.unconfirmed for name in done.people}
    confirmed |= {shown.person: shown.confirmed for shown in done.shown}
    return [name for name in sorted(confirmed, key=in_order) if confirmed[name] is sure]


def _in_order(release: MediaRelease, media: Sequence[str]) -> list[FileResult]:
    """Return what became of each file in the order in which they were named; the job's own is that of their hashes."""

    def place(done: FileResult) -> tuple[int, Any]:
        name = release.name(done.source)
        named = (i for i, text in enumerate(media) if _names(text, name))
        return next(named, len(media)), natural_order(Path(name))

    return sorted(release.files, key=place)


def _names(text: str, name: str) -> bool:
    """Tell whether what was typed (a file, a folder, a pattern) names a file."""
    return name == text or name.startswith(f"{text.rstrip('/')}/") or fnmatch(name, text)


def for_machines(release: MediaRelease, media: Sequence[str] = ()) -> dict[str, Any]:
    """Return the result as plain data. It names originals, so it is for the publisher's eyes."""
    result, places = release.result, release.paths
    return {
        "schema": "ksame/deidentify",
        "version": 1,
        "certificate_file": release.name(places.certificate),
        "at_risk_file": release.name(places.at_risk) if any(done.at_risk for done in result.files) else None,
        "certificate": release.certificate.model_dump(mode="json", by_alias=True, exclude={"files"}),
        "files": [
            {
                "source": release.name(done.source),
                "output": release.name(done.output),
                "frames": done.n_frames,
                "people": _there(result, done, sure=True),
                "not_sure": _there(result, done, sure=False),
                "replaced": _people(result, done, instead=None, treatment=Treatment.REPLACE),
                "masked": _people(result, done, instead=False, treatment=Treatment.MASK),
                "masked_instead": _people(result, done, instead=True, treatment=Treatment.MASK),
                "kept": [shown.person for shown in done.shown],
                "kept_because": {shown.person: shown.reason for shown in done.shown},
                "lost": list(done.losses),
                "frames_at_risk": count_risks([done.at_risk])["frames_at_risk"],
                "at_risk": [
                    {"person": r.person, "frames": [r.first, r.last], "seconds": [r.start, r.end], "reason": r.reason}
                    for r in done.at_risk
                ],
            }
            for done in _in_order(release, media)
        ],
        "unreadable": {release.name(source): reason for source, reason in result.failed.items()},
    }


def show(release: MediaRelease, media: Sequence[str] = ()) -> None:
    """Print the summary; ``media`` are the files as they were named."""
    result, places = release.result, release.paths
    talk.say_table(_table(release, media))
    for words in (*_what_became(release.certificate.counts), *_protection(result)):
        talk.say(words)
    risks = [(escape(_name(done, release)), risk) for done in release.files for risk in done.at_risk]
    for name, risk in risks[:_SHOWN]:
        if risk.person == WHOLE_FILE:
            talk.say(f"[yellow]at risk[/] {name}: {risk.reason}; whoever is there is as they were.")
            continue
        when = f"{clock(risk.start)}–{clock(risk.end)}" if risk.last > risk.first else clock(risk.start)
        frames = f"(frames {risk.first}–{risk.last})"
        talk.say(f"[yellow]at risk[/] {name} {when} {frames} {risk.person}: masked; {escape(risk.reason)}")
    if risks:
        more = f"{len(risks) - _SHOWN} more; all" if len(risks) > _SHOWN else "all"
        talk.say(f"[yellow]{more} in {escape(release.name(places.at_risk))}[/]: look at these before you publish.")
    for done in result.files:
        for loss in done.losses:
            talk.say(f"[yellow]lost[/] {escape(release.name(done.source))}: {escape(loss)}")
    for reason in result.failed.values():
        talk.say(f"[yellow]left out[/] {escape(reason)}")
    talk.say(f"certificate  {escape(release.name(places.certificate))}")


def _table(release: MediaRelease, media: Sequence[str]) -> Table:
    """Return a line for every file; columns in which nothing stands are left out."""
    result, columns = release.result, dict[str, list[str]]()
    for done in _in_order(release, media):
        cells = {
            "file": escape(_name(done, release)),
            "was": escape(release.name(done.source)),
            "frames": str(done.n_frames),
            "people": str(len(_there(result, done, sure=True))),
            "replaced": ", ".join(_people(result, done, instead=None, treatment=Treatment.REPLACE)),
            "masked": ", ".join(_people(result, done, instead=None, treatment=Treatment.MASK)),
            "kept": ", ".join(shown.person for shown in done.shown),
            "at risk": _risk_words(done),
        }
        for name, cell in cells.items():
            columns.setdefault(name, []).append(cell)
    filled = {name: cells for name, cells in columns.items() if any(cells)}
    table = Table(*(Column(name, overflow="fold") for name in filled))
    for row in zip(*filled.values(), strict=True):
        table.add_row(*(cell or "–" for cell in row))
    return table


def _what_became(counts: SceneCounts) -> Iterator[str]:
    """Say in plain words what became of everybody."""
    if not counts.people:
        yield "Nobody was surely found."
    else:
        parts = {
            "got the head of somebody who does not exist": counts.replaced,
            "masked": counts.masked,
            "masked because no safe replacement was found": counts.masked_instead,
            "left as they are": counts.kept,
        }
        told = "; ".join(f"{count} {what}" for what, count in parts.items() if count)
        yield f"{counts.people} {'person' if counts.people == 1 else 'people'}: {told}."
    if counts.not_sure:
        yield f"{counts.not_sure} more that is perhaps no face: masked, and counted as nobody."


def _risk_words(done: FileResult) -> str:
    counts = count_risks([done.at_risk])
    told = {"frames_at_risk": "{} frames", "frames_damaged": "{} black", "without_faces": "no face"}
    return ", ".join(words.format(counts[name]) for name, words in told.items() if counts[name])


def _protection(result: JobResult) -> Iterator[str]:
    """Say what protects whoever was replaced: how many share a face, and how little it is like theirs."""
    k_real, judge, like = result.plan.k_real(result.shown), result.plan.judge, result.plan.likeness
    if k_real == 1:
        yield (
            "[yellow]k_real = 1[/]: at least one new face stands for only 1 real person, so that sharing faces hides "
            "nobody here. What protects is how little the new face is like the old."
        )
    elif k_real is not None:
        yield (
            f"k_real = {k_real}: every new face stands for at least {k_real} real people, so that by the face alone "
            "nobody knows which of them it is."
        )
    if judge is not None and like:
        yield (
            f"likeness  {max(like.values()):.2f} at most; {judge.name} takes two faces for one person from "
            f"{judge.threshold:.2f} on"
        )


def clock(seconds: float) -> str:
    """Return a time as people read it.

    Examples
    --------
    >>> clock(75.25)
    '1:15.25'
    """
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02d}:{rest:05.2f}" if hours else f"{minutes}:{rest:05.2f}"
