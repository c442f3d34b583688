"""Takes away what other systems do not have, in every Python process that is started with this
folder on its path.

`RETICENT_TEST_WITHOUT=sched_getaffinity,fcntl python -m pytest` puts it there (conftest.py).
"""

import builtins
import os

_import = builtins.__import__


def _without(names, name, values=None, *arguments, **options):
    """Import for everybody else.

    Asyncio and others have another way on systems that lack a module, and not here.
    """
    if name in names and str((values or {}).get("__name__", "")).startswith("reticent."):
        raise ImportError(f"No module named {name!r} (RETICENT_TEST_WITHOUT)")
    return _import(name, values, *arguments, **options)


def remove() -> None:
    """Names of the module os are gone for everybody, modules for reticent alone."""
    names = {name for name in os.environ.get("RETICENT_TEST_WITHOUT", "").split(",") if name}
    for name in sorted(names):
        if hasattr(os, name):
            delattr(os, name)
    builtins.__import__ = lambda *arguments, **options: _without(names, *arguments, **options)


remove()
