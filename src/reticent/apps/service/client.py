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
from reticent.models.local_bandit import LocalBanditClient

__all__ = ["BanditClient", "Choice", "LocalClient", "LocalRound"]

_TRIES = 8


@dataclass(frozen=True)
class Choice:
    """What to try in a round: the candidate's number, and the round's own, to tell with."""

    index: int
    ask: str


class _Line:
    """The line to one experiment of a service."""

    def __init__(self, url: str, *, experiment: str, token: str, timeout: float = 30.0) -> None:
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise BadInput(f"url must be that of a service, such as https://example.org, not {url!r}.")
        self._url = f"{url.rstrip('/')}/experiments/{urllib.parse.quote(experiment, safe='')}"
        self._token, self._timeout = token, timeout

    def call(self, what: str, body: dict[str, Any] | None = None) -> Any:
        """POST a body, or GET; until there is an answer."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}/{what}", data, headers)
        for wait in (0.05 * 2**k for k in range(_TRIES)):
            try:
                with urllib.request.urlopen(request, timeout=self._timeout) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                with error:
                    said = error.read()
                if error.code not in (429, 503):
                    raise ReticentError(f"The service refused ({error.code}): {_detail(said)}") from None
                problem = _detail(said)
            except (OSError, http.client.HTTPException, ValueError) as error:  # no answer, or half of one
                problem = str(error)
            time.sleep(wait)
        raise ReticentError(
            f"The service at {self._url} does not answer: {problem} Check that it runs, then try again."
        )


class BanditClient:
    """Ask and tell over HTTP, again and again until the service has answered.

    Parameters
    ----------
    url : str
        Of the service, such as ``http://127.0.0.1:8080``; use HTTPS wherever the way there is not your own.
    experiment, token : str
        As the operator gave them.

    Privacy
    -------
    The service sees candidates and rewards and is trusted with them (joint differential privacy). A tell that is sent twice,
    because its answer was lost, counts once.
    """

    def __init__(self, url: str, *, experiment: str, token: str, timeout: float = 30.0) -> None:
        self._line = _Line(url, experiment=experiment, token=token, timeout=timeout)

    def ask(self, candidates: Sequence[Sequence[float]]) -> Choice:
        """Begin a round: which candidate to try."""
        answer = self._line.call("ask", {"candidates": [[float(v) for v in one] for one in candidates]})
        return Choice(answer["choice"], answer["ask"])

    def tell(self, choice: Choice, reward: float) -> None:
        """End a round."""
        self._line.call("tell", {"ask": choice.ask, "reward": float(reward)})


class LocalClient:
    """Rounds of a local experiment: choices are made here, and records leave with noise only.

    Parameters
    ----------
    url, experiment, token
        As for `BanditClient`.
    epsilon, delta : float
        The promise, as the operator announced it. It is kept here, whatever the service says; one with another promise than the
        service counts on is refused there.

    Privacy
    -------
    As for `reticent.LocalBanditClient`: the service sees the noisy report, when a round took place, and the token. Each round is
    one release, whether it counts or comes too late: a person who takes part k times makes k of them.
    """

    def __init__(
        self, url: str, *, experiment: str, token: str, epsilon: float, delta: float, timeout: float = 30.0
    ) -> None:
        self._line = _Line(url, experiment=experiment, token=token, timeout=timeout)
        self._promise = {"epsilon": epsilon, "delta": delta}

    def begin(self) -> "LocalRound":
        """Begin a round: fetch what the service knows."""
        message = json.dumps(self._line.call("message")).encode()
        return LocalRound(self._line, LocalBanditClient(message, **self._promise))


class LocalRound:
    """One round: `ask` as often as you like, `tell` once."""

    def __init__(self, line: _Line, client: LocalBanditClient) -> None:
        self._line, self._client, self._id = line, client, secrets.token_hex(16)
        self._report: dict[str, Any] | None = None

    def ask(self, candidates: Any) -> int:
        """Which of the candidates to try. Nothing is sent."""
        return self._client.ask(candidates)

    def tell(self, candidate: Any, reward: float) -> bool:
        """Send the noisy report; False if it came too late, after the batch that it was made for.

        A late report teaches the service nothing, but it has left: the promise is spent as by one that counts.
        """
        self._report = json.loads(self._client.tell(candidate, reward))
        return self.send()

    def send(self) -> bool:
        """Send the report again, where the service gave no answer to `tell`: the same one, which counts once."""
        if self._report is None:
            raise BadInput("There is no report yet: tell first.")
        return bool(self._line.call("report", {"id": self._id, "report": self._report})["counted"])


def _detail(said: bytes) -> str:
    try:
        return str(json.loads(said)["detail"])
    except (ValueError, KeyError, TypeError):
        return "it did not say why."
