"""Clients of the bandit service, for programs that ask and tell: HTTP by the standard library."""

import http.client
import json
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reticent.errors import BadInput, ReticentError
from reticent.models.bandits.local import LocalBanditClient

__all__ = ["BanditClient", "Choice", "LocalClient", "LocalRound"]

_TRIES = 8
_FIRST_WAIT = 0.05  # seconds; each wait is twice as long as the one before


@dataclass(frozen=True)
class Choice:
    """What to try in a round: the candidate's number, and the round's own, to tell with."""

    index: int
    ask: str


class _Connection:
    """Requests to one experiment of a service."""

    def __init__(self, url: str, *, experiment: str, token: str, timeout: float = 30.0) -> None:
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise BadInput(
                f"url must be that of a service, such as https://example.org, not {url!r}."
            )
        self._url = f"{url.rstrip('/')}/experiments/{urllib.parse.quote(experiment, safe='')}"
        self._token = token
        self._timeout = timeout

    def call(self, action: str, body: dict[str, Any] | None = None) -> Any:
        """POST a body, or GET; until there is an answer."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}/{action}", data, headers)
        for attempt in range(_TRIES):
            try:
                with urllib.request.urlopen(request, timeout=self._timeout) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                with error:
                    problem = _detail(error.read())
                if error.code not in (429, 503):
                    raise ReticentError(f"The service refused ({error.code}): {problem}") from None
            except (OSError, http.client.HTTPException, ValueError) as error:
                problem = str(error)  # no answer, or half of one
            time.sleep(_FIRST_WAIT * 2**attempt)
        raise ReticentError(
            f"The service at {self._url} does not answer: {problem} Check that "
            "it runs, then try again."
        )


class BanditClient:
    """Ask and tell over HTTP, again and again until the service has answered.

    Parameters
    ----------
    url : str
        Of the service, such as ``http://127.0.0.1:8080``; use HTTPS wherever the way there is not
        your own.
    experiment, token : str
        As the operator gave them.

    Privacy
    -------
    The service sees candidates and rewards and is trusted with them (joint differential privacy). A
    tell that is sent twice, because its answer was lost, counts once.
    """

    def __init__(self, url: str, *, experiment: str, token: str, timeout: float = 30.0) -> None:
        self._connection = _Connection(url, experiment=experiment, token=token, timeout=timeout)

    def ask(self, candidates: Sequence[Sequence[float]]) -> Choice:
        """Begin a round: which candidate to try."""
        rows = [[float(value) for value in candidate] for candidate in candidates]
        answer = self._connection.call("ask", {"candidates": rows})
        return Choice(answer["choice"], answer["ask"])

    def tell(self, choice: Choice, reward: float) -> None:
        """End a round."""
        self._connection.call("tell", {"ask": choice.ask, "reward": float(reward)})


class LocalClient:
    """Rounds of a local experiment: choices are made here, and records leave with noise only.

    Parameters
    ----------
    url, experiment, token
        As for `BanditClient`.
    epsilon, delta : float
        The promise, as the operator announced it. It is kept here, whatever the service says; one
        with another promise than the service counts on is refused there.

    Privacy
    -------
    As for `reticent.LocalBanditClient`: the service sees the noisy report, when a round took place,
    and the token. Each round is one release, whether it counts or comes too late: a person who
    takes part k times makes k of them.
    """

    def __init__(
        self,
        url: str,
        *,
        experiment: str,
        token: str,
        epsilon: float,
        delta: float,
        timeout: float = 30.0,
    ) -> None:
        self._connection = _Connection(url, experiment=experiment, token=token, timeout=timeout)
        self._promise = {"epsilon": epsilon, "delta": delta}

    def begin(self) -> "LocalRound":
        """Begin a round: fetch what the service knows."""
        message = json.dumps(self._connection.call("message")).encode()
        return LocalRound(self._connection, LocalBanditClient(message, **self._promise))


class LocalRound:
    """One round: `ask` as often as you like, `tell` once."""

    def __init__(self, connection: _Connection, client: LocalBanditClient) -> None:
        self._connection = connection
        self._client = client
        self._id = secrets.token_hex(16)
        self._report: dict[str, Any] | None = None

    def ask(self, candidates: Any) -> int:
        """Which of the candidates to try. Nothing is sent."""
        return self._client.ask(candidates)

    def tell(self, candidate: Any, reward: float) -> bool:
        """Send the noisy report; False if it came too late, after the batch that it was made for.

        A late report teaches the service nothing, but it has left: the promise is spent as by one
        that counts.
        """
        self._report = json.loads(self._client.tell(candidate, reward))
        return self.send()

    def send(self) -> bool:
        """Send the report again, where the service gave no answer to `tell`.

        The same one, which counts once.
        """
        if self._report is None:
            raise BadInput("There is no report yet: tell first.")
        body = {"id": self._id, "report": self._report}
        return bool(self._connection.call("report", body)["counted"])


def _detail(answer: bytes) -> str:
    """Why the service refused."""
    try:
        return str(json.loads(answer)["detail"])
    except (ValueError, KeyError, TypeError):
        return "it did not say why."
