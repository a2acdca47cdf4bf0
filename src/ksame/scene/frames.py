"""The frames of a recording as progress bars want them."""

from __future__ import annotations

from collections.abc import Iterator

from ksame.scene.media import Frame, Media


class Frames:
    """The frames of a recording, with a hint of how many there are."""

    def __init__(self, media: Media, start: int = 0) -> None:
        self._media, self._start = media, start

    def __iter__(self) -> Iterator[Frame]:
        return self._media.frames(self._start)

    def __length_hint__(self) -> int:
        return max(0, self._media.n_frames - self._start)
