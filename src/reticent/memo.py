"""Results of functions that are asked for again and again, without a counter of how often.

`functools.lru_cache` counts its hits for everybody to see. How many runs a search made is not
released, and every run asks for the same noise scales and tables: such counters would tell. All
caches of the library are these.
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

__all__ = ["memo"]

P = ParamSpec("P")
R = TypeVar("R")


class _Memo(Generic[P, R]):
    """A function whose latest results are remembered, by its arguments."""

    def __init__(self, function: Callable[P, R], most: int) -> None:
        update_wrapper(self, function)
        self.__qualname__: str = function.__qualname__
        self._function = function
        self._most = most
        self._results: dict[Any, R] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        key = args, tuple(sorted(kwargs.items()))
        try:
            return self._results[key]
        except KeyError:
            result = self._function(*args, **kwargs)
        self._results[key] = result
        if len(self._results) > self._most:
            for old in list(self._results)[: -self._most]:
                self._results.pop(old, None)  # another thread may have done so
        return result

    def forget(self) -> None:
        """Remember nothing."""
        self._results = {}

    def __reduce__(self) -> str:
        return self.__qualname__  # by name, as functions are


def memo(most: int) -> Callable[[Callable[P, R]], _Memo[P, R]]:
    """Remember the latest ``most`` results of a function.

    >>> @memo(2)
    ... def square(x: int) -> int:
    ...     print("computed")
    ...     return x * x
    >>> square(3), square(3)
    computed
    (9, 9)
    """
    return lambda function: _Memo(function, most)
