"""A page on this machine that shows the live picture (Motion JPEG). Nobody else can reach it."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import cv2

from ksame.arrays import ByteArray
from ksame.errors import OutputError, UsageError

LOOPBACK = "127.0.0.1"
_BOUNDARY = "frame"
_QUALITY = 85  # of JPEG, by choice
_WAIT = 1.0  # seconds after which whoever waits for a frame sees whether the page is still there
_POLL = 0.05  # seconds between two looks whether it should close
_MAX_VIEWERS = 8
_PAGE = (
    b"<!doctype html><meta charset=utf-8><title>ksame live</title>"
    b"<style>body{margin:0;background:#111}img{display:block;margin:auto;max-width:100vw;max-height:100vh}</style>"
    b"<img src=/stream alt='the live picture, faces replaced'>"
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",  # pages of others cannot show the picture
    "Content-Security-Policy": "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class PageSink(AbstractContextManager["PageSink"]):
    """Serves the newest frame at ``http://127.0.0.1:PORT``: ``/`` a page, ``/stream`` Motion JPEG, ``/frame.jpg`` one.

    Only requests whose Host names this machine are answered, so that no page of others can ask through a name of its
    own that points here. Port 0 is any that is free.
    """

    def __init__(self, host: str, port: int) -> None:
        if host not in (LOOPBACK, "localhost"):
            raise UsageError(f"The page is for this machine only: use http://{LOOPBACK}:{port or 8089}. Got {host!r}.")
        self._changed = threading.Condition()
        self._jpeg: bytes | None = None
        self._number = 0
        self._closed = False
        self._viewers = threading.Semaphore(_MAX_VIEWERS)
        try:
            self._server = ThreadingHTTPServer((LOOPBACK, port), _handler(self))
        except OSError as error:
            raise OutputError(f"http://{LOOPBACK}:{port}: {error.strerror}. Choose another port.") from error
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL,), name="ksame-live-page", daemon=True
        )
        self._thread.start()

    @property
    def hosts(self) -> tuple[str, ...]:
        """What the Host of a request may say."""
        return f"{LOOPBACK}:{self.port}", f"localhost:{self.port}"

    def show(self, pixels: ByteArray, time: float) -> None:
        """Let everyone who looks have this frame; whoever is slow misses those before."""
        _, encoded = cv2.imencode(".jpg", pixels[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
        with self._changed:
            self._jpeg, self._number = encoded.tobytes(), self._number + 1
            self._changed.notify_all()

    def newer(self, number: int) -> tuple[int, bytes] | None:
        """Return the newest frame and its number once it is newer than ``number``; None where the page is closed."""
        with self._changed:
            while not self._closed:
                if self._jpeg is not None and self._number > number:
                    return self._number, self._jpeg
                self._changed.wait(_WAIT)
        return None

    def admit(self) -> bool:
        """Tell whether one more may look."""
        return self._viewers.acquire(blocking=False)

    def dismiss(self) -> None:
        """Let somebody else look."""
        self._viewers.release()

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(page: PageSink) -> type[BaseHTTPRequestHandler]:
    """Return what answers requests to a page."""

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "ksame", ""
        timeout = 30

        def do_GET(self) -> None:
            if self.headers.get("Host", "").lower() not in page.hosts:
                self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "Only this machine may look")
            elif self.path == "/":
                self._answer("text/html; charset=utf-8", _PAGE)
            elif self.path in ("/frame.jpg", "/stream") and not page.admit():
                self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, "Too many look already")
            elif self.path in ("/frame.jpg", "/stream"):
                try:
                    with suppress(OSError):  # whoever looked has left
                        self._stream() if self.path == "/stream" else self._frame()
                finally:
                    page.dismiss()
            else:
                self.send_error(HTTPStatus.NOT_FOUND)

        def _frame(self) -> None:
            newest = page.newer(0)
            if newest is not None:
                self._answer("image/jpeg", newest[1])

        def _stream(self) -> None:
            self._head(f"multipart/x-mixed-replace; boundary={_BOUNDARY}")
            number = 0
            while (newest := page.newer(number)) is not None:
                number, jpeg = newest
                head = f"--{_BOUNDARY}\r\nContent-Type: image/jpeg\r\nContent-Length: {len(jpeg)}\r\n\r\n"
                self.wfile.write(head.encode() + jpeg + b"\r\n")

        def _answer(self, kind: str, body: bytes) -> None:
            self._head(kind, len(body))
            self.wfile.write(body)

        def _head(self, kind: str, length: int | None = None) -> None:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", kind)
            if length is not None:
                self.send_header("Content-Length", str(length))
            for name, value in _HEADERS.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
