"""Tokens: who may do what. A token is ``rt_<id>_<secret>``; the id finds its row, the secret is compared in constant time.

Only a SHA-256 of the secret is kept: it has 256 random bits, so a slow hash would add nothing.
"""

import hashlib
import hmac
import re
import secrets
import time

from reticent.apps.service.store import Store, Token, now

__all__ = ["ROLES", "Tokens", "issue"]

ROLES = ("operator", "client")
_FORM = re.compile(r"rt_([0-9a-f]{16})_([0-9a-f]{64})")
_FRESH = 2.0  # seconds until tokens that another process made or revoked are seen


def issue(store: Store, role: str, experiment: str = "", *, days: float, relay: bool = False) -> str:
    """Make a token and give it away: it cannot be shown again. ``relay``: for an app that many people use."""
    id_, secret = secrets.token_hex(8), secrets.token_hex(32)
    one = Token(id_, _hash(secret), role, experiment, now() + int(days * 86400), 0, int(relay))
    with store.write() as execute:
        store.add_token(execute, one)
    return f"rt_{id_}_{secret}"


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class Tokens:
    """The tokens as they were a moment ago."""

    def __init__(self, store: Store) -> None:
        self._store, self._known, self._seen = store, dict[str, Token](), -_FRESH

    def find(self, text: str) -> Token | None:
        """The token that was given, if there is one, and it still counts."""
        self.refresh()
        match = _FORM.fullmatch(text)
        id_, secret = match.groups() if match else ("", "")
        one = self._known.get(id_)
        same = hmac.compare_digest(one.hash if one else _hash(""), _hash(secret))
        return one if one and same and not one.revoked and one.expires > now() else None

    def refresh(self, *, soon: bool = False) -> None:
        """Read them again if they are old, or if some were just changed."""
        if soon or time.monotonic() - self._seen > _FRESH:
            with self._store.read() as execute:
                self._known = {one.id: one for one in self._store.tokens(execute)}
            self._seen = time.monotonic()
