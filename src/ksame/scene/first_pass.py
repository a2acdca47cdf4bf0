"""Who is in one file: looked for, or read from tracks that a person has edited."""

from __future__ import annotations

from pathlib import Path

from ksame.errors import InputError
from ksame.models import SFace
from ksame.progress import Track, silent
from ksame.scene.looking import Looking, load_cast, look, read_tracks, save_cast
from ksame.scene.media import Media
from ksame.scene.running import Counted
from ksame.scene.sightings import Cast


def tracks_for(tracks: Path, media: Media) -> Cast:
    """Read tracks, and refuse those of pictures of another size, or of many more."""
    cast = read_tracks(tracks, media.n_frames if media.exact else 2 * media.n_frames + 1000)
    if cast.size != media.size:
        raise InputError(f"{tracks}: made for pictures of {cast.size}, but {media.path} has {media.size}.")
    return cast


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
