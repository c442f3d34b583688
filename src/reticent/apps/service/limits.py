"""Limits that hold before a request is understood: how large it may be, who may come, and how often."""

import json
import math
import time
from collections.abc import Callable
from typing import Any

from reticent.apps.service.store import Token
from reticent.errors import LedgerError

__all__ = ["Buckets", "Gate", "SizeLimit", "may"]

_MOST_BUCKETS = 100_000
_DRAINED = 8  # times the limit
_WRONG = 5.0, 20.0  # requests with a wrong token: a second, and at once, for each address
_WRONG_OF_ALL = 50.0, 200.0  # and of all addresses together, which someone may have many of
_CLIENTS = ("ask", "tell", "message", "report")  # what clients of an experiment may do; all the rest is for operators


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
            return await _answer(send, 413, f"The request is too long: at most {self._most} bytes.")
        given = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def whole() -> Any:
            one = next(given, None)
            return one if one is not None else await receive()

        return await self._app(scope, whole, send)


def may(token: Token, experiment: str | None) -> bool:
    """Whether a token is for clients of this experiment; if None, for operators."""
    if experiment is None:
        return token.role == "operator"
    return token.role == "client" and token.experiment == experiment


class Gate:
    """Refuses whoever has no token for what he wants, before a byte of the request is understood.

    Paths in ``public`` need none. All others do, known or not: the router may understand a path in another way than the gate.
    """

    def __init__(self, app: Any, find: Callable[[str], Token | None], rate: float, public: frozenset[str]) -> None:
        self._app, self._find, self._public = app, find, public
        self._known, self._wrong = Buckets(rate, 2 * rate), Buckets(*_WRONG)
        self._wrong_of_all = Buckets(*_WRONG_OF_ALL)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on with its token, if that is for such requests."""
        path = _routed(scope) if scope["type"] == "http" else None
        if path is None or path in self._public:
            return await self._app(scope, receive, send)
        given = next((value.decode("latin-1") for key, value in scope["headers"] if key == b"authorization"), "")
        scheme, _, text = given.partition(" ")
        try:
            token = self._find(text) if scheme.lower() == "bearer" else None
        except LedgerError:
            return await _answer(send, 503, "The database cannot be used.")
        if token is not None:
            wait = self._known.take(token.id)
        else:
            wait = self._wrong.take((scope["client"] or ("",))[0]) or self._wrong_of_all.take("")
        if wait:
            return await _answer(send, 429, "Too many requests: wait a moment.", retry_after=str(math.ceil(wait)))
        if token is None:
            detail = "Give a valid token: 'Authorization: Bearer rt_…'."
            return await _answer(send, 401, detail, www_authenticate="Bearer")
        parts = path.split("/")[1:]
        mine = len(parts) == 3 and parts[0] == "experiments" and parts[2] in _CLIENTS
        if not may(token, parts[1] if mine else None):
            return await _answer(send, 403, "This token is for something else.")
        scope.setdefault("state", {})["token"] = token
        return await self._app(scope, receive, send)


def _routed(scope: Any) -> str:
    """The path that the router looks at: without the prefix under which the service is mounted."""
    path: str = scope["path"]
    rest = path.removeprefix(scope.get("root_path", ""))
    return rest if rest[:1] in ("", "/") else path


async def _answer(send: Any, status: int, detail: str, **headers: str) -> None:
    told = {"content_type": "application/json", **headers}
    lines = [(key.replace("_", "-").encode(), value.encode()) for key, value in told.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": json.dumps({"detail": detail}).encode()})
