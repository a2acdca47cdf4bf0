"""One place for the newest frame: whoever is slow gets the newest one, and the others are never looked at."""

from __future__ import annotations

import threading

from ksame.scene.media import Frame


class Newest:
    """Hands the newest frame, with the time of the clock when it was there, from who reads to who publishes."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._frame: Frame | None = None
        self._ended = False
        self._error: BaseException | None = None
        self.captured = 0
        self.skipped = 0

    def put(self, frame: Frame) -> None:
        """Offer a frame; one that was not taken yet is skipped."""
        with self._changed:
            self.captured += 1
            self.skipped += self._frame is not None
            self._frame = frame
            self._changed.notify_all()

    def end(self, error: BaseException | None = None) -> None:
        """Say that no more frames come, and why, where it was no ordinary end."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def take(self, timeout: float) -> Frame | None:
        """Return the newest frame, which waits for it so many seconds; None where there is none.

        Raises what ended the reading, once the last frame was taken.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._frame is not None or self._ended, timeout)
            frame, self._frame = self._frame, None
            if frame is None and self._error is not None:
                raise self._error
            return frame

    @property
    def ended(self) -> bool:
        """Whether the last frame was taken and no more come."""
        with self._changed:
            return self._ended and self._frame is None
