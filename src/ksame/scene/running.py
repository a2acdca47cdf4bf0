"""Work on several files at a time, with progress, that stops as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

from ksame.errors import KsameError
from ksame.progress import Track
from ksame.scene.media import Frame, Media

T = TypeVar("T")
U = TypeVar("U")


class Counted:
    """The frames of a recording, with a hint of how many there are."""

    def __init__(self, media: Media, start: int = 0) -> None:
        self._media = media
        self._start = start

    def __iter__(self) -> Iterator[Frame]:
        return self._media.frames(self._start)

    def __length_hint__(self) -> int:
        return max(0, self._media.n_frames - self._start)


class StoppedError(KsameError):
    """Work on one file ends because that on another failed, or was interrupted."""


class Brake:
    """Stops files that are worked on in other threads."""

    def __init__(self) -> None:
        self._pulled = Event()

    def pull(self) -> None:
        """Stop them."""
        self._pulled.set()

    def track(self, items: Iterable[T], what: str) -> Iterable[T]:
        """Yield the items until the brake is pulled."""
        for item in items:
            if self._pulled.is_set():
                raise StoppedError(f"stopped while {what}")
            yield item


def each(items: Sequence[T], work: Callable[[T], U], workers: int, brake: Brake, track: Track, what: str) -> list[U]:
    """Do something with every item, several at a time, in order."""
    if len(items) == 1:
        return [work(items[0])]
    with ThreadPoolExecutor(max(1, workers)) as pool:
        pending = [pool.submit(work, item) for item in items]
        try:
            return [one.result() for one in track(pending, what)]
        except BaseException:
            brake.pull()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
