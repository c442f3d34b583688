"""Model files: the releases, the public parameters, and a SHA-256 over all of it. No pickle, nothing else inside.

A file is one line, ``reticent 1 <sha-256 of the rest>``, and then a safetensors block: one tensor per released array, and
all that is not an array as JSON in its header. Loading rebuilds the model from the releases (`from_releases`), so a file
cannot hold anything that the releases do not say. The ledger's URL is left out: it may hold a password.
The file of an obfuscated curve holds its inputs X and its release W as tensors.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels
from sklearn.gaussian_process.kernels import Kernel

from reticent.errors import BadInput, CorruptModel, ReticentError
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Release
from reticent.privacy.events import event_from_dict

__all__ = [
    "NOT_STORED",
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

_MAGIC = b"reticent 1 "
_KEPT = "The fitted model is still in memory, and needs no other fit"  # nor another charge, which whoever reads this may fear
NOT_STORED = ("ledger", "dataset", "random_state")  # of an estimator inside another, which has its own


def check_free(path: Path, *, overwrite: bool) -> None:
    """Refuse to replace a file that exists, unless it was asked for."""
    if not overwrite and os.path.exists(path):  # Path.exists raises for names that are too long
        raise BadInput(f"{path} exists already. {_KEPT}: choose another name, or replace the file with overwrite=True.")


def save(model: Any, path: str | Path, *, overwrite: bool) -> None:
    """Write ``model`` to ``path``, whole or not at all."""
    header = {"params": plain_params(model._params), "releases": [_header(release) for release in model.releases_]}
    tensors: dict[str, NDArray[np.float64]] = {}
    for i, release in enumerate(model.releases_):
        tensors[f"{i}.value"], tensors[f"{i}.scale"] = release.value, release.scale
    _write(model, Path(path), header, tensors, overwrite=overwrite)


def save_curve(model: Any, path: str | Path, *, overwrite: bool) -> None:
    """Write a released curve to ``path``: what the curve was trained on is no part of it, only what was learned."""
    told = model.release()
    params = {**model.get_params(deep=False), "train_on": None, "random_state": None}  # a seed would tell the noise
    header = {
        "params": plain_params(params),
        "release": {name: value for name, value in told.items() if name != "w"},
        "releases": [],
    }
    _write(model, Path(path), header, {"X": model.X_, "w": model.released_}, overwrite=overwrite)


def _write(
    model: Any, path: Path, header: dict[str, Any], tensors: dict[str, NDArray[np.float64]], *, overwrite: bool
) -> None:
    from safetensors.numpy import save as to_bytes

    import reticent

    check_free(path, overwrite=overwrite)
    header = {"model": type(model).__name__, "version": reticent.__version__, **header}
    whole = {name: np.ascontiguousarray(one) for name, one in tensors.items()}
    body = to_bytes(whole, metadata={"reticent": json.dumps(header, sort_keys=True)})
    scratch = path.with_name(path.name + ".part")
    try:
        with open(scratch, "wb") as file:
            file.write(_MAGIC + sha256(body).hexdigest().encode() + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except OSError as error:
        with suppress(OSError):
            scratch.unlink()
        raise BadInput(
            f"{path} cannot be written: {error.strerror}. {_KEPT}: give a file name in a folder that exists."
        ) from None


def load(path: str | Path) -> Any:
    """Read a model file and rebuild the fitted model from its releases."""
    header, tensors, _ = _contents(path)
    releases = _releases(path, header, tensors)
    try:
        cls = _class_named(header["model"])
    except ValueError:
        raise CorruptModel(
            f"{path} holds a {header['model']!r}, which this version of reticent does not know: upgrade it."
        ) from None
    try:
        params = restored_params(header["params"])
        if "release" in header:
            return cls.from_release(tensors["X"], {**header["release"], "w": tensors["w"].tolist()}, **params)
        return cls.from_releases(releases, **params)
    except (ReticentError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CorruptModel(
            f"{path} was written by reticent {header['version']} and does not fit this one: {error}"
        ) from None


def read(path: str | Path) -> tuple[dict[str, Any], list[Release], str]:
    """Read and check a model file: its header, its releases (none: a curve), and its SHA-256."""
    header, tensors, digest = _contents(path)
    return header, _releases(path, header, tensors), digest


def _contents(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[np.float64]], str]:
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise CorruptModel(f"{path} cannot be read: {error.strerror}.") from None
    first, _, body = content.partition(b"\n")
    digest = sha256(body).hexdigest()
    if not first.startswith(_MAGIC):
        raise CorruptModel(f"{path} is not a reticent model file.")
    if first != _MAGIC + digest.encode():
        raise CorruptModel(
            f"{path} is not what was saved: it is truncated or has been altered. Restore it from a copy."
        )
    try:
        size = int.from_bytes(body[:8], "little")
        header = json.loads(json.loads(body[8 : 8 + size])["__metadata__"]["reticent"])
        return header, from_bytes(body), digest
    except (SafetensorError, AttributeError, LookupError, ValueError, TypeError):
        raise _other_contents(path) from None


def _releases(path: str | Path, header: dict[str, Any], tensors: dict[str, NDArray[np.float64]]) -> list[Release]:
    try:
        return [
            restored_release({**one, "value": tensors[f"{i}.value"], "scale": tensors[f"{i}.scale"]})
            for i, one in enumerate(header["releases"])
        ]
    except (AttributeError, LookupError, ValueError, TypeError):
        raise _other_contents(path) from None


def _other_contents(path: str | Path) -> CorruptModel:
    return CorruptModel(f"{path} has the right checksum but not the contents of a reticent model file.")


def plain_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON values, without the ledger."""
    kept = {name: value for name, value in params.items() if name != "ledger"}
    if not isinstance(kept["random_state"], (int, type(None))):
        kept["random_state"] = None  # a generator cannot be stored; the releases are stamped in any case
    return {name: _plain(name, value) for name, value in kept.items()}


def restored_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters from JSON values."""
    return {name: _restored(value) for name, value in params.items()}


def plain_release(release: Release) -> dict[str, Any]:
    """A release as JSON values; every digit is kept."""
    return {**_header(release), "value": release.value.tolist(), "scale": release.scale.tolist()}


def restored_release(told: Mapping[str, Any]) -> Release:
    """A release from `plain_release`, or from a file's header with its arrays; refuse any other fields, or an altered one."""
    fields = dict(told)
    value, scale = (np.asarray(fields.pop(name), dtype=np.float64) for name in ("value", "scale"))
    event, bounds = event_from_dict(fields.pop("event")), Bounds.from_dict(fields.pop("bounds"))
    if not isinstance(fields.get("checksum"), str):
        raise BadInput("A release has a checksum.")
    return Release(value=value, scale=scale, event=event, bounds=bounds, **fields)


def _header(release: Release) -> dict[str, Any]:
    return {**release.header(), "checksum": release.checksum}


def _plain(name: str, value: Any) -> Any:
    """A parameter as JSON values."""
    if isinstance(value, Bounds):
        return {"Bounds": value.to_dict()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"Dict": {key: _plain(f"{name}[{key!r}]", part) for key, part in value.items()}}
    if hasattr(value, "learn") and hasattr(value, "get_params"):
        own = {key: _plain(key, part) for key, part in value.get_params(deep=False).items() if key not in NOT_STORED}
        return {"Estimator": type(value).__name__, "params": own}
    if isinstance(value, Kernel) and type(value) is getattr(kernels, type(value).__name__, None):
        params = value.get_params(deep=False)
        return {"Kernel": type(value).__name__, "params": {key: _plain(key, part) for key, part in params.items()}}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(name, part) for part in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise BadInput(
        f"The parameter {name} cannot be written to a model file: {type(value).__name__}. {_KEPT}: keep it with pickle, or, "
        "of a search, save best_estimator_."
    )


def _class_named(name: Any) -> Any:
    import reticent

    cls = getattr(reticent, name, None) if name in reticent.__all__ else None
    if not (isinstance(cls, type) and (hasattr(cls, "from_releases") or hasattr(cls, "from_release"))):
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
        return _class_named(value["Estimator"])(**{key: _restored(part) for key, part in value["params"].items()})
    cls = getattr(kernels, str(value.get("Kernel")), None)
    if not (isinstance(cls, type) and issubclass(cls, Kernel)):
        raise ValueError("not a kernel of scikit-learn")
    return cls(**{key: _restored(part) for key, part in value["params"].items()})
