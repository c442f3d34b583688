"""Model files that the command line writes after a charge.

Checked before it, and rescued if it fails all the same. A fit that was paid for and could not be
saved would be lost with the process. So the very file is opened, written to and removed before
anything is charged; and if saving fails later (the disk filled up meanwhile, the file appeared),
the model is written to another place, and the error says which.
"""

import os
import secrets
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from reticent.errors import BadFile, CorruptModel, ReticentError
from reticent.files.output import check_new

__all__ = ["check_model_file", "check_place", "save_or_rescue"]

_ROOM = 2**20  # bytes that must be free: most models have less


def check_model_file(path: Path) -> None:
    """Refuse a model file that cannot be opened, before what it needs is imported."""
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise CorruptModel(
            f"{path} cannot be read: {error.strerror}. Check the path, and that you may read it."
        ) from None


def check_place(out: Path) -> None:
    """Find out before any charge whether a model can be saved here.

    The name, the folder, the rights and some space.
    """
    check_new(out, "What is in it may have been paid for")
    made = False
    try:
        with open(out, "xb") as file:
            made = True
            file.write(bytes(_ROOM))
            file.flush()
            os.fsync(file.fileno())
    except (OSError, ValueError) as error:
        raise BadFile(
            f"{out} cannot be written: {_reason(error)}. Nothing was charged: "
            "choose another place for --out."
        ) from None
    finally:
        if made:
            with suppress(OSError):
                out.unlink()


def save_or_rescue(
    model: Any, out: Path, charged: Callable[[], str], *, sign: Path | None = None
) -> None:
    """Save a model, or write it to another place and say which.

    ``charged``: gives what the error says of the account, and is asked when the model is on disk:
    the ledger may be out of reach by now. ``sign``: a private key to sign the file with.
    """
    try:
        model.save(out, sign_with=sign)
        return
    except (ReticentError, OSError) as error:
        reason = _reason(error)
    place = _rescued(model, out.name.removesuffix(".reticent"), sign)
    if place is None:
        raise BadFile(
            f"{out} cannot be written: {reason}. The release is lost: no other "
            f"place could be either. {charged()}"
        )
    raise BadFile(
        f"{out} cannot be written: {reason}. The model was saved as {place} instead: move it where "
        f"it belongs, no other fit is needed. {charged()}"
    )


def _rescued(model: Any, name: str, sign: Path | None) -> Path | None:
    """Save in the working folder or in that for temporary files, under a name that nothing has.

    None if neither can be.
    """
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        place = folder / f"{name[:100]}-rescued-{secrets.token_hex(4)}.reticent"
        with suppress(ReticentError, OSError):
            model.save(place, sign_with=sign)
            return place
    return None


def _reason(error: BaseException | None) -> str:
    """What the operating system says, if it said something."""
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        error = error.__cause__ or error.__context__
    return "it exists by now, or its name is not one"
