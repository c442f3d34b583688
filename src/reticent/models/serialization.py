"""Model files: the releases, the public parameters, and a SHA-256 over all of it.

No pickle, nothing else inside. A file is one line, ``reticent 2 <sha-256 of the rest>``, and then a
safetensors block: one tensor per released array, and all that is not an array as JSON in its
header. Loading rebuilds the model from the releases (`from_releases`), so a file cannot hold
anything that the releases do not say. The ledger's URL is left out: it may hold a password; and a
file that names one is refused, so that no file decides what a program connects to. The file of an
obfuscated curve holds its inputs X and its release W as tensors.

The first line of a signed file goes on with the signature of what stands before it (`signature`). A
SHA-256 and checksums tell that a file is whole. Who wrote it, only a signature tells: whoever can
write files can write one with any numbers.
"""

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels
from sklearn.gaussian_process.kernels import Kernel

from reticent.errors import BadInput, CorruptModel, ReticentError
from reticent.files.atomic import new_file
from reticent.models.signature import fingerprint, private_key, public_key, signature, signer_of
from reticent.privacy.accounting.events import event_from_dict
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Release

__all__ = [
    "NOT_STORED",
    "ModelFile",
    "check_free",
    "load",
    "plain_params",
    "plain_release",
    "read",
    "restored_params",
    "restored_release",
    "save",
    "save_curve",
]

_MAGIC = b"reticent 2 "
_OLD = b"reticent 1 "
# what making a model of somebody's numbers may raise
_UNFIT = (
    ReticentError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
_HEADER = {"model", "version", "params", "releases"}
# nor another charge, which whoever reads this may fear
_KEPT = (
    "The fitted model is still in memory, and needs no other fit, but is lost "
    "when this program ends"
)
NOT_STORED = (
    "ledger",
    "dataset",
    "random_state",
)  # of an estimator inside another, which has its own


class ModelFile(NamedTuple):
    """What is in a model file.

    Its header, its releases (none: a curve), its SHA-256, and the signer's fingerprint, if any.
    """

    header: dict[str, Any]
    releases: list[Release]
    digest: str
    signer: str | None


def check_free(path: Path, *, overwrite: bool) -> None:
    """Refuse to replace a file that exists, unless it was asked for."""
    if not overwrite and os.path.exists(path):  # Path.exists raises for names that are too long
        raise BadInput(
            f"{path} exists already. {_KEPT}: choose another name, or replace "
            "the file with overwrite=True."
        )


def save(
    model: Any,
    path: str | Path,
    *,
    overwrite: bool,
    sign_with: str | os.PathLike[str] | None = None,
) -> None:
    """Write ``model`` to ``path``, whole or not at all; signed, if a private key is given."""
    header = {
        "params": plain_params(model._params),
        "releases": [_header(release) for release in model.releases_],
    }
    tensors: dict[str, NDArray[np.float64]] = {}
    for i, release in enumerate(model.releases_):
        tensors[f"{i}.value"], tensors[f"{i}.scale"] = release.value, release.scale
    _write(model, Path(path), header, tensors, overwrite=overwrite, sign_with=sign_with)


def save_curve(
    model: Any,
    path: str | Path,
    *,
    overwrite: bool,
    sign_with: str | os.PathLike[str] | None = None,
) -> None:
    """Write a released curve to ``path``.

    What the curve was trained on is no part of it, only what was learned.
    """
    released = model.release()
    params = {
        **model.get_params(deep=False),
        "train_on": None,
        "random_state": None,
    }  # a seed would reveal the noise
    header = {
        "params": plain_params(params),
        "release": {name: value for name, value in released.items() if name != "w"},
        "releases": [],
    }
    tensors = {"X": model.X_, "w": model.released_}
    _write(model, Path(path), header, tensors, overwrite=overwrite, sign_with=sign_with)


def _write(
    model: Any,
    path: Path,
    header: dict[str, Any],
    tensors: dict[str, NDArray[np.float64]],
    *,
    overwrite: bool,
    sign_with: str | os.PathLike[str] | None,
) -> None:
    from safetensors.numpy import save as to_bytes

    import reticent

    if sign_with is None:
        key = None
    else:
        key = private_key(sign_with)
    check_free(path, overwrite=overwrite)
    header = {"model": type(model).__name__, "version": reticent.__version__, **header}
    whole = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    body = to_bytes(whole, metadata={"reticent": json.dumps(header, sort_keys=True)})
    first = _MAGIC + sha256(body).hexdigest().encode()
    if key is not None:
        first += b" " + signature(key, first)
    try:
        with new_file(path, overwrite=overwrite) as file:
            file.write(first + b"\n" + body)
    except FileExistsError:
        check_free(path, overwrite=overwrite)
        raise BadInput(
            f"{path} cannot be written: its name is taken. {_KEPT}: choose another name."
        ) from None
    except OSError as error:
        raise BadInput(
            f"{path} cannot be written: {error.strerror}. {_KEPT}: give a file "
            "name in a folder that exists."
        ) from None


def load(path: str | Path, *, signed_by: str | os.PathLike[str] | None = None) -> Any:
    """Read a model file and rebuild the fitted model from its releases.

    Parameters
    ----------
    path : str or Path
        What ``save`` wrote.
    signed_by : str or Path, optional
        A public key (Ed25519, PEM): a file that was not signed with its private key is refused.
        Without it nothing proves who wrote a file; a signature that is there is checked in any
        case.
    """
    if signed_by is None:
        expected = None
    else:
        expected = fingerprint(public_key(signed_by))
    (header, releases, _, signer), tensors = _contents(path)
    if expected is not None and signer != expected:
        if signer is None:
            whose = "not signed"
        else:
            whose = f"signed by {signer}"
        raise CorruptModel(
            f"{path} is {whose}, and not signed by {expected}, the key in "
            f"{signed_by}: do not trust it."
        )
    try:
        cls = _class_named(header["model"])
    except (TypeError, ValueError):
        raise CorruptModel(
            f"{path} holds a {header['model']!r}, which this version of "
            "reticent does not know: upgrade it."
        ) from None
    try:
        params = restored_params(header["params"])
        if "release" in header:
            model = cls.from_release(
                tensors["X"], {**header["release"], "w": tensors["w"].tolist()}, **params
            )
        else:
            model = cls.from_releases(releases, **params)
    except _UNFIT as error:
        raise CorruptModel(
            f"{path} was written by reticent {header['version']} and does not fit this one: {error}"
        ) from None
    model._signer = signer
    return model


def read(path: str | Path) -> ModelFile:
    """Read and check a model file."""
    return _contents(path)[0]


def _contents(path: str | Path) -> tuple[ModelFile, dict[str, NDArray[np.float64]]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise CorruptModel(
            f"{path} cannot be read: {error.strerror}. Check the path, and that you may read it."
        ) from None
    first, _, body = content.partition(b"\n")
    if first.startswith(_OLD):
        raise CorruptModel(
            f"{path} was written by reticent 0.1, whose files do not say what was protected and "
            "paid for: read it with that version, or fit the model again, which is charged again."
        )
    if not first.startswith(_MAGIC):
        raise CorruptModel(f"{path} is not a reticent model file.")
    digest = sha256(body).hexdigest()
    signed = _MAGIC + digest.encode()
    signed_rest = first.removeprefix(signed)
    if not signed_rest.startswith(b" "):
        signer = None
    else:
        signer = signer_of(signed_rest.removeprefix(b" "), signed)
    if not first.startswith(signed) or (signed_rest and signer is None):
        raise CorruptModel(
            f"{path} is not what was saved: it is truncated or has been "
            "altered. Restore it from a copy."
        )
    try:
        size = int.from_bytes(body[:8], "little")
        header = json.loads(json.loads(body[8 : 8 + size])["__metadata__"]["reticent"])
        tensors = from_bytes(body)
        _check_header(header, tensors)
        releases = [
            restored_release(
                {**release, "value": tensors[f"{i}.value"], "scale": tensors[f"{i}.scale"]}
            )
            for i, release in enumerate(header["releases"])
        ]
    except ReticentError as error:
        raise CorruptModel(
            f"{path} has the right checksum, but a release in it is none: {error}"
        ) from None
    except (SafetensorError, *_UNFIT):
        raise CorruptModel(
            f"{path} has the right checksum but not the contents of a reticent model file."
        ) from None
    return ModelFile(
        header, releases, digest, None if signer is None else fingerprint(signer)
    ), tensors


def _check_header(header: Any, tensors: Mapping[str, Any]) -> None:
    """Refuse a header or arrays that `save` does not write, by names and types."""
    curve = "release" in header
    if header.keys() != _HEADER | ({"release"} if curve else set()):
        raise ValueError("other keys than a model file has")
    kinds = {"model": str, "version": str, "params": dict, "releases": list, "release": dict}
    if not all(isinstance(value, kinds[name]) for name, value in header.items()):
        raise ValueError("a part of another type than in a model file")
    numbers = range(len(header["releases"]))
    if curve:
        expected = {"X", "w"}
    else:
        expected = {f"{i}.{name}" for i in numbers for name in ("value", "scale")}
    if tensors.keys() != expected or (curve and header["releases"]):
        raise ValueError("other arrays than the releases have")


def plain_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON values, without the ledger."""
    kept = {name: value for name, value in params.items() if name != "ledger"}
    if not isinstance(kept["random_state"], (int, type(None))):
        kept["random_state"] = (
            None  # a generator cannot be stored; the releases are stamped in any case
        )
    return {name: _as_json(name, value) for name, value in kept.items()}


def restored_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters from JSON values; refuse a ledger, which is never stored."""
    if "ledger" in params:
        raise ValueError("a ledger is named, which no model file does")
    return {name: _restored(value) for name, value in params.items()}


def plain_release(release: Release) -> dict[str, Any]:
    """A release as JSON values; every digit is kept."""
    return {**_header(release), "value": release.value.tolist(), "scale": release.scale.tolist()}


def restored_release(stored: Mapping[str, Any]) -> Release:
    """A release from `plain_release`, or from a file's header with its arrays.

    Refuse any other fields, or an altered one.
    """
    fields = dict(stored)
    value, scale = (np.asarray(fields.pop(name), dtype=np.float64) for name in ("value", "scale"))
    event = event_from_dict(fields.pop("event"))
    bounds = Bounds.from_dict(fields.pop("bounds"))
    shares_spent = fields.pop("times", 1)  # the word in files
    if not isinstance(fields.get("checksum"), str):
        raise BadInput("A release has a checksum.")
    return Release(
        value=value, scale=scale, event=event, bounds=bounds, shares_spent=shares_spent, **fields
    )


def _header(release: Release) -> dict[str, Any]:
    return {**release.header(), "checksum": release.checksum}


def _as_json(name: str, value: Any) -> Any:
    """A parameter as JSON values."""
    if isinstance(value, Bounds):
        return {"Bounds": value.to_dict()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"Dict": {key: _as_json(f"{name}[{key!r}]", part) for key, part in value.items()}}
    if hasattr(value, "learn") and hasattr(value, "get_params"):
        stored_params = {
            key: _as_json(key, part)
            for key, part in value.get_params(deep=False).items()
            if key not in NOT_STORED
        }
        return {"Estimator": type(value).__name__, "params": stored_params}
    if isinstance(value, Kernel) and type(value) is getattr(kernels, type(value).__name__, None):
        params = value.get_params(deep=False)
        return {
            "Kernel": type(value).__name__,
            "params": {key: _as_json(key, part) for key, part in params.items()},
        }
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_as_json(name, part) for part in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise BadInput(
        f"The parameter {name} cannot be written to a model file: {type(value).__name__}. {_KEPT}: "
        "keep it with pickle, or, of a search, save best_estimator_."
    )


def _class_named(name: Any) -> Any:
    import reticent

    if name not in reticent.__all__:
        cls = None
    else:
        cls = getattr(reticent, name, None)
    if not (
        isinstance(cls, type) and (hasattr(cls, "from_releases") or hasattr(cls, "from_release"))
    ):
        raise ValueError("not an estimator of reticent")
    return cls


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_restored(part) for part in value)
    if not isinstance(value, dict):
        return value
    if "Bounds" in value:
        return Bounds.from_dict(value["Bounds"])
    if "Dict" in value:
        return {key: _restored(part) for key, part in value["Dict"].items()}
    if "Estimator" in value:
        if not value["params"].keys().isdisjoint(NOT_STORED):
            raise ValueError("an estimator inside another has no account and no seed of its own")
        return _class_named(value["Estimator"])(
            **{key: _restored(part) for key, part in value["params"].items()}
        )
    cls = getattr(kernels, str(value.get("Kernel")), None)
    if not (isinstance(cls, type) and issubclass(cls, Kernel)):
        raise ValueError("not a kernel of scikit-learn")
    return cls(**{key: _restored(part) for key, part in value["params"].items()})
