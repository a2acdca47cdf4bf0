"""Tracks that a person has edited: read, refused where they belong to another file, and warned about."""

from __future__ import annotations

import warnings
from pathlib import Path

from ksame.errors import InputError, PrivacyWarning
from ksame.scene.media import Media
from ksame.scene.track import read_tracks
from ksame.scene.track.edits import left_out, misnamed
from ksame.scene.track.tracks import Tracks


def tracks_for(tracks: Path, media: Media) -> Tracks:
    """Read tracks, and refuse those of another recording."""
    cast = read_tracks(tracks, media.n_frames if media.exact else 2 * media.n_frames + 1000)
    if cast.size != media.size:
        raise InputError(f"{tracks}: made for pictures of {cast.size}, but {media.path} has {media.size}.")
    if cast.source != media.fingerprint:
        raise InputError(
            f"{tracks}: made for another recording than {media.path}. Name a file that does not exist to look anew."
        )
    return cast


def warn_of_edits(tracks: Path, cast: Tracks) -> None:
    """Warn of whoever an edit of these tracks left out or renamed."""
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
