"""Signatures of model files: whoever has the public key can tell whose private key signed a file.

Keys are Ed25519, in PEM files as OpenSSL writes them::

    openssl genpkey -algorithm ed25519 -out key.pem
    openssl pkey -in key.pem -pubout -out key.pub

A key's fingerprint is the SHA-256 of its public part (DER, SubjectPublicKeyInfo)::

    openssl pkey -pubin -in key.pub -outform DER | sha256sum
"""

import os
from hashlib import sha256
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from reticent.errors import BadInput

__all__ = ["fingerprint", "private_key", "public_key", "signature", "signer_of"]

_KIND = b"ed25519"
_UNREADABLE = (
    TypeError,
    ValueError,
    UnsupportedAlgorithm,
)  # what is no PEM file, needs a password, or is unknown


def private_key(path: str | os.PathLike[str]) -> Ed25519PrivateKey:
    """Read a key to sign with."""
    content = _read_key(path)
    try:
        key = load_pem_private_key(content, password=None)
    except _UNREADABLE:
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadInput(
            f"{path} is no private key to sign with: give an Ed25519 key without a password, as "
            "PEM. To make one: openssl genpkey -algorithm ed25519 -out key.pem"
        )
    return key


def public_key(path: str | os.PathLike[str]) -> Ed25519PublicKey:
    """Read a key to compare signatures with."""
    content = _read_key(path)
    try:
        key = load_pem_public_key(content)
    except _UNREADABLE:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise BadInput(
            f"{path} is no public key: give an Ed25519 key, as PEM. "
            "To take it from a private one: openssl pkey -in key.pem -pubout -out key.pub"
        )
    return key


def _read_key(path: str | os.PathLike[str]) -> bytes:
    named = isinstance(path, (str, os.PathLike))
    if not named or "\n" in os.fsdecode(path):  # a key itself, which must never be repeated
        raise BadInput(
            'A key is given by the name of its PEM file, not by its contents: "key.pem".'
        )
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadInput(
            f"The key {path} cannot be read: {error.strerror}. Give the name of a PEM file."
        ) from None


def fingerprint(key: Ed25519PublicKey) -> str:
    """Give the key's name for people: the SHA-256 of its public part."""
    return sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def signature(key: Ed25519PrivateKey, message: bytes) -> bytes:
    """Sign: the kind of key, its public part and the signature, in hexadecimal digits."""
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return b" ".join([_KIND, public.hex().encode(), key.sign(message).hex().encode()])


def signer_of(text: bytes, message: bytes) -> Ed25519PublicKey | None:
    """Give the public key in ``text``, which `signature` wrote, if it signed ``message``.

    None if it did not.
    """
    kind, _, hexadecimal = text.partition(b" ")
    public, _, signed = hexadecimal.partition(b" ")
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public.decode()))
        key.verify(bytes.fromhex(signed.decode()), message)
    except (InvalidSignature, ValueError):
        return None
    lower = (
        public == public.lower() and signed == signed.lower()
    )  # one way of writing it, so that no bit can be flipped
    if kind == _KIND and lower and (len(public), len(signed)) == (64, 128):
        return key
    return None
