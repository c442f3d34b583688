"""Limits that hold before a request is understood: how large it may be, and how often one may come."""

import time
from typing import Any

__all__ = ["Buckets", "SizeLimit"]

_MOST_BUCKETS = 100_000
_DRAINED = 8  # times the limit


class Buckets:
    """For each key a bucket of ``burst`` requests that refills at ``rate`` a second."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, key: str) -> float:
        """Take one; 0 if there was one, else after how many seconds there will be."""
        at = time.monotonic()
        left, before = self._left.get(key, (self._burst, at))
        left = min(self._burst, left + (at - before) * self._rate)
        if left < 1:
            return (1 - left) / self._rate
        if key not in self._left and len(self._left) >= _MOST_BUCKETS:
            self._left.clear()  # full buckets are forgotten first in spirit; this bounds memory
        self._left[key] = left - 1, at
        return 0.0


class SizeLimit:
    """Refuses bodies that are too long, whether they say so or not."""

    def __init__(self, app: Any, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on if its body is short enough."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        body, length, more = b"", 0, True
        while more and length <= _DRAINED * self._most:  # a client that is still sending would not hear the answer
            message = await receive()
            length += len(message.get("body", b""))
            body = body + message.get("body", b"") if length <= self._most else b""
            more = message.get("more_body", False)
        if length > self._most:
            start = {"type": "http.response.start", "status": 413, "headers": [(b"content-type", b"application/json")]}
            await send(start)
            text = b'{"detail": "The request is too long: at most %d bytes."}' % self._most
            return await send({"type": "http.response.body", "body": text})
        given = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def whole() -> Any:
            one = next(given, None)
            return one if one is not None else await receive()

        return await self._app(scope, whole, send)
