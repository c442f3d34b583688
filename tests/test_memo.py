"""Results are remembered, the latest ones, and nobody counts how often they were asked for."""

import pickle
import threading

import pytest

from reticent.memo import memo
from reticent.privacy.noise import scale_at_least


@pytest.fixture
def square():
    computed = []

    @memo(3)
    def square(x, *, sign=1):
        computed.append(x)
        return sign * x * x

    square.computed = computed
    return square


def test_results_are_computed_once(square):
    assert [square(2), square(2), square(2, sign=-1), square(2, sign=-1)] == [4, 4, -4, -4]
    assert square.computed == [2, 2]


def test_the_oldest_results_are_forgotten(square):
    for x in (1, 2, 3, 4, 2):
        square(x)
    assert square.computed == [1, 2, 3, 4]
    square(1)
    assert square.computed == [1, 2, 3, 4, 1]
    square.forget()
    square(1)
    assert square.computed[-2:] == [1, 1]


def test_a_failure_is_not_remembered():
    tries = []

    @memo(3)
    def fails(x):
        tries.append(x)
        raise ValueError

    for _ in range(2):
        with pytest.raises(ValueError, match=r"^$"):
            fails(1)
    assert tries == [1, 1]


def test_threads_may_ask_at_the_same_time():
    @memo(2)
    def same(x):
        return x

    found = []
    threads = [
        threading.Thread(target=lambda: found.extend(same(x % 7) - x % 7 for x in range(2000)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [0] * 16000


def test_functions_keep_their_name_and_travel_by_it():
    assert scale_at_least.__doc__.startswith("Least scale")
    assert pickle.loads(pickle.dumps(scale_at_least)) is scale_at_least


def test_nobody_counts(square):
    before = {name: repr(value) for name, value in vars(square).items()}
    square(2)
    remembered = {name: repr(value) for name, value in vars(square).items()}
    for _ in range(5):
        square(2)
    after = {name: repr(value) for name, value in vars(square).items()}
    assert before != remembered == after
    assert not hasattr(square, "cache_info")
