"""Who is in one file: detected, or read from tracks that a person has edited."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

from ksame.errors import InputError, PrivacyWarning
from ksame.models import SFace
from ksame.progress import Track, silent
from ksame.scene.media import Media
from ksame.scene.observe import DetectorConfig, Map
from ksame.scene.running import Counted
from ksame.scene.track import TrackerConfig, Tracks, find_tracks, load_tracks, read_tracks, save_tracks
from ksame.scene.track.edits import left_out, misnamed


def tracks_for(tracks: Path, media: Media) -> Tracks:
    """Read tracks, refuse those of another recording, and warn of whoever an edit left out or renamed."""
    cast = read_tracks(tracks, media.n_frames if media.exact else 2 * media.n_frames + 1000)
    if cast.size != media.size:
        raise InputError(f"{tracks}: made for pictures of {cast.size}, but {media.path} has {media.size}.")
    if cast.source != media.fingerprint:
        raise InputError(
            f"{tracks}: made for another recording than {media.path}. Name a file that does not exist to look anew."
        )
    for one in left_out(cast):
        what = one.person if one.confirmed else f"{one.person}, which is perhaps a face,"
        warnings.warn(
            f"{tracks}: {what} was found in frames {one.first} to {one.last}, and in some of them no track has them "
            "any more. There they stay as they are, and can be recognised.",
            PrivacyWarning,
            stacklevel=2,
        )
    for name, before in misnamed(cast).items():
        who = f"who was found as {before}" if before else "nobody who was found"
        warnings.warn(
            f"{tracks}: {name} is now {who}. Look at the names with: ksame people --tracks.",
            PrivacyWarning,
            stacklevel=2,
        )
    return cast


def sourced(cast: Tracks, media: Media) -> Tracks:
    """Return a cast that says of which recording it is, as it is written for a person to edit."""
    return replace(cast, source=media.fingerprint)


def detect_tracks(
    media: Media,
    folder: Path,
    detector: DetectorConfig,
    tracker: TrackerConfig,
    *,
    recogniser: SFace | None = None,
    resume: bool = False,
    map: Map = map,
    track: Track = silent,
) -> Tracks:
    """Find everyone in one photograph or recording; they are kept in ``folder``, and with ``resume`` read there."""
    earlier = load_tracks(folder) if resume else None
    if earlier is not None:
        return earlier
    still = media.kind == "photograph"
    found = find_tracks(
        lambda start: Counted(media, start),
        media.size,
        None if still else folder,
        detector,
        tracker,
        still=still,
        recogniser=recogniser,
        map=map,
        progress=track,
    )
    if still:
        save_tracks(found, folder)
    return found
