"""A client of the bandit service, for programs that ask and tell: standard library only."""

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reticent.errors import BadInput, ReticentError

__all__ = ["BanditClient", "Choice"]

_TRIES = 8


@dataclass(frozen=True)
class Choice:
    """What to try in a round: the candidate's number, and the round's own, to tell with."""

    index: int
    ask: str


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
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise BadInput(f"url must be that of a service, such as https://example.org, not {url!r}.")
        self._url = f"{url.rstrip('/')}/experiments/{urllib.parse.quote(experiment, safe='')}"
        self._token, self._timeout = token, timeout

    def ask(self, candidates: Sequence[Sequence[float]]) -> Choice:
        """Begin a round: which candidate to try."""
        answer = self._post("ask", {"candidates": [[float(v) for v in one] for one in candidates]})
        return Choice(answer["choice"], answer["ask"])

    def tell(self, choice: Choice, reward: float) -> None:
        """End a round."""
        self._post("tell", {"ask": choice.ask, "reward": float(reward)})

    def _post(self, what: str, body: dict[str, Any]) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._url}/{what}", json.dumps(body).encode(), headers, method="POST")
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


def _detail(said: bytes) -> str:
    try:
        return str(json.loads(said)["detail"])
    except (ValueError, KeyError, TypeError):
        return "it did not say why."
