"""The gate wherever the service stands.

Under a prefix, inside another app, and what handlers do where there is no gate.
"""

import asyncio
import json

import pytest
from starlette._utils import get_route_path
from starlette.applications import Starlette
from starlette.routing import Mount

from reticent import Ledger
from reticent.service.http_api import make_app
from reticent.service.rate_limits import Gate, routed_path
from reticent.service.store import Store
from reticent.service.tokens import issue
from tests.support.serving import EXPERIMENT


async def _statuses(app, calls, root=""):
    """What the app, started, answers to (method, path, token) under a prefix."""
    found = []
    for method, path, token in calls:
        given = iter(
            [{"type": "http.request", "body": json.dumps(EXPERIMENT | {"dataset": None}).encode()}]
        )
        sent = []

        async def receive(given=given):
            return next(given, {"type": "http.disconnect"})

        async def send(message, sent=sent):
            sent.append(message)

        headers = [(b"content-type", b"application/json")]
        headers += [(b"authorization", b"Bearer " + token.encode())] if token else []
        about = {
            "type": "http",
            "http_version": "1.1",
            "scheme": "http",
            "query_string": b"",
            "client": None,
        }
        named = {
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": root,
            "headers": headers,
        }
        await app(about | named, receive, send)
        found.append(sent[0]["status"])
    return found


@pytest.mark.parametrize("mounted", [True, False])
def test_the_gate_holds_under_a_prefix(tmp_path, mounted):
    """Mounted in another app, or behind a proxy that keeps its prefix.

    The same paths need the same tokens.
    """
    ledger = str(tmp_path / "budget.db")
    Ledger(ledger).create()
    inner = make_app(ledger)
    operator = issue(Store(ledger), "operator", days=1)
    app, root = (Starlette(routes=[Mount("/api", inner)]), "") if mounted else (inner, "/api")
    paths = [
        ("GET", "/api/experiments"),
        ("POST", "/api/experiments"),
        ("POST", "/api/experiments/doses/tokens"),
    ]
    public = [("GET", f"/api/{name}", None) for name in ("", "health", "metrics", "openapi.json")]

    async def check():
        async with inner.router.lifespan_context(inner):
            assert await _statuses(app, [(*one, None) for one in paths], root) == [401] * 3
            assert await _statuses(app, public, root) == [200] * 4
            assert await _statuses(app, [(*one, operator) for one in paths[:2]], root) == [200, 201]

    asyncio.run(check())


def test_a_handler_without_a_gate_refuses(tmp_path):
    """Every path that the service describes, but for the public ones, and whatever
    token is given.
    """
    ledger = str(tmp_path / "budget.db")
    Ledger(ledger).create()
    app = make_app(ledger)
    operator = issue(Store(ledger), "operator", days=1)
    app.user_middleware = [one for one in app.user_middleware if one.cls is not Gate]
    described = {
        (way.upper(), path) for path, ways in app.openapi()["paths"].items() for way in ways
    }
    closed = sorted(described - {("GET", "/health"), ("GET", "/metrics")})
    assert len(closed) == 9

    async def check():
        async with app.router.lifespan_context(app):
            calls = [(way, path.format(name="doses", id="0"), operator) for way, path in closed]
            assert await _statuses(app, calls) == [401] * len(calls)

    asyncio.run(check())


def test_gate_and_router_see_the_same_path():
    for path in ("", "*", "/", "/api", "/api/", "/api//x", "/apix", "/x/api", "/api/api/x", "/x\n"):
        for root in ({}, *({"root_path": one} for one in ("", "/", "/api", "/api/", "/ap"))):
            scope = {"path": path, **root}
            assert routed_path(scope) == get_route_path(scope), scope
