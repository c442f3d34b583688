"""Tokens: who may do what.

A token is ``rt_<id>_<secret>``; the id finds its row, the secret is compared in constant time. Only
a SHA-256 of the secret is kept: it has 256 random bits, so a slow hash would add nothing.
"""

import hashlib
import hmac
import re
import secrets
import time

from reticent.service.store import Store, Token, now

__all__ = ["ROLES", "Tokens", "issue"]

ROLES = ("operator", "client")
_FORM = re.compile(r"rt_([0-9a-f]{16})_([0-9a-f]{64})")
_REFRESH_SECONDS = 2.0  # until tokens that another process made or revoked are seen


def issue(
    store: Store, role: str, experiment: str = "", *, days: float, relay: bool = False
) -> str:
    """Make a token and give it away: it cannot be shown again.

    ``relay``: for an app that many people use.
    """
    id_ = secrets.token_hex(8)
    secret = secrets.token_hex(32)
    expires = now() + int(days * 86400)
    token = Token(id_, _hash(secret), role, experiment, expires, revoked=0, relay=int(relay))
    with store.write() as execute:
        store.add_token(execute, token)
    return f"rt_{id_}_{secret}"


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class Tokens:
    """The tokens as they were a moment ago."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known = dict[str, Token]()
        self._read_at = -_REFRESH_SECONDS

    def find(self, text: str) -> Token | None:
        """The token that was given, if there is one, and it still counts."""
        self.refresh()
        id_ = ""
        secret = ""
        match = _FORM.fullmatch(text)
        if match:
            id_, secret = match.groups()
        token = self._known.get(id_)
        expected = _hash("")
        if token:
            expected = token.hash
        same = hmac.compare_digest(expected, _hash(secret))
        if token and same and not token.revoked and token.expires > now():
            return token
        return None

    def refresh(self, *, soon: bool = False) -> None:
        """Read them again if they are old, or if some were just changed."""
        if soon or time.monotonic() - self._read_at > _REFRESH_SECONDS:
            with self._store.read() as execute:
                self._known = {token.id: token for token in self._store.tokens(execute)}
            self._read_at = time.monotonic()
