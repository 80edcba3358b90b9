"""What every request passes first: host, origin, token and size; and the headers that every answer gets.

A page of another site can send requests to a server on this machine. It cannot read the answers, unless a name of that
site is pointed at this machine (DNS rebinding); the check of the Host header prevents that. The check of the Origin
header keeps other sites from sending anything that is worked on.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from accord.app.server.limits import MEGABYTE, Limits, Refused

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
OPEN_PATHS = ("/api/health",)  # below /api/, without a token
TOKEN_PATHS = ("/api/", "/openapi.json")
HEADERS = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}


class Guard:
    """Wraps an application.

    Args:
        app: the application.
        limits: the size of a body and the time it may take to arrive.
        token: what clients must send as `Authorization: Bearer TOKEN`; None asks for none.
        hosts: names in the Host header that are accepted; None accepts any.
    """

    def __init__(
        self, app: App, limits: Limits, token: str | None = None, hosts: frozenset[str] | None = LOOPBACK_NAMES
    ) -> None:
        self.app, self.limits, self.token, self.hosts = app, limits, token, hosts

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # a websocket is closed
        dressed = _with_headers(scope["path"], send)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            self._check(scope, headers)
        except Refused as refusal:
            await _refuse(refusal, dressed)
            return
        await self.app(scope, self._counted(receive), dressed)

    def _check(self, scope: Message, headers: dict[str, str]) -> None:
        host = headers.get("host", "")
        if self.hosts is not None and host.rsplit(":", 1)[0].lower() not in self.hosts and host not in self.hosts:
            raise Refused(
                421, f"The server has no name {host[:80]!r}. Open it as http://127.0.0.1 with its port.", "wrong_host"
            )
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            raise Refused(403, "Requests from pages of other sites are refused. Use the server's own page.", "origin")
        path: str = scope["path"]
        if self.token is not None and path.startswith(TOKEN_PATHS) and path not in OPEN_PATHS:
            given = headers.get("authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
                raise Refused(
                    401, "The token is missing or wrong. Send the header `Authorization: Bearer TOKEN`.", "token"
                )
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self.limits.bytes:
            raise self._too_large()

    def _counted(self, receive: Receive) -> Receive:
        """Count the bytes of a body as they arrive: a body sent in chunks does not announce its size."""
        count = 0

        async def counted() -> Message:
            nonlocal count
            try:
                message = await asyncio.wait_for(receive(), self.limits.seconds)
            except asyncio.TimeoutError:
                raise Refused(
                    408, f"The request did not arrive within {self.limits.seconds:g} s. Send it again.", "slow"
                ) from None
            count += len(message.get("body", b""))
            if count > self.limits.bytes:
                raise self._too_large()
            return message

        return counted

    def _too_large(self) -> Refused:
        size = self.limits.bytes / MEGABYTE
        return Refused(
            413, f"The request is larger than {size:g} MB. Send a smaller graph, or fewer at once.", "too_large"
        )


def _with_headers(path: str, send: Send) -> Send:
    """Add the headers of every answer; answers of the API are not stored by browsers, files are checked each time."""
    cache = b"no-store" if path.startswith(TOKEN_PATHS) else b"no-cache"

    async def dressed(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {**HEADERS, b"cache-control": cache}
            kept = [(name, value) for name, value in message.get("headers", []) if name.lower() not in own]
            message = {**message, "headers": [*kept, *own.items()]}
        await send(message)

    return dressed


async def _refuse(refusal: Refused, send: Send) -> None:
    """Answer without reading the body; the connection is closed, because the rest of it is not wanted."""
    body = refusal.body()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
