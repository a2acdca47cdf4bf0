"""The demo's second half: photographs and a short film of people who do not exist, de-identified."""

from __future__ import annotations

import warnings
from importlib.resources import files
from pathlib import Path

from rich.markup import escape

from ksame.app import talk
from ksame.app.gathering import gather, make_folders, places
from ksame.app.scene_report import publish, show
from ksame.errors import OutputError, PrivacyWarning
from ksame.privacy.findings import passed
from ksame.scene.pipeline import Job, Options, deidentify_scenes
from ksame.verification import verify


def demo_scenes(folder: Path, *, force: bool) -> None:
    """Write media to ``folder/before``, de-identify them to ``folder/after``, and say where everything is."""
    before, after, review = folder / "before", folder / "after", folder / "review.png"
    try:
        before.mkdir(parents=True, exist_ok=True)
        _write_originals(before)
    except OSError as error:
        raise OutputError(f"{before}: cannot be written ({error.strerror}).") from error
    found, many = gather([str(before)], frames=False)
    wanted = places(found, str(after), many=many, keep_names=True, container=None)
    make_folders(wanted)
    options = Options()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # nobody's secrets are on this sheet
        result = deidentify_scenes(
            [Job(one.path, place) for one, place in zip(found, wanted.destinations, strict=True)],
            options,
            work=wanted.work,
            force=force,
            track=talk.track,
            on_done=lambda done: publish(
                done, options, wanted, key=None, review=review, link_table=None, resumed=False
            ),
        )
    show(result, wanted)
    good = passed(verify(wanted.certificate))
    talk.say(
        f"before       {escape(str(before))}\n"
        f"after        {escape(str(after))} ({'verified' if good else 'NOT VERIFIED'})\n"
        f"review       {escape(str(review))}"
    )


def _write_originals(folder: Path) -> None:
    """Write the sample media that come with the package: people whom a generator made up (CC0)."""
    for sample in (files("ksame.data") / "samples").iterdir():
        (folder / sample.name).write_bytes(sample.read_bytes())
