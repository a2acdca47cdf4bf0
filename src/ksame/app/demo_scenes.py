"""The demo's second half: photographs and a short film of people who do not exist, de-identified."""

from __future__ import annotations

import warnings
from importlib.resources import files
from pathlib import Path

from rich.markup import escape

from ksame.app import talk
from ksame.app.scene_report import show
from ksame.errors import OutputError, PrivacyWarning
from ksame.privacy.findings import passed
from ksame.scene.release import ReleaseOptions, deidentify_media
from ksame.verification import verify

_SEED = 1  # the demo shows the same faces every time; nobody here exists, so it need not be secret


def demo_scenes(folder: Path, *, force: bool) -> None:
    """Write media to ``folder/before``, de-identify them to ``folder/after``, and say where everything is."""
    before, after, review = folder / "before", folder / "after", folder / "review.png"
    try:
        before.mkdir(parents=True, exist_ok=True)
        _write_originals(before)
    except OSError as error:
        raise OutputError(f"{before}: cannot be written ({error.strerror}).") from error
    options = ReleaseOptions(keep_names=True, review=review, force=force)
    with warnings.catch_warnings(), talk.bars() as on_progress:
        warnings.simplefilter("ignore", PrivacyWarning)  # nobody's secrets are on this sheet
        release = deidentify_media(before, f"{after}/", options=options, seed=_SEED, on_progress=on_progress)
    show(release)
    good = passed(verify(release.paths.certificate))
    talk.say(
        f"before       {escape(str(before))}\n"
        f"after        {escape(str(after))} ({'verified' if good else 'NOT VERIFIED'})\n"
        f"review       {escape(str(review))}"
    )


def _write_originals(folder: Path) -> None:
    """Write the sample media that come with the package: people whom a generator made up (CC0)."""
    for sample in (files("ksame.data") / "samples").iterdir():
        (folder / sample.name).write_bytes(sample.read_bytes())
