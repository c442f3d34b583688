"""Limits that hold before a request is understood.

How large it may be, who may come, and how often.
"""

import json
import math
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reticent.errors import LedgerError
from reticent.service.store import Token

__all__ = ["Gate", "RateLimiter", "SizeLimit", "is_allowed", "routed_path"]

_MOST_KEYS = 100_000
_DRAINED = 8  # times the limit of a body: a client that is still sending would not hear the answer
# Requests with a wrong token, a second and at once: for each address, and for all together, since
# someone may have many addresses
_WRONG_TOKENS = (5.0, 20.0)
_ALL_WRONG_TOKENS = (50.0, 200.0)
# What clients of an experiment may do; all the rest is for operators
_CLIENT_ACTIONS = ("ask", "tell", "message", "report")


class RateLimiter:
    """For each key a bucket of ``burst`` requests that refills at ``rate`` a second."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, key: str) -> float:
        """Take one; 0 if there was one, else after how many seconds there will be."""
        at = time.monotonic()
        left, before = self._left.get(key, (self._burst, at))
        left = min(self._burst, left + (at - before) * self._rate)
        if left < 1:
            return (1 - left) / self._rate
        if key not in self._left and len(self._left) >= _MOST_KEYS:
            self._left.clear()  # full buckets are forgotten first in spirit; this bounds memory
        self._left[key] = left - 1, at
        return 0.0


class SizeLimit:
    """Refuses bodies that are too long, whether they say so or not."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if its body is short enough."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        body = b""
        length = 0
        more = True
        while more and length <= _DRAINED * self._most:
            message = await receive()
            length += len(message.get("body", b""))
            if length <= self._most:
                body = body + message.get("body", b"")
            else:
                body = b""
            more = message.get("more_body", False)
        if length > self._most:
            return await _answer(send, 413, f"The request is too long: at most {self._most} bytes.")
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_whole() -> Message:
            if whole:
                return whole.pop()
            return await receive()

        return await self._app(scope, receive_whole, send)


def is_allowed(token: Token, experiment: str | None) -> bool:
    """Whether a token is for clients of this experiment; if None, for operators."""
    if experiment is None:
        return token.role == "operator"
    return token.role == "client" and token.experiment == experiment


class Gate:
    """Refuses whoever has no token for a request, before a byte of it is understood.

    Paths in ``public`` need none. All others do, known or not: the router may understand a path in
    another way than the gate.
    """

    def __init__(
        self,
        app: ASGIApp,
        find: Callable[[str], Token | None],
        rate: float,
        public: frozenset[str],
    ) -> None:
        self._app = app
        self._find = find
        self._public = public
        self._by_token = RateLimiter(rate, 2 * rate)
        self._wrong_by_address = RateLimiter(*_WRONG_TOKENS)
        self._wrong = RateLimiter(*_ALL_WRONG_TOKENS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its token, if that is for such requests."""
        if scope["type"] != "http" or routed_path(scope) in self._public:
            return await self._app(scope, receive, send)
        try:
            token = self._find_token(scope)
        except LedgerError:
            return await _answer(send, 503, "The database cannot be used: try again later.")
        wait = self._seconds_to_wait(scope, token)
        if wait:
            return await _answer(
                send, 429, "Too many requests: wait a moment.", retry_after=str(math.ceil(wait))
            )
        if token is None:
            detail = "Give a valid token: 'Authorization: Bearer rt_…'."
            return await _answer(send, 401, detail, www_authenticate="Bearer")
        if not is_allowed(token, _client_experiment(routed_path(scope))):
            return await _answer(send, 403, "This token is for something else.")
        scope.setdefault("state", {})["token"] = token
        return await self._app(scope, receive, send)

    def _find_token(self, scope: Scope) -> Token | None:
        """The token in the request's header, if it is one that counts."""
        for key, value in scope["headers"]:
            if key == b"authorization":
                scheme, _, text = value.decode("latin-1").partition(" ")
                if scheme.lower() == "bearer":
                    return self._find(text)
                return None
        return None

    def _seconds_to_wait(self, scope: Scope, token: Token | None) -> float:
        """How long this request has to wait; 0 if it may go on."""
        if token is not None:
            return self._by_token.take(token.id)
        address = (scope["client"] or ("",))[0]
        return self._wrong_by_address.take(address) or self._wrong.take("")


def _client_experiment(path: str) -> str | None:
    """The experiment that a client's request is about; None for what only operators may do."""
    parts = path.split("/")[1:]
    if len(parts) == 3 and parts[0] == "experiments" and parts[2] in _CLIENT_ACTIONS:
        return parts[1]
    return None


def routed_path(scope: Scope) -> str:
    """The path that the router looks at: without the prefix under which the service is mounted."""
    path: str = scope["path"]
    rest = path.removeprefix(scope.get("root_path", ""))
    if rest[:1] in ("", "/"):
        return rest
    return path


async def _answer(send: Send, status: int, detail: str, **headers: str) -> None:
    fields = {"content_type": "application/json", **headers}
    lines = [(key.replace("_", "-").encode(), value.encode()) for key, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": json.dumps({"detail": detail}).encode()})
