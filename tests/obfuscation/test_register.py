"""One release of a curve, or as many as were planned.

What is remembered, what is refused, and what files hold.
"""

import copy
import json
import multiprocessing
import pickle
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import reticent
from reticent import BadInput, BudgetExceeded, LedgerError, Obfuscator
from reticent.obfuscation.register import remembered
from reticent.obfuscation.solver.covariance import between
from tests.support.curves import COMMON, K, X, Y, variance


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "budget.db"
    reticent.Ledger(path).create()
    return str(path)


def test_an_object_remembers_its_release():
    model = Obfuscator(K, **COMMON)
    first = model.obfuscate(X, Y)
    assert (model.obfuscate(X, Y + 1) == first).all()  # y is not even looked at
    with pytest.raises(BudgetExceeded, match="released a curve already"):
        model.set_params(variance=0.4).obfuscate(X, Y)


def test_the_best_linear_attack_on_simulated_releases():
    """Nobody gets under the promised variance; from five fresh releases they would."""
    model = Obfuscator(K, sensitive=[0.47], variance=0.5, mean=0.0, random_state=0)
    model.obfuscate(X, Y)
    rng = np.random.default_rng(0)
    points = np.append(X, 0.47)[:, None]
    values, vectors = np.linalg.eigh(between(K, points, points))
    f = rng.normal(size=(20_000, 22)) @ (vectors * np.sqrt(np.maximum(values, 0))).T

    def releases():
        return f[:, :-1] + rng.normal(size=(20_000, model.factor_.shape[1])) @ model.factor_.T

    half = 10_000

    def attack(seen):
        weights = np.linalg.lstsq(seen[:half], f[:half, -1], rcond=1e-10)[0]
        return ((seen[half:] @ weights - f[half:, -1]) ** 2).mean()

    once = attack(releases())
    five = attack(np.mean([releases() for _ in range(5)], axis=0))
    error = 0.5 * np.sqrt(2 / half)
    assert once > 0.5 - 3 * error
    assert five < 0.25
    best = variance(model, [0.47])[0]
    assert best == pytest.approx(0.5, abs=1e-6)


def test_a_ledger_gives_the_same_release_again_and_refuses_others(ledger):
    model = Obfuscator(K, ledger=ledger, dataset="orbit", **COMMON)
    first = model.obfuscate(X, Y)
    again = clone(model)
    assert (again.obfuscate(X, np.zeros(21)) == first).all()
    assert (again.covariance_ == model.covariance_).all()
    for change in (
        {"variance": 0.4},
        {"sensitive": [0.4]},
        {"kernel": RBF(0.3, "fixed")},
        {"noise": 0.1},
        {"mean": 1.0},
        {"solution": "strong"},
    ):
        with pytest.raises(BudgetExceeded, match="another question"):
            clone(model).set_params(**change).obfuscate(X, Y)
    with pytest.raises(BudgetExceeded, match="another question"):
        clone(model).obfuscate(X + 0.01, Y)
    other = clone(model).set_params(dataset="another").obfuscate(X, Y)
    assert (other != first).any()


def test_learned_hyperparameters_come_back_from_the_ledger(ledger):
    kernel = ConstantKernel(1.0) * RBF(0.3)
    common = {"ledger": ledger, "dataset": "orbit", "sensitive": [0.5], "share": 0.5}
    model = Obfuscator(kernel, train_on=(X, Y + X), **common)
    first = model.obfuscate(X, Y)
    again = Obfuscator(
        kernel, train_on=(X, np.zeros(21)), **common
    )  # nor is what it was trained on looked at again
    assert (again.obfuscate(X, np.zeros(21)) == first).all()
    assert again.kernel_ == model.kernel_
    assert again.mean_ == model.mean_
    assert (again.predict(X) == model.predict(X)).all()


def test_what_the_ledger_holds(ledger):
    """Only what was released.

    No raw value, no noise, no key, and no hash that y could be tried out on.
    """
    model = Obfuscator(K, ledger=ledger, dataset="orbit", **COMMON)
    w = model.obfuscate(X, Y)
    with sqlite3.connect(ledger) as database:
        rows = database.execute("SELECT * FROM reticent_curves").fetchall()
    assert len(rows) == 1
    answer = json.loads(rows[0][3])
    assert answer == {"w": [w.tolist()], "theta": [], "mean": 0.0, "trained_on": None}
    assert not any(repr(float(one)) in str(rows) for one in Y[1:])


def test_a_changed_ledger_is_refused(ledger):
    Obfuscator(K, ledger=ledger, dataset="orbit", **COMMON).obfuscate(X, Y)
    with sqlite3.connect(ledger) as database:
        for change in ("UPDATE reticent_curves SET question = 'x'", "DELETE FROM reticent_curves"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                database.execute(change)
        database.execute("DROP TRIGGER reticent_curves_no_update")
        database.execute("UPDATE reticent_curves SET question = 'x'")
    with pytest.raises(LedgerError, match="does not fit"):
        Obfuscator(K, ledger=ledger, dataset="orbit", **COMMON).obfuscate(X, Y)


def test_curves_and_accounts_do_not_mix(ledger):
    reticent.Ledger(ledger).open("people", 1, 1e-6)
    with pytest.raises(BudgetExceeded, match="do not add up"):
        Obfuscator(K, ledger=ledger, dataset="people", **COMMON).obfuscate(X, Y)
    with pytest.raises(LedgerError, match="no ledger"):
        Obfuscator(K, ledger=ledger + "x", dataset="orbit", **COMMON).obfuscate(X, Y)
    Obfuscator(K, ledger=ledger, dataset="orbit", **COMMON).obfuscate(X, Y)
    with pytest.raises(BudgetExceeded, match="as an obfuscated curve"):
        reticent.Ledger(ledger).open("orbit", 1, 1e-6)
    assert [one.dataset for one in reticent.Ledger(ledger).datasets()] == ["people"]
    assert [one["dataset"] for one in remembered(ledger)] == ["orbit"]


def _release(path, queue):
    queue.put(Obfuscator(K, ledger=path, dataset="orbit", **COMMON).obfuscate(X, Y).tolist())


def test_two_processes_get_one_release(ledger):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=_release, args=(ledger, queue)) for _ in range(2)]
    for one in workers:
        one.start()
    found = [queue.get(timeout=60) for _ in workers]
    for one in workers:
        one.join()
    assert found[0] == found[1]


def test_rebuilt_from_the_release_bit_for_bit():
    params = {"kernel": ConstantKernel(1.0) * RBF(0.3), "sensitive": [(0.4, 0.5)], "share": 0.5}
    model = Obfuscator(train_on=(X, Y + X), **params)
    model.obfuscate(X, Y)
    again = Obfuscator.from_release(X, json.loads(json.dumps(model.release())), **params)
    assert (again.covariance_ == model.covariance_).all()
    for one, two in zip(
        again.predict(X, return_std=True), model.predict(X, return_std=True), strict=True
    ):
        assert (one == two).all()
    assert again.certificate_ == model.certificate_


def test_kernels_that_differ_are_different_questions(ledger):
    x = np.linspace(0, 1, 5)[:, None]
    y = np.zeros(5)
    first = RBF(0.2, "fixed")
    second = RBF(0.7, "fixed")
    how = {
        "sensitive": [0.5],
        "share": 0.5,
        "mean": 0.0,
        "noise": 0.1,
        "ledger": ledger,
        "dataset": "curve",
    }
    Obfuscator(first + second, **how).obfuscate(x, y)
    for other in (first * second, first + RBF(0.7000000001, "fixed")):
        with pytest.raises(reticent.BudgetExceeded):
            Obfuscator(other, **how).obfuscate(x, y)


def test_planned_releases_keep_the_promise_together_and_one_more_would_not(ledger):
    model = Obfuscator(
        K, sensitive=[0.47], variance=0.5, mean=0.0, releases=3, ledger=ledger, dataset="orbit"
    )
    looks = [model.obfuscate(X, Y, number=i) for i in (1, 2, 3)]
    assert len({one.tobytes() for one in looks}) == 3
    assert (clone(model).obfuscate(X, np.zeros(21), number=2) == looks[1]).all()

    def kept(
        count,
    ):  # what all of so many looks leave: their mean is sufficient, with so much less noise
        a = between(K, model.X_, model.X_) + model.covariance_ / count
        c = between(K, model.X_, np.array([[0.47]]))[:, 0]
        return 1 - c @ np.linalg.solve(a, c)

    assert kept(3) == pytest.approx(0.5, abs=1e-6)
    assert kept(3) >= 0.5 - 1e-9
    assert kept(4) < 0.49
    assert kept(1) > kept(2) > 0.55
    _, sd = model.predict([0.47], return_std=True)
    assert sd[0] ** 2 == pytest.approx(kept(1), abs=1e-8)
    assert "all 3 planned releases" in model.statement_
    with pytest.raises(BudgetExceeded, match="number 4"):
        model.obfuscate(X, Y, number=4)
    with pytest.raises(BudgetExceeded, match="another question"):
        clone(model).set_params(releases=4).obfuscate(X, Y, number=4)


def test_planned_releases_have_independent_noise_of_the_stated_size():
    model = Obfuscator(K, sensitive=[0.47], variance=0.5, mean=0.0, releases=2, random_state=0)
    noise = []
    for seed in range(80):
        again = clone(model).set_params(random_state=seed)
        noise.append([again.obfuscate(X, Y, number=i) - Y for i in (1, 2)])
    first, second = np.moveaxis(np.array(noise), 1, 0)
    size = np.trace(again.covariance_)
    for one in (first, second):
        assert (one**2).sum(axis=1).mean() == pytest.approx(size, rel=0.5)
    assert abs((first * second).sum(axis=1).mean()) < 0.4 * size
    together = ((first + second) / 2) ** 2
    assert together.sum(axis=1).mean() == pytest.approx(again.certificate_.trace, rel=0.5)


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "2"])
def test_numbers_of_releases_that_make_no_sense(number):
    with pytest.raises(BadInput, match="number says which"):
        Obfuscator(K, releases=2, **COMMON).obfuscate(X, Y, number=number)


@pytest.mark.parametrize(
    "how",
    [
        {"sensitive": [0.4, 0.6], "variance": 0.5},
        {"sensitive": [(0.4, 0.5)], "share": 0.5, "solution": "kernel", "releases": 2},
        {
            "sensitive": [0.4],
            "variance": np.array([0.3]),
            "noise": np.full(21, 0.1),
            "random_state": np.int64(3),
        },
        {"sensitive": [0.4], "share": 0.3, "noise_covariance": 0.01 * np.eye(21) + 0.001},
        {"sensitive": [0.4], "share": 0.3, "train_on": (X, np.cos(5 * X))},
    ],
)
def test_files_hold_the_release_and_open_again(how, tmp_path):
    model = Obfuscator(ConstantKernel(1.0) * RBF(0.2), **how)
    model.obfuscate(X, Y)
    model.save(tmp_path / "W.reticent")
    again = reticent.load(tmp_path / "W.reticent")
    assert (again.released_ == model.released_).all()
    assert again.statement_ == model.statement_
    assert again.private_ == model.private_
    assert again.certificate_ == model.certificate_
    for one, two in zip(
        again.predict(X, return_std=True), model.predict(X, return_std=True), strict=True
    ):
        assert (one == two).all()
    assert (again.obfuscate(X, Y) == model.released_).all()  # what was loaded remembers its release
    if model.releases > 1:
        with pytest.raises(BudgetExceeded, match="does not hold number 2"):
            again.obfuscate(X, Y, number=2)
    content = (tmp_path / "W.reticent").read_bytes()
    assert not any(
        np.float64(one).tobytes() in content or repr(float(one)).encode() in content
        for one in Y[1:]
    )
    with pytest.raises(BadInput, match="exists"):
        model.save(tmp_path / "W.reticent")


@pytest.mark.parametrize(
    "change",
    [
        {"variance": 0.1},
        {"kernel": RBF(0.3, "fixed")},
        {"noise": 0.5},
        {"sensitive": [0.9]},
        {"releases": 2},
    ],
)
def test_a_file_or_a_report_never_says_other_parameters_than_those_of_the_release(change, tmp_path):
    model = Obfuscator(K, **COMMON)
    model.obfuscate(X[::-1], Y[::-1])
    before = model.get_params(deep=False)
    model.set_params(**change)
    for write in (model.save, model.report):
        with pytest.raises(BadInput, match="changed after the release"):
            write(tmp_path / "file")
    model.set_params(**before).save(tmp_path / "file")


def test_a_changed_file_is_refused(tmp_path):
    model = Obfuscator(K, **COMMON)
    model.obfuscate(X, Y)
    model.save(tmp_path / "W.reticent")
    content = bytearray((tmp_path / "W.reticent").read_bytes())
    content[-3] ^= 1
    (tmp_path / "W.reticent").write_bytes(content)
    with pytest.raises(reticent.CorruptModel):
        reticent.load(tmp_path / "W.reticent")


def plain(**params):
    return Obfuscator(
        RBF(0.2, "fixed"), **{"sensitive": [0.5], "variance": 0.4, "mean": 0.0, **params}
    )


T = np.linspace(0, 1, 21)


def test_a_seeded_draw_never_becomes_private(tmp_path):
    """The stamp is of the draw, not of the parameter.

    Changing that, rebuilding or saving does not wash it off.
    """
    model = plain(random_state=0)
    w = model.obfuscate(T, np.sin(T))
    told = model.release()
    rebuilt = Obfuscator.from_release(
        T, told, kernel=RBF(0.2, "fixed"), sensitive=[0.5], variance=0.4, mean=0.0
    )
    assert not rebuilt.private_
    told.pop("private")
    assert not Obfuscator.from_release(
        T, told, kernel=RBF(0.2, "fixed"), sensitive=[0.5], variance=0.4, mean=0.0
    ).private_
    model.save(tmp_path / "curve.reticent")
    assert not reticent.load(tmp_path / "curve.reticent").private_
    assert b'"random_state": 0' not in (tmp_path / "curve.reticent").read_bytes()
    model.set_params(random_state=None)
    assert not model.private_
    fresh = model.obfuscate(T, np.sin(T))
    assert model.private_
    assert not np.array_equal(w, fresh)  # drawn anew, and not from the seed


def test_the_number_of_planned_releases_is_that_of_the_draw():
    model = plain()
    model.obfuscate(T, np.sin(T))
    said = model.statement_
    model.set_params(releases=7)
    assert model.statement_ == said
    with pytest.raises(BadInput, match="one of 1 planned"):
        Obfuscator.from_release(
            T,
            model.release(),
            kernel=RBF(0.2, "fixed"),
            sensitive=[0.5],
            variance=0.4,
            mean=0.0,
            releases=7,
        )


def test_one_object_does_not_forget_after_another_question():
    model = plain()
    w = model.obfuscate(T, np.sin(T))
    for mean in (0.1, 0.2):
        with pytest.raises(BudgetExceeded, match="released a curve already"):
            model.set_params(mean=mean).obfuscate(T, np.sin(T))
    assert np.array_equal(model.set_params(mean=0.0).obfuscate(T, np.sin(T)), w)
    clone(model).obfuscate(2 * T, np.sin(T))  # another curve


@pytest.mark.parametrize(
    "other",
    [
        T[:-1],
        np.delete(T, 3),
        np.append(T, 1.5),
        T + 1e-12,
        T.astype(np.float32),
        2 * T,
        T + 5,
        np.column_stack([T, T]),
    ],
    ids=[
        "fewer",
        "one left out",
        "more",
        "moved",
        "rounded",
        "stretched",
        "elsewhere",
        "two inputs",
    ],
)
def test_one_object_without_a_ledger_releases_one_curve(other):
    """Whatever the inputs are, they may be those of the same function.

    Two releases of it are more than one.
    """
    sensitive = [[0.5, 0.5]] if other.ndim == 2 else [0.5]
    model = plain()
    w = model.obfuscate(T, np.sin(T))
    with pytest.raises(BudgetExceeded, match=r"make a new Obfuscator .*releases=…"):
        model.set_params(sensitive=sensitive).obfuscate(other, np.zeros(len(other)))
    assert (model.set_params(sensitive=[0.5]).obfuscate(T, np.zeros(21)) == w).all()


def _same_in_other_words():
    order = np.random.default_rng(3).permutation(21)
    zero = T.copy()
    zero[0] = -0.0
    wide = np.zeros((21, 2))
    wide[:, 0] = T
    yield "list", T.tolist(), slice(None)
    yield "column", T[:, None], slice(None)
    yield "not contiguous", wide[:, :1], slice(None)
    yield "frame", pandas.DataFrame({"time": T}), slice(None)
    yield "big-endian", T.astype(">f8"), slice(None)
    yield "minus zero", zero, slice(None)
    yield "reversed", T[::-1], slice(None, None, -1)
    yield "mixed", T[order], order


@pytest.mark.parametrize("remembered_by", ["object", "ledger", "file"])
def test_the_same_curve_in_other_words_has_the_same_release(remembered_by, ledger, tmp_path):
    model = plain(ledger=ledger, dataset="curve") if remembered_by == "ledger" else plain()
    w = model.obfuscate(T, np.sin(T))
    model.save(tmp_path / "W.reticent")
    for name, x, order in _same_in_other_words():
        again = {"object": model, "ledger": clone(model), "file": None}[remembered_by]
        if again is None:
            again = reticent.load(tmp_path / "W.reticent")
        assert (again.obfuscate(x, np.zeros(21)) == w[order]).all(), name
        assert (again.released_ == w[order]).all(), name


def test_integers_and_records_at_one_place_are_one_question():
    x = np.array([3, 1, 2, 1, 0])
    model = plain(sensitive=[1.5], noise=0.1)
    w = model.obfuscate(x, [0.0, 1.0, 2.0, 3.0, 4.0])
    order = np.array([4, 1, 3, 2, 0])
    assert (model.obfuscate(x[order].astype(float), np.zeros(5)) == w[order]).all()
    swapped = np.array(
        [0, 3, 2, 1, 4]
    )  # the two at 1 change places: the same question, so nothing new is told
    assert (model.obfuscate(x[swapped], np.zeros(5)) == w).all()


def test_where_a_record_stands_says_nothing_of_its_value(ledger):
    """Records at one place are kept in the order they came in.

    Sorted by their values the order would tell on them.
    """
    model = plain(sensitive=[0.7], noise=1e-3, ledger=ledger, dataset="curve")
    model.obfuscate([1.0, 0.0, 0.0], [0.0, 5.0, -5.0])
    with sqlite3.connect(ledger) as database:
        [(answer,)] = database.execute("SELECT answer FROM reticent_curves").fetchall()
    first, second, _ = json.loads(answer)["w"][0]
    assert first > second


def test_copies_of_an_object_remember_what_it_released():
    model = plain()
    w = model.obfuscate(T, np.sin(T))
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert (again.obfuscate(T[::-1], np.zeros(21)) == w[::-1]).all()
        with pytest.raises(BudgetExceeded):
            again.obfuscate(T[:-1], np.zeros(20))


def test_two_halves_of_a_curve_tell_more_than_each():
    """Why inputs apart from each other are no other curve.

    The value between them is known by both together.
    """
    at = np.array([[0.5]])
    halves = [T[T < 0.5], T[T > 0.5]]
    parts = [plain(variance=0.05) for _ in halves]
    for model, half in zip(parts, halves, strict=True):
        model.obfuscate(half, np.sin(half))
        assert variance(model, [0.5])[0] >= 0.05 - 1e-9
    x = np.concatenate(halves)[:, None]
    a = between(K, x, x)
    a[:10, :10] += parts[0].covariance_
    a[10:, 10:] += parts[1].covariance_
    cross = between(K, x, at)[:, 0]
    assert 1 - cross @ np.linalg.solve(a, cross) < 0.01


def test_releases_of_version_0_1_0_are_not_taken_for_those_of_this_one():
    model = plain()
    model.obfuscate(T, np.sin(T))
    old = {name: value for name, value in model.release().items() if name != "format"}
    with pytest.raises(BadInput, match="in which noise was a variance"):
        Obfuscator.from_release(
            T, old, kernel=RBF(0.2, "fixed"), sensitive=[0.5], variance=0.4, mean=0.0
        )


def test_the_memory_of_an_object_does_not_stand_in_for_a_ledger(tmp_path):
    book = str(tmp_path / "book.db")
    reticent.Ledger(book).create()
    model = plain()
    model.obfuscate(T, np.sin(T))
    with pytest.raises(BudgetExceeded, match="another ledger"):
        model.set_params(ledger=book, dataset="first").obfuscate(T, np.sin(T))
    first = plain(ledger=book, dataset="first")
    w = first.obfuscate(T, np.sin(T))
    assert np.array_equal(plain(ledger=book, dataset="first").obfuscate(T, np.sin(T)), w)
    # another person, whose curve the ledger does not know
    second = first.set_params(dataset="second").obfuscate(T, np.cos(T))
    assert not np.array_equal(second, w)
    assert [one["dataset"] for one in remembered(book)] == ["first", "second"]
    with pytest.raises(BudgetExceeded):
        first.set_params(ledger=None, dataset=None).obfuscate(T, np.cos(T))


def test_threads_that_ask_at_once_get_one_draw():
    model = plain()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: model.obfuscate(T, np.sin(T)), range(8)))
    assert all(np.array_equal(one, answers[0]) for one in answers)


@pytest.mark.parametrize(
    "change", [lambda y: y.astype(np.float32), lambda y: 2 * y + 1, lambda y: np.round(y, 3)]
)
def test_the_same_curve_in_other_clothes_is_no_other_curve(change):
    y = np.sin(6 * T)
    with pytest.raises(BadInput, match="no other curve"):
        Obfuscator(RBF(0.2), sensitive=[0.5], variance=0.01, train_on=(T, change(y))).obfuscate(
            T, y
        )


def test_a_subclass_that_forgets_the_ledger_releases_nothing(ledger):
    class Forgetful(Obfuscator):
        def __init__(self, kernel, **given):
            vars(self).update({**Obfuscator(kernel).get_params(), **given})
            del self.ledger

    with pytest.raises(AttributeError, match="no attribute 'ledger'"):
        Forgetful(K, **COMMON, ledger=ledger, dataset="curve").obfuscate(X, Y)
