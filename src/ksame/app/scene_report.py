"""What ``ksame deidentify`` writes beside its outputs, and what it says about them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Column, Table

from ksame.app import talk
from ksame.app.gathering import Places
from ksame.errors import ExitCode, PrivacyWarning
from ksame.scene.certificate import (
    SceneCertificate,
    certify,
    frames_at_risk,
    frames_damaged,
    kept_words,
    write_certificate,
    write_whole,
)
from ksame.scene.composing import Treatment
from ksame.scene.linkage import link
from ksame.scene.media.output import timeless
from ksame.scene.pipeline import Done, Options, Result
from ksame.scene.risk import WHOLE_FILE, AtRisk, as_csv
from ksame.scene.track.tracks import in_order
from ksame.scene.work import hashes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_SHOWN = 20
"""Stretches at risk that are printed; the file has all of them."""


def publish(
    result: Result,
    options: Options,
    wanted: Places,
    *,
    key: Ed25519PrivateKey | None,
    review: Path | None,
    link_table: Path | None,
    resumed: bool,
) -> None:
    """Write certificate, frames at risk, contact sheet and link table; the first two can be published."""
    certificate = certify(result, options, wanted.certificate.parent)
    if wanted.folder is not None:
        _retire(wanted.certificate, certificate)
    if any(done.at_risk for done in result.done):
        named = [(_name(done, wanted), done.at_risk) for done in result.done]
        write_whole(wanted.at_risk, as_csv(named).encode())
    else:
        wanted.at_risk.unlink(missing_ok=True)
    if review is not None:
        from ksame.scene.review import review_sheet, write_sheet

        with talk.working("making the contact sheet"):
            write_sheet(review_sheet(result), review)
        warnings.warn(f"{review} shows originals beside what became of them. Keep it.", PrivacyWarning, stacklevel=2)
    write_certificate(certificate, wanted.certificate, key)
    if wanted.folder is not None:
        for folder in {wanted.folder, *(place.parent for place in wanted.destinations)}:
            timeless(folder)
    if result.shown:
        who = ", ".join(f"{one.person} ({one.reason})" for one in result.shown.values())
        words = " ".join(kept_words(certificate.counts))
        warnings.warn(f"{words} They can be recognised: {who}.", PrivacyWarning, stacklevel=2)
    if link_table is not None:
        link(result, certificate).write(link_table, again=resumed)
        warnings.warn(
            f"{link_table} tells who became whom. Keep it apart from the outputs, or delete it.",
            PrivacyWarning,
            stacklevel=2,
        )


def _retire(path: Path, certificate: SceneCertificate) -> None:
    """Remove outputs of the run that is being replaced, unless they were changed since."""
    if not path.is_file():
        return
    try:
        earlier = SceneCertificate.from_json(path.read_bytes())
    except (OSError, ValueError):
        return
    for name in set(earlier.files) - set(certificate.files):
        file = path.parent / name
        if file.is_file() and not file.is_symlink() and hashes(file)[file.name] == earlier.files[name]:
            file.unlink()


def _name(done: Done, wanted: Places) -> str:
    return done.job.destination.relative_to(wanted.certificate.parent).as_posix()


def exit_code(result: Result) -> ExitCode:
    """Return what the shell is told."""
    instead = any(done.at_risk for done in result.done) or any(p.stands_in for p in result.choice.plans.values())
    lost = any(done.losses for done in result.done)
    return ExitCode.WITHHELD if instead or lost or result.failed else ExitCode.DONE


def _people(result: Result, done: Done, *, instead: bool | None, treatment: Treatment) -> list[str]:
    unchanged = {one.person for one in done.shown}
    plans = {name: result.choice.plans[name] for name in done.people if name not in unchanged}
    return [
        name
        for name, plan in plans.items()
        if plan.treatment is treatment and (instead is None or plan.stands_in is instead)
    ]


def _there(result: Result, done: Done, *, sure: bool) -> list[str]:
    """Return who was found in a file, also if the tracks no longer have them: people, or what is perhaps nobody."""
    found = {name: name not in result.everyone.unsure for name in done.people}
    found |= {one.person: one.confirmed for one in done.shown}
    return [name for name in sorted(found, key=in_order) if found[name] is sure]


def for_machines(result: Result, options: Options, wanted: Places) -> dict[str, Any]:
    """Return the result as plain data. It names originals, so it is for the publisher's eyes."""
    certificate = certify(result, options, wanted.certificate.parent)
    return {
        "schema": "ksame/deidentify",
        "version": 1,
        "certificate_file": str(wanted.certificate),
        "at_risk_file": str(wanted.at_risk) if any(done.at_risk for done in result.done) else None,
        "certificate": certificate.model_dump(mode="json", by_alias=True, exclude={"files"}),
        "files": [
            {
                "source": str(done.job.source),
                "output": str(done.job.destination),
                "frames": done.n_frames,
                "people": _there(result, done, sure=True),
                "not_sure": _there(result, done, sure=False),
                "replaced": _people(result, done, instead=None, treatment=Treatment.REPLACE),
                "masked": _people(result, done, instead=False, treatment=Treatment.MASK),
                "masked_instead": _people(result, done, instead=True, treatment=Treatment.MASK),
                "kept": [one.person for one in done.shown],
                "kept_because": {one.person: one.reason for one in done.shown},
                "lost": list(done.losses),
                "frames_at_risk": frames_at_risk(done.at_risk),
                "at_risk": [
                    {"person": r.person, "frames": [r.first, r.last], "seconds": [r.start, r.end], "reason": r.reason}
                    for r in done.at_risk
                ],
            }
            for done in result.done
        ],
        "unreadable": {str(source): reason for source, reason in result.failed.items()},
    }


def show(result: Result, wanted: Places) -> None:
    """Print the summary."""
    names = (Column(name, overflow="fold") for name in ("file", "was"))
    table = Table(*names, "frames", "people", "replaced", "masked", "kept", "at risk")
    for done in result.done:
        masked = _people(result, done, instead=None, treatment=Treatment.MASK)
        table.add_row(
            escape(_name(done, wanted)),
            escape(str(done.job.source)),
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
    risks = list(_risks(result, wanted))
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
        talk.say(f"[yellow]{more} in {escape(str(wanted.at_risk))}[/]: look at these before you publish.")
    for done in result.done:
        for loss in done.losses:
            talk.say(f"[yellow]lost[/] {escape(str(done.job.source))}: {escape(loss)}")
    for reason in result.failed.values():
        talk.say(f"[yellow]left out[/] {escape(reason)}")
    talk.say(f"certificate  {escape(str(wanted.certificate))}")


def _risk_words(done: Done) -> str:
    frames, black = frames_at_risk(done.at_risk), frames_damaged(done.at_risk)
    words = [f"{frames} frames"] if frames else []
    words += [f"{black} black"] if black else []
    words += ["no face"] if any(one.person == WHOLE_FILE for one in done.at_risk) else []
    return ", ".join(words) or "–"


def _protection(result: Result) -> Iterator[str]:
    """Say what protects whoever was replaced: how many share a face, and how little it is like theirs."""
    k_real, judge, like = result.choice.k_real(result.shown), result.choice.judge, result.choice.likeness
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


def _risks(result: Result, wanted: Places) -> Iterator[tuple[str, AtRisk]]:
    for done in result.done:
        for one in done.at_risk:
            yield _name(done, wanted), one


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
