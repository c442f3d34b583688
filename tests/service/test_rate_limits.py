"""Who is let in to the bandit service, with how much and how often.

And how its clients try again.
"""

import asyncio
import io
import json
import urllib.error
from dataclasses import replace
from email.message import Message

import pytest

from reticent.errors import BadInput, LedgerError, ReticentError
from reticent.service import client as clients
from reticent.service import rate_limits as limits
from reticent.service.client import BanditClient, Choice
from reticent.service.rate_limits import Gate, RateLimiter, SizeLimit, is_allowed, routed_path
from reticent.service.store import Token, now

OPERATOR = Token("a" * 16, "", "operator", "", now() + 1000, 0)
CLIENT = replace(OPERATOR, id="c" * 16, role="client", experiment="doses")


@pytest.mark.parametrize(
    ("token", "experiment", "allowed"),
    [
        (OPERATOR, None, True),
        (OPERATOR, "doses", False),
        (CLIENT, "doses", True),
        (CLIENT, "other", False),
        (CLIENT, None, False),
        (replace(CLIENT, role="operator"), "doses", False),
    ],
)
def test_who_may(token, experiment, allowed):
    assert is_allowed(token, experiment) is allowed


def test_many_keys_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(limits, "_MOST_KEYS", 3)
    monkeypatch.setattr(limits.time, "monotonic", lambda: 0.0)
    buckets = RateLimiter(rate=1.0, burst=1.0)
    for key in "abcd":
        assert buckets.take(key) == 0
    assert buckets.take("d") == 1.0
    assert buckets.take("a") == 0  # was forgotten, which lets it in again


def test_a_bucket_refills_by_the_time_that_went_by(monkeypatch):
    at = [1000.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: at[0])
    buckets = RateLimiter(rate=0.5, burst=3.0)
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 2.0]
    at[0] += 1.0
    assert buckets.take("a") == pytest.approx(1.0)
    at[0] += 1.0
    assert buckets.take("a") == 0
    at[0] += 1000
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 2.0], (
        "and never holds more than a burst"
    )


def asked(app, *chunks, path="/x", headers=(), kind="http", client=("1.2.3.4", 5)):
    """What an app answers, and what it would be told after the request."""
    sent = []
    given = iter(
        [
            {"type": "http.request", "body": one, "more_body": i + 1 < len(chunks)}
            for i, one in enumerate(chunks)
        ]
    )

    async def receive():
        return next(given, {"type": "http.disconnect"})

    async def send(message):
        sent.append(message)

    scope = {
        "type": kind,
        "path": path,
        "headers": list(headers),
        "client": client,
        "root_path": "",
    }
    asyncio.run(app(scope, receive, send))
    return sent


class Echo:
    """Answers with the body that it was given."""

    def __init__(self):
        self.seen = []

    async def __call__(self, scope, receive, send):
        body = b""
        more = True
        while more:
            message = await receive()
            body = body + message.get("body", b"")
            more = message.get("more_body", False)
        self.seen.append((body, (await receive())["type"], scope.get("state")))
        await send({"type": "http.response.start", "status": 200, "headers": []})


@pytest.mark.parametrize(
    ("chunks", "passed"),
    [
        ([b"x" * 10], True),
        ([b"x" * 11], False),
        ([b"x" * 5, b"y" * 5], True),
        ([b"x" * 5, b"y" * 6], False),
        ([b""], True),
        ([b"x"] * 11, False),
    ],
)
def test_bodies_are_passed_on_whole_or_refused(chunks, passed):
    inner = Echo()
    answer = asked(SizeLimit(inner, 10), *chunks)
    assert answer[0]["status"] == (200 if passed else 413)
    assert inner.seen == ([(b"".join(chunks), "http.disconnect", None)] if passed else [])
    if not passed:
        assert json.loads(answer[1]["body"]) == {
            "detail": "The request is too long: at most 10 bytes."
        }


def test_a_body_that_never_ends_is_not_read_to_its_end():
    read = []

    async def receive():
        read.append(1)
        return {"type": "http.request", "body": b"x" * 10, "more_body": True}

    async def send(message):
        read.append(message["type"])

    asyncio.run(SizeLimit(Echo(), 10)({"type": "http"}, receive, send))
    assert read.count(1) == 9  # eight times the limit, and the one that passes it


def test_what_is_no_request_is_none_of_the_limits_business():
    inner = Echo()
    for app in (SizeLimit(inner, 1), Gate(inner, find=None, rate=1, public=frozenset())):
        asked(app, b"long enough", kind="lifespan")
    assert [body for body, *_ in inner.seen] == [b"long enough"] * 2


BEARER = (b"authorization", b"Bearer good")


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/health", (), 200),
        ("/x", (), 401),
        ("/x", [(b"authorization", b"good")], 401),
        ("/x", [(b"authorization", b"Basic good")], 401),
        ("/x", [(b"authorization", b"bearer good")], 200),
        ("/x", [BEARER], 200),
        ("/x", [(b"x-authorization", b"Bearer good")], 401),
        ("/experiments/doses/ask", [BEARER], 403),
        ("/experiments/doses/ask/more", [BEARER], 200),
        ("/experiments/doses/tokens", [BEARER], 200),
        ("/x", [(b"authorization", b"Bearer client")], 403),
        ("/experiments/doses/ask", [(b"authorization", b"Bearer client")], 200),
        ("/experiments/doses/report", [(b"authorization", b"Bearer client")], 200),
        ("/experiments/other/ask", [(b"authorization", b"Bearer client")], 403),
        ("/experiments/doses/estimate", [(b"authorization", b"Bearer client")], 403),
        ("/x/doses/ask", [(b"authorization", b"Bearer client")], 403),
    ],
)
def test_the_gate(path, headers, status):
    inner = Echo()
    gate = Gate(
        inner, {"good": OPERATOR, "client": CLIENT}.get, rate=10, public=frozenset({"/health"})
    )
    answer = asked(gate, b"", path=path, headers=headers)
    assert answer[0]["status"] == status
    assert len(inner.seen) == (status == 200)
    if status == 200 and path != "/health":
        assert inner.seen[0][2]["token"] in (OPERATOR, CLIENT)
    if status == 401:
        assert (b"www-authenticate", b"Bearer") in answer[0]["headers"]


def test_too_many_requests_are_told_when_to_come_again(monkeypatch):
    monkeypatch.setattr(limits.time, "monotonic", lambda: 0.0)
    gate = Gate(Echo(), {"good": OPERATOR}.get, rate=0.5, public=frozenset())
    assert asked(gate, b"", headers=[BEARER])[0]["status"] == 200
    answer = asked(gate, b"", headers=[BEARER])[0]
    assert answer["status"] == 429
    assert (b"retry-after", b"2") in answer["headers"]
    wrong = [asked(gate, b"", client=("9.9.9.9", 1))[0]["status"] for _ in range(21)]
    assert wrong == [401] * 20 + [429]
    assert asked(gate, b"", client=("8.8.8.8", 1))[0]["status"] == 401, (
        "another address has a bucket of its own"
    )
    assert asked(gate, b"", client=None)[0]["status"] == 401


def test_a_database_that_fails_lets_nobody_in():
    def broken(text):
        raise LedgerError("gone: /secret/path")

    answer = asked(Gate(Echo(), broken, rate=1, public=frozenset()), b"", headers=[BEARER])
    assert answer[0]["status"] == 503
    assert b"secret" not in answer[1]["body"]


@pytest.mark.parametrize(
    ("path", "root", "routed"),
    [
        ("/api/x", "/api", "/x"),
        ("/api", "/api", ""),
        ("/apix", "/api", "/apix"),
        ("/x", "", "/x"),
        ("/x", "/api", "/x"),
    ],
)
def test_a_prefix_is_taken_off_only_where_it_ends(path, root, routed):
    assert routed_path({"path": path, "root_path": root}) == routed


def replies(monkeypatch, *what):
    """Answer requests one after the other: a value, or a status and a body."""
    seen = []
    waits = []
    left = iter(what)

    def urlopen(request, timeout):
        seen.append(request)
        one = next(left)
        if isinstance(one, Exception):
            raise one
        if isinstance(one, tuple):
            raise urllib.error.HTTPError(
                request.full_url, one[0], "", Message(), io.BytesIO(one[1])
            )
        return io.BytesIO(one)

    monkeypatch.setattr(clients.urllib.request, "urlopen", urlopen)
    monkeypatch.setattr(clients.time, "sleep", waits.append)
    return seen, waits


def test_a_client_tries_again_while_the_service_is_busy_or_away(monkeypatch):
    busy = [(429, b"{}"), (503, b'{"detail": "later"}'), OSError("refused"), b"half an ans"]
    seen, waits = replies(monkeypatch, *busy, b'{"choice": 1, "ask": "f"}')
    client = BanditClient("http://host:1/api/", experiment="a b/c", token="rt_x")
    assert client.ask([(1, 2), (3, 4)]) == Choice(1, "f")
    assert {one.full_url for one in seen} == {"http://host:1/api/experiments/a%20b%2Fc/ask"}
    assert seen[0].get_header("Authorization") == "Bearer rt_x"
    assert json.loads(seen[-1].data) == {"candidates": [[1.0, 2.0], [3.0, 4.0]]}
    assert waits == [0.05, 0.1, 0.2, 0.4]


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, b'{"detail": "This token is for something else."}', r"\(403\): This token is"),
        (422, b"<html>", "did not say why"),
        (404, b"[]", "did not say why"),
        (500, b'{"other": 1}', "did not say why"),
    ],
)
def test_a_refusal_is_final_and_says_why(monkeypatch, status, body, words):
    seen, waits = replies(monkeypatch, (status, body))
    with pytest.raises(ReticentError, match=words):
        BanditClient("https://host", experiment="a", token="t").tell(Choice(0, "f"), 1)
    assert (len(seen), waits) == (1, [])


def test_a_client_gives_up_after_eight_times_and_says_what_to_check(monkeypatch):
    _, waits = replies(monkeypatch, *[(503, b'{"detail": "The database cannot be used."}')] * 8)
    with pytest.raises(ReticentError, match="database"):
        BanditClient("https://host", experiment="a", token="t").tell(Choice(0, "f"), 1)
    assert len(waits) == 8


@pytest.mark.parametrize(
    "url", ["ftp://host", "host:80", "", "file:///etc/passwd", "javascript:alert(1)"]
)
def test_a_client_speaks_http_only(url):
    with pytest.raises(BadInput, match=r"https://example\.org"):
        BanditClient(url, experiment="a", token="t")


def test_many_addresses_have_a_limit_together(monkeypatch):
    monkeypatch.setattr(limits.time, "monotonic", lambda: 0.0)
    gate = Gate(Echo(), {"good": OPERATOR}.get, rate=10, public=frozenset())
    found = [asked(gate, b"", client=(f"10.0.0.{number}", 1))[0]["status"] for number in range(250)]
    assert found == [401] * 200 + [429] * 50
    assert asked(gate, b"", headers=[BEARER])[0]["status"] == 200, (
        "whoever has a token does not wait for others"
    )
