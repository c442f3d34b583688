"""Products by BLAS are exact at the sizes in use, and a BLAS that is not is refused, here and on a
cluster's workers.
"""

import numpy as np
import pytest

import reticent
from reticent.errors import ReleaseRefused
from reticent.privacy.statistics import exact_products as products
from reticent.privacy.statistics.exact_products import check_blas, gram, product
from reticent.privacy.statistics.exact_sum import EXACT

_matmul = np.matmul


def strassen(a, b):
    """One level of Strassen's method.

    Fewer products, but of sums, which do not fit into 53 bits.
    """
    m, k = a.shape
    n = b.shape[1]
    a11, a12, a21, a22 = (
        a[i : i + m // 2, j : j + k // 2] for i in (0, m // 2) for j in (0, k // 2)
    )
    b11, b12, b21, b22 = (
        b[i : i + k // 2, j : j + n // 2] for i in (0, k // 2) for j in (0, n // 2)
    )
    p = [
        (a11 + a22) @ (b11 + b22),
        (a21 + a22) @ b11,
        a11 @ (b12 - b22),
        a22 @ (b21 - b11),
        (a11 + a12) @ b22,
        (a21 - a11) @ (b11 + b12),
        (a12 - a22) @ (b21 + b22),
    ]
    return np.block(
        [[p[0] + p[3] - p[4] + p[6], p[2] + p[4]], [p[1] + p[3], p[0] - p[1] + p[2] + p[5]]]
    )


def single(a, b):
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float64)


def rounded(a, b):
    """Exact but for one entry, which is off by one: no rounding could be smaller."""
    found = _matmul(a, b)
    found[-1, 0] += 1
    return found


def from_size_on(least, method):
    """A library that takes another method for large matrices."""

    def multiply(a, b):
        even = not (a.shape[0] % 2 or a.shape[1] % 2 or b.shape[1] % 2)
        return method(a, b) if min(a.shape[0], b.shape[1]) >= least and even else _matmul(a, b)

    return multiply


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    monkeypatch.setattr(products, "_verified", set())


def ones(*shape):
    return np.ones(shape)


def test_products_are_what_they_should_be():
    random = np.random.default_rng(0)
    q = random.integers(-(2**20), 2**20, (300, 7)).astype(np.float64)
    w = random.integers(-(2**20), 2**20, (7, 3)).astype(np.float64)
    whole = q.astype(np.int64)
    assert (gram(q) == whole.T @ whole).all()
    assert (gram(np.asfortranarray(q)) == whole.T @ whole).all()
    assert (product(q, w, records="left") == whole @ w.astype(np.int64)).all()
    assert (product(w.T, q.T, records="right") == w.T.astype(np.int64) @ whole.T).all()
    assert (product(q.T, q[:, :2], records="inner") == whole.T @ whole[:, :2]).all()
    assert gram(np.zeros((0, 3))).tolist() == np.zeros((3, 3)).tolist()


def test_a_correct_method_of_real_arithmetic_is_not_exact():
    random = np.random.default_rng(0)
    x = random.normal(size=(8, 6))
    y = random.normal(size=(6, 4))
    assert np.allclose(strassen(x, y), x @ y)


@pytest.mark.parametrize("method", [strassen, single, rounded])
@pytest.mark.parametrize("columns", [30, 300])
def test_a_blas_that_is_not_exact_at_the_sizes_in_use_is_refused(monkeypatch, method, columns):
    """Also one that is exact at the sizes that are tried before, and at fewer columns."""
    check_blas()
    monkeypatch.setattr(np, "matmul", from_size_on(columns, method))
    gram(ones(10, columns - 2))
    for refused in (
        lambda: gram(ones(10, columns)),
        lambda: gram(np.asfortranarray(ones(10, columns))),
        lambda: product(ones(columns, 10), ones(10, columns), records="inner"),
        lambda: product(ones(10, columns), ones(columns, columns), records="left"),
        lambda: product(ones(columns, columns), ones(columns, 10), records="right"),
    ):
        with pytest.raises(ReleaseRefused, match=f"{columns} × {columns} columns"):
            refused()


def test_a_blas_that_fails_for_short_blocks_alone_is_refused(monkeypatch):
    """How many rows a block has may depend on bytes of records: the answer must not."""
    monkeypatch.setattr(np, "matmul", lambda a, b: _matmul(a, b) + (a.shape[1] < 20))
    with pytest.raises(ReleaseRefused, match="BLAS"):
        gram(ones(3000, 5))


def test_what_is_not_a_number_is_not_exact(monkeypatch):
    monkeypatch.setattr(np, "matmul", lambda a, b: _matmul(a, b) * np.nan)
    with pytest.raises(ReleaseRefused, match="BLAS"):
        gram(ones(3, 5))


def test_a_product_is_tried_close_to_the_limit_and_once(monkeypatch):
    largest = []

    def multiply(a, b):
        found = _matmul(a, b)
        largest.append(float(np.abs(found).max()))
        return found

    monkeypatch.setattr(np, "matmul", multiply)
    gram(ones(5, 6))
    assert 0.99 * EXACT < max(largest[:-1]) <= EXACT
    assert min(largest[:-1]) > 0.9 * EXACT  # for each number of rows
    tried = len(largest)
    gram(ones(4000, 6))
    assert len(largest) == tried + 1


def test_long_blocks_are_tried_as_long_as_they_are(monkeypatch):
    seen = set()

    def multiply(a, b):
        seen.add(b.shape[1])
        return _matmul(a, b)

    monkeypatch.setattr(np, "matmul", multiply)
    product(ones(2, 3), ones(3, 5000), records="right")
    assert max(seen) == 2**13
    product(ones(2, 3), ones(3, 2**18), records="right")
    assert 2**17 in seen


def test_the_common_sizes_are_tried_before_anything_is_charged(monkeypatch, tmp_path):
    ledger = reticent.Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=1, delta=1e-6)
    monkeypatch.setattr(np, "matmul", from_size_on(200, strassen))
    bounds = reticent.Bounds(x=(-1, 1))
    model = reticent.PrivateMean(
        bounds=bounds, epsilon=0.5, delta=1e-7, ledger=ledger.url, dataset="people"
    )
    with pytest.raises(ReleaseRefused, match="BLAS"):
        model.fit(np.zeros((10, 2)))
    assert ledger.history("people") == []


def test_a_worker_of_a_cluster_checks_its_own_blas(elsewhere):
    """In a process that has checked nothing itself: a partition is added up as on a worker."""
    code = """if True:
        import numpy as np, pandas as pd
        from reticent.errors import ReleaseRefused
        from reticent.privacy.sources.clusters.dask import _partition_total
        from reticent.privacy.sources.base import Field
        multiply = np.matmul
        np.matmul = lambda a, b: (a.astype(np.float32) @ b.astype(np.float32)).astype(float)
        frame = pd.DataFrame({"a": [1.0, 2.0]})
        work = ((Field(0),), lambda block: block.sum(axis=0), 10)
        try:
            _partition_total(frame, work)
        except ReleaseRefused as refusal:
            print("refused", "BLAS" in str(refusal))
        np.matmul = multiply
        print(_partition_total(frame, work).integers())
    """
    ended, out = elsewhere(code)
    assert ended == 0
    assert out.split("\n")[:2] == ["refused True", "[3]"]
