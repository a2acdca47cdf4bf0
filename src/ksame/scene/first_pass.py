"""Who is in one file: looked for, or read from tracks that a person has edited."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

from ksame.errors import InputError, PrivacyWarning
from ksame.models import SFace
from ksame.progress import Track, silent
from ksame.scene.looking import Looking, load_cast, look, read_tracks, save_cast
from ksame.scene.looking.editing import left_out, misnamed
from ksame.scene.media import Media
from ksame.scene.running import Counted
from ksame.scene.sightings import Cast


def tracks_for(tracks: Path, media: Media) -> Cast:
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


def sourced(cast: Cast, media: Media) -> Cast:
    """Return a cast that says of which recording it is, as it is written for a person to edit."""
    return replace(cast, source=media.fingerprint)


def look_at(
    media: Media,
    folder: Path,
    looking: Looking,
    *,
    recogniser: SFace | None = None,
    resume: bool = False,
    track: Track = silent,
) -> Cast:
    """Find everyone in one photograph or recording; the cast is kept in ``folder``, and with ``resume`` read there."""
    earlier = load_cast(folder) if resume else None
    if earlier is not None:
        return earlier
    frames = Counted(media)
    if media.kind != "photograph":
        return look(frames, media.size, folder, looking, recogniser=recogniser, track=track)
    cast = look(frames, media.size, None, looking, still=True, recogniser=recogniser, track=track)
    save_cast(cast, folder)
    return cast
