"""What ``ksame deidentify`` says about what it wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.markup import escape
from rich.table import Column, Table

from ksame.app import talk
from ksame.scene.at_risk import WHOLE_FILE, AtRisk, count_risks
from ksame.scene.decide import Treatment
from ksame.scene.release import MediaRelease
from ksame.scene.result import FileResult, JobResult
from ksame.scene.track.tracks import in_order

_SHOWN = 20
"""Stretches at risk that are printed; the file has all of them."""


def _name(file: FileResult, release: MediaRelease) -> str:
    return file.output.relative_to(release.paths.certificate.parent).as_posix()


def _people(result: JobResult, done: FileResult, *, instead: bool | None, treatment: Treatment) -> list[str]:
    unchanged = {one.person for one in done.shown}
    plans = {name: result.plan.decisions[name] for name in done.people if name not in unchanged}
    return [
        name
        for name, plan in plans.items()
        if plan.treatment is treatment and (instead is None or plan.masked_instead is instead)
    ]


def _there(result: JobResult, done: FileResult, *, sure: bool) -> list[str]:
    """Return who was found in a file, also if the tracks no longer have them: people, or what is perhaps nobody."""
    found = {name: name not in result.everyone.unconfirmed for name in done.people}
    found |= {one.person: one.confirmed for one in done.shown}
    return [name for name in sorted(found, key=in_order) if found[name] is sure]


def for_machines(release: MediaRelease) -> dict[str, Any]:
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
                "kept": [one.person for one in done.shown],
                "kept_because": {one.person: one.reason for one in done.shown},
                "lost": list(done.losses),
                "frames_at_risk": count_risks([done.at_risk])["frames_at_risk"],
                "at_risk": [
                    {"person": r.person, "frames": [r.first, r.last], "seconds": [r.start, r.end], "reason": r.reason}
                    for r in done.at_risk
                ],
            }
            for done in result.files
        ],
        "unreadable": {release.name(source): reason for source, reason in result.failed.items()},
    }


def show(release: MediaRelease) -> None:
    """Print the summary."""
    result, places = release.result, release.paths
    names = (Column(name, overflow="fold") for name in ("file", "was"))
    table = Table(*names, "frames", "people", "replaced", "masked", "kept", "at risk")
    for done in result.files:
        masked = _people(result, done, instead=None, treatment=Treatment.MASK)
        table.add_row(
            escape(_name(done, release)),
            escape(release.name(done.source)),
            str(done.n_frames),
            str(len(_there(result, done, sure=True))),
            ", ".join(_people(result, done, instead=None, treatment=Treatment.REPLACE)) or "–",
            ", ".join(masked) or "–",
            ", ".join(one.person for one in done.shown) or "–",
            _risk_words(done),
        )
    talk.console.print(table)
    for words in _protection(result):
        talk.say(words)
    risks = list(_risks(release))
    for name, one in risks[:_SHOWN]:
        if one.person == WHOLE_FILE:
            talk.say(f"[yellow]at risk[/] {escape(name)}: {one.reason}; whoever is there is as they were.")
            continue
        when = f"{clock(one.start)}–{clock(one.end)}" if one.last > one.first else clock(one.start)
        talk.say(
            f"[yellow]at risk[/] {escape(name)} {when} (frames {one.first}–{one.last}) {one.person}: "
            f"masked; {escape(one.reason)}"
        )
    if risks:
        more = f"{len(risks) - _SHOWN} more; all" if len(risks) > _SHOWN else "all"
        talk.say(f"[yellow]{more} in {escape(release.name(places.at_risk))}[/]: look at these before you publish.")
    for done in result.files:
        for loss in done.losses:
            talk.say(f"[yellow]lost[/] {escape(release.name(done.source))}: {escape(loss)}")
    for reason in result.failed.values():
        talk.say(f"[yellow]left out[/] {escape(reason)}")
    talk.say(f"certificate  {escape(release.name(places.certificate))}")


def _risk_words(done: FileResult) -> str:
    counts = count_risks([done.at_risk])
    words = [f"{counts['frames_at_risk']} frames"] if counts["frames_at_risk"] else []
    words += [f"{counts['frames_damaged']} black"] if counts["frames_damaged"] else []
    words += ["no face"] if counts["without_faces"] else []
    return ", ".join(words) or "–"


def _protection(result: JobResult) -> Iterator[str]:
    """Say what protects whoever was replaced: how many share a face, and how little it is like theirs."""
    k_real, judge, like = result.plan.k_real(result.shown), result.plan.judge, result.plan.likeness
    if k_real == 1:
        yield (
            "[yellow]k_real = 1[/]: at least one new face is surely that of only 1 real person, so that sharing faces "
            "hides nobody here. What protects is how little the new face is like the old."
        )
    elif k_real is not None:
        yield f"k_real = {k_real}: every new face is shared by at least {k_real} real people."
    if judge is not None and like:
        yield (
            f"likeness  {max(like.values()):.2f} at most; {judge.name} takes two faces for one person from "
            f"{judge.threshold:.2f} on"
        )


def _risks(release: MediaRelease) -> Iterator[tuple[str, AtRisk]]:
    for done in release.files:
        for one in done.at_risk:
            yield _name(done, release), one


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
