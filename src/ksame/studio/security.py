"""Who may talk to the studio: its own page, opened by whoever has the token, and nobody else.

Checked for every request, before anything else sees it: the Host (against DNS rebinding), the Origin (against other
sites), the cookie or the token, and the size of what is sent. The page is told to load nothing from anywhere else.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_JSON = 1 << 20
"""Bytes of a request that uploads nothing."""
UPLOADS = "/files"
"""Where uploads go: paths that end so."""
_NO_KEY = "Open the address that ksame studio printed: it holds the key to this page."
_SAFE = ("GET", "HEAD", "OPTIONS")
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True)
class Access:
    """Secrets of one server, and where it listens.

    Attributes
    ----------
    hosts : tuple of str
        What may stand in the Host header, with the port.
    max_upload : int
        Bytes of one file.
    token : str
        Opens the page once as part of its address, or as ``Authorization: Bearer`` for programs.
    session : str
        The value of the cookie.
    """

    hosts: tuple[str, ...]
    max_upload: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def cookie(self) -> str:
        """The cookie's name: browsers send cookies to all ports of a host."""
        return f"ksame-{self.hosts[0].rpartition(':')[2]}"


class Guard:
    """Lets through what is allowed, and answers everything else itself."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close"})  # there are none here
            return
        headers = Headers(scope=scope)
        answer = self._refusal(scope, headers)
        if answer is not None:
            await _for_people(scope, answer)(scope, receive, _with_headers(send))
            return
        await self.app(scope, _limited(receive, self._limit(scope)), _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        host, origin, method = headers.get("host", ""), headers.get("origin"), scope["method"]
        if host not in self.access.hosts:
            return _problem(421, "This server answers only to its own address. Open the one that ksame studio printed.")
        if origin is not None and origin != f"http://{host}":
            return _problem(403, "Another site may not ask this.")
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and method == "GET" and _same(given, self.access.token):
            return self._welcome()
        bearer = headers.get("authorization", "")
        if not _same(bearer, f"Bearer {self.access.token}"):
            if not _same(_cookie(headers, self.access.cookie), self.access.session):
                return _problem(401, _NO_KEY)
            if method not in _SAFE and origin is None:
                return _problem(403, "The browser did not say which page asks.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._limit(scope):
            return _problem(413, f"Too large. At most {self._limit(scope):,} bytes can be sent.")
        return None

    def _welcome(self) -> Response:
        """Take the token out of the address, and give a cookie that no other site's request carries."""
        answer = RedirectResponse("/", 303)
        answer.set_cookie(self.access.cookie, self.access.session, httponly=True, samesite="strict", path="/")
        return answer

    def _limit(self, scope: Scope) -> int:
        upload = scope["method"] == "POST" and scope["path"].endswith(UPLOADS)
        return self.access.max_upload if upload else MAX_JSON


def _same(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode(), secret.encode())


def _cookie(headers: Headers, name: str) -> str:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if cookie is None else cookie.value


def _problem(status: int, detail: str) -> Response:
    return JSONResponse({"detail": detail}, status)


def _for_people(scope: Scope, answer: Response) -> Response:
    """Answer whoever opens the page itself without the key in plain words."""
    if scope["path"] != "/" or answer.status_code != 401:
        return answer
    return PlainTextResponse(f"{_NO_KEY}\n", 401)


def _limited(receive: Receive, limit: int) -> Receive:
    """Count what is received: a length need not be declared, nor be true."""
    received = 0

    async def counted() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise HTTPException(413, f"Too large. At most {limit:,} bytes can be sent.")
        return message

    return counted


def _with_headers(send: Send) -> Send:
    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sender
