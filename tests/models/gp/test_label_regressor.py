"""LabelGPRegressor.

What it promises, what it refuses, and that it is far better than noise on single labels.
"""

from base64 import b64decode
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import reticent
from reticent.errors import BadInput, LedgerError, ReleaseRefused
from reticent.models.gp.settings import LABELS
from reticent.privacy.curator import Curator
from reticent.privacy.row_maps.label_sum import LabelSum, label_sum
from reticent.privacy.sources.base import scan

BOUNDS = reticent.Bounds(x=[(0, 10)], y=(-3, 3))
COMMON = {"bounds": BOUNDS, "epsilon": 2.0, "delta": 1e-5}
FIXED = {"kernel": ConstantKernel(2.0) * RBF(1.5), "noise": 0.25, "learn_kernel": False, **COMMON}
MECHANISMS = {
    "cloak": {},
    "logdet": {"criterion": "logdet"},
    "points": {"at": [[1.0], [5.0], [9.0]]},
    "functional": {"mechanism": "functional"},
    "fitc": {"mechanism": "inducing"},
    "titsias": {
        "mechanism": "inducing",
        "approximation": "titsias",
        "inducing": [0.0, 2.5, 5.0, 7.5, 10.0],
    },
}


def truth(x):
    return 2 * np.sin(x[:, 0])


def records(n=120, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, size=(n, 1))
    return x, truth(x) + 0.25 * rng.normal(size=n)


GRID = np.linspace(0, 10, 41)[:, None]


@pytest.fixture(scope="module", params=MECHANISMS, ids=str)
def fitted(request):
    return reticent.LabelGPRegressor(
        stages=3, random_state=0, **FIXED, **MECHANISMS[request.param]
    ).fit(*records())


def error(model):
    return float(np.sqrt(np.mean((model.predict(GRID) - truth(GRID)) ** 2)))


def test_every_mechanism_learns_the_function_and_knows_how_well(fitted):
    mean, std = fitted.predict(GRID, return_std=True)
    assert fitted.at is not None or error(fitted) < 0.7  # the function itself: 1.4
    assert np.mean(np.abs(mean - truth(GRID)) < 2.5 * std) > 0.9


def test_every_mechanism_is_rebuilt_bit_for_bit(fitted, tmp_path):
    params = fitted.get_params(deep=False)
    again = reticent.LabelGPRegressor.from_releases(fitted.releases_, **params)
    fitted.save(tmp_path / "m")
    for other in (again, reticent.load(tmp_path / "m")):
        for one, two in zip(
            other.predict(GRID, return_std=True), fitted.predict(GRID, return_std=True), strict=True
        ):
            assert np.array_equal(one, two)
    assert again.designs_ == fitted.designs_


def test_the_integers_of_every_release_keep_the_bound(fitted):
    """max_j c_jᵀM⁻¹c_j ≤ 1 after rounding, in whole numbers; and it is nearly used up."""
    for release in fitted.releases_:
        told = release.statistic
        steps = (
            np.frombuffer(b64decode(told["table"]), dtype="<i4")
            .reshape(-1, told["length"])
            .astype(object)
        )
        longest = int((steps**2).sum(axis=1).max())
        assert longest <= 4**24
        assert longest >= 0.999 * 4**24


def test_no_two_labels_move_a_release_further_than_claimed(fitted):
    """Search over the input and both labels for the pair that is furthest apart.

    Attained, never passed.
    """
    for k, release in enumerate(fitted.releases_):
        told = dict(release.statistic)
        inputs = np.frombuffer(b64decode(told["inputs"]))
        statistic = reticent.privacy.row_maps.label_sum.LabelSum(
            **{
                {"reach": "clip_threshold"}.get(k, k): v
                for k, v in told.items()
                if k not in ("name", "kind", "size")
            }
        )

        def moved(j, a, b, inputs=inputs, statistic=statistic):
            records = np.column_stack([np.full(2, inputs[j]), np.clip([a, b], -1, 1)])
            one, two = (
                statistic.block_sum(record[None, :]).astype(np.int64).astype(object)
                for record in records
            )
            return int(((one - two) ** 2).sum()) / statistic.sensitivity2

        ends = [moved(j, 1, -1) for j in range(len(inputs))]
        worst = int(np.argmax(ends))
        found = minimize(
            lambda v, j=worst: -moved(j, *v),
            [0.6, -0.5],
            method="Nelder-Mead",
            options={"maxfev": 60},
        )
        # later, a centre near the edge of the bounds keeps labels from being clipped on both sides
        assert (0.999 if k == 0 else 0.8) <= max(-found.fun, *ends) <= 1
        rng = np.random.default_rng(0)
        assert (
            max(
                moved(int(rng.integers(len(inputs))), *rng.uniform(-1.5, 1.5, 2)) for _ in range(50)
            )
            <= 1
        )


@pytest.fixture(scope="module")
def default():
    return reticent.LabelGPRegressor(stages=4, random_state=1, **COMMON).fit(*records(200))


def test_the_default_learns_kernel_and_noise(default):
    assert error(default) < 0.6
    assert 0.1 < default.noise_ < 0.8
    assert set(default.variance_parts(GRID)) == {"model", "privacy", "noise"}
    _, std = default.predict(GRID, return_std=True)
    parts = default.variance_parts(GRID)
    np.testing.assert_allclose(parts["model"] + parts["privacy"], std**2)
    covariance = default.predict(GRID, return_cov=True)[1]
    np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-6)
    draws = default.sample_y(GRID, 300, random_state=0)
    assert draws.shape == (41, 300)
    assert np.std(draws, axis=1) == pytest.approx(std, rel=0.3)


def test_stages_make_it_better(default):
    def errors(stages):
        fits = (
            reticent.LabelGPRegressor(stages=stages, random_state=seed, **FIXED)
            for seed in range(5)
        )
        return [error(model.fit(*records(200))) for model in fits]

    assert np.mean(errors(5)) < 0.8 * np.mean(errors(1))
    assert (
        default.releases_[-1].statistic["reach"]
        < 0.7
        < default.releases_[0].statistic["reach"]
        == 1
    )


def test_the_inputs_are_not_protected_and_everything_says_so():
    model = reticent.LabelGPRegressor(stages=1, **FIXED).fit(*records(20))
    assert model.guarantee_.relation == "label"
    assert "The inputs are NOT protected" in model.guarantee_.statement
    assert "the label of any one of the" in model.guarantee_.statement
    stored = np.frombuffer(b64decode(model.releases_[0].statistic["inputs"]))
    assert set(stored) == set(BOUNDS.inputs_alone().scale(records(20)[0])[:, 0])


def test_label_spending_has_an_account_of_its_own(tmp_path):
    ledger = str(tmp_path / "budget.db")
    book = reticent.Ledger(ledger)
    book.open("records", 3, 1e-5)
    book.open("labels", 3, 1e-5, relation="label")
    model = reticent.LabelGPRegressor(stages=1, **FIXED)
    with pytest.raises(LedgerError, match="do not add up"):
        model.set_params(ledger=ledger, dataset="records").fit(*records(20))
    model.set_params(dataset="labels").fit(*records(20))
    assert (len(book.history("records")), len(book.history("labels"))) == (0, 1)
    with pytest.raises(LedgerError, match="do not add up"):
        reticent.PrivateMean(
            bounds=BOUNDS, epsilon=0.1, delta=1e-6, ledger=ledger, dataset="labels"
        ).fit(records(20)[0])


def test_a_curator_that_protects_records_gives_no_inputs_away():
    x, y = records(10)
    event = reticent.Gaussian(noise_multiplier=1.0)
    curator = Curator(scan(x, y=y), bounds=BOUNDS, event=event, targets=True)
    with pytest.raises(ReleaseRefused, match="inputs of the records are protected"):
        reticent.LabelGPRegressor(stages=1, **FIXED).learn(curator)


def test_two_processes_give_the_same_values(default, tmp_path, elsewhere):
    default.save(tmp_path / "m")
    code = f"""
import numpy as np, reticent
points = np.linspace(0, 10, 41)[:, None]
print(reticent.load({str(tmp_path / "m")!r}).predict(points).tobytes().hex())
"""
    ended, other = elsewhere(code)
    assert ended == 0
    assert bytes.fromhex(other) == default.predict(GRID).tobytes()
    np.testing.assert_allclose(
        default.predict(GRID[::7]), default.predict(GRID)[::7], rtol=1e-9
    )  # overlapping points


def test_points_outside_the_bounds_count_as_the_edge_and_predictions_stay_inside(default):
    inside = default.predict([[0.0], [10.0]])
    outside = default.predict([[-50.0], [1e300]])
    assert np.array_equal(inside, outside)
    assert np.isnan(default.predict([[np.nan]], return_std=True)).all()
    assert (np.abs(default.predict(GRID)) <= 3).all()


@pytest.mark.parametrize("mechanism", ["cloak", "functional", "inducing"])
@pytest.mark.parametrize(
    "x", [[[4.0]], [[4.0]] * 6, [[0.0], [-0.0], [10.0], [1e9], [np.nan], [5.0]]], ids=str
)
def test_odd_inputs(mechanism, x):
    """One record, the same input again and again, edges, inputs outside and missing ones."""
    model = reticent.LabelGPRegressor(mechanism=mechanism, stages=2, random_state=0, **FIXED).fit(
        x, np.ones(len(x))
    )
    mean, std = model.predict(GRID, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()


def test_duplicate_inputs_count_as_often_as_they_are():
    """Ten records at each of five inputs: one release with little noise gives their means."""
    x = np.repeat([[1.0], [3.0], [5.0], [7.0], [9.0]], 10, axis=0)
    y = truth(x) + 0.1 * np.random.default_rng(0).normal(size=50)
    model = reticent.LabelGPRegressor(
        RBF(1.0),
        noise=0.1,
        learn_kernel=False,
        stages=1,
        bounds=BOUNDS,
        epsilon=300,
        delta=1e-5,
        random_state=0,
    ).fit(x, y)
    means = y.reshape(5, 10).mean(axis=1)
    np.testing.assert_allclose(model.predict(x[::10]), means, atol=0.1)


def test_points_of_interest_may_be_inputs_and_are_known_best_there():
    x, y = records()
    strong = {**FIXED, "epsilon": 100.0, "stages": 1, "random_state": 0}
    model, plain = (reticent.LabelGPRegressor(at=at, **strong).fit(x, y) for at in (x[:3], None))
    assert (
        model.predict(x[:3], return_std=True)[1].mean()
        < plain.predict(x[:3], return_std=True)[1].mean()
    )
    assert (
        model.predict(GRID, return_std=True)[1].max()
        > plain.predict(GRID, return_std=True)[1].max()
    )


def test_points_of_interest_far_from_all_inputs_and_hardly_any_noise():
    """Nothing can be known there; nothing fails, and the prior is what is left.

    Extreme promises work too.
    """
    x = np.full((5, 1), 0.5)
    for epsilon in (1e-4, 1e5):
        model = reticent.LabelGPRegressor(
            RBF(0.02),
            at=[[9.0]],
            noise=0.25,
            learn_kernel=False,
            bounds=BOUNDS,
            epsilon=epsilon,
            delta=1e-5,
        ).fit(x, np.ones(5))
        mean, std = model.predict([[9.0]], return_std=True)
        assert 0 <= mean[0] < 1 - 1e-3  # what five labels say of the level
        assert 1.0 < std[0] < 2.0 + 1e-3  # the kernel's, and that of a level anywhere in [−3, 3]


def test_labels_far_outside_their_bounds_change_nothing_but_their_own_share():
    """A clean table and one with ten wild labels.

    The same releases, but for ten clipped residuals.
    """
    x, y = records()
    wild = y.copy()
    wild[:10] = [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e9, -1e9, 5e-324, 44, -44]
    model = reticent.LabelGPRegressor(stages=3, random_state=0, **FIXED)
    assert error(model.fit(x, wild)) < 1.0


def test_several_inputs_and_a_kernel_with_white_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(150, 2))
    y = np.sin(4 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=150)
    model = reticent.LabelGPRegressor(
        RBF([0.5, 1.0]) + WhiteKernel(0.01),
        bounds=reticent.Bounds(x=[(0, 1), (0, 1)], y=(-1, 2)),
        epsilon=5,
        delta=1e-5,
        stages=3,
        learn_kernel=False,
        random_state=0,
    ).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 0.35


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"mechanism": "cloack"}, "mechanism must be"),
        ({"criterion": "det"}, "criterion must be"),
        ({"mechanism": "inducing", "approximation": "vfe"}, "approximation must be"),
        ({"stages": 0}, "stages must be"),
        ({"stages": 2.5}, "stages must be"),
        ({"noise": 0}, "noise must be"),
        ({"noise": "much"}, "noise must be"),
        ({"kernel": "rbf"}, "kernel must be"),
        ({"kernel": RBF([1.0, 2.0])}, "cannot be used for 1 inputs"),
        ({"kernel": ConstantKernel(1e300)}, "cannot be used"),
        ({"learn_kernel": "average"}, "learn_kernel must be"),
        ({"outcome": "count"}, "outcome must be"),
        ({"outcome": "binary", "noise": 0.3}, "leave out the noise"),
        ({"inducing": 5}, "inducing is for"),
        ({"mechanism": "inducing", "inducing": [[1.0, 2.0]]}, "inducing must be an array"),
        ({"at": [[1.0, 2.0]]}, "at must be an array"),
        ({"at": []}, "at must be an array"),
        ({"at": [[np.nan]]}, "at must be an array"),
        ({"at": "everywhere"}, "at must be an array"),
        ({"mechanism": "functional", "at": [[1.0]]}, "at is for a cloak"),
        ({"delta": 0}, "delta must be above 0"),
        ({"bounds": reticent.Bounds(x=[(0, 10)], y=[(0, 1), (0, 1)])}, "predicts one number"),
        ({"bounds": reticent.Bounds(x=[(0, 10)], classes=[0, 1])}, "predicts one number"),
    ],
    ids=str,
)
def test_wrong_use_is_refused_before_the_charge(wrong, says, tmp_path):
    ledger = str(tmp_path / "budget.db")
    reticent.Ledger(ledger).open("people", 3, 1e-5, relation="label")
    with pytest.raises(BadInput, match=says):
        reticent.LabelGPRegressor(**{**COMMON, "ledger": ledger, "dataset": "people", **wrong}).fit(
            *records(10)
        )
    assert reticent.Ledger(ledger).history("people") == []


@pytest.mark.parametrize("source", ["array", "file"])
def test_too_many_different_inputs_are_refused_before_the_charge(source, monkeypatch, tmp_path):
    settings = replace(LABELS, max_inputs=9)
    monkeypatch.setattr("reticent.models.gp.label_regressor.LABELS", settings)
    ledger = str(tmp_path / "budget.db")
    x, y = records(10)
    reticent.Ledger(ledger).open("people", 3, 1e-5, relation="label")
    model = reticent.LabelGPRegressor(**FIXED, ledger=ledger, dataset="people")
    if source == "file":
        np.savetxt(
            tmp_path / "d.csv", np.column_stack([x, y]), delimiter=",", header="x,y", comments=""
        )
        model.set_params(bounds=reticent.Bounds(x={"x": (0, 10)}, y={"y": (-3, 3)}))
        x = tmp_path / "d.csv"
        y = None
    with pytest.raises(BadInput, match="10 different inputs"):
        model.fit(x, y)
    assert reticent.Ledger(ledger).history("people") == []


def test_only_public_inputs_are_looked_at_before_the_charge():
    x, y = records(10)
    event = reticent.Gaussian(noise_multiplier=1.0)
    seen = []
    for relation in ("record", "label"):
        Curator(
            scan(x, y=y),
            bounds=BOUNDS,
            event=event,
            targets=True,
            relation=relation,
            look=seen.append,
        )
    assert [one.shape for one in seen] == [(10, 1)]


def test_releases_of_another_model_are_refused():
    promise = {"epsilon": 1, "delta": 1e-6}
    mean = reticent.PrivateMean(bounds=reticent.Bounds(x=[(0, 10)]), **promise).fit(records(9)[0])
    with pytest.raises(BadInput, match="These releases protect any one record"):
        reticent.LabelGPRegressor.from_releases(mean.releases_, **{**FIXED, **promise, "stages": 1})
    bins = reticent.BinnedGPRegressor(bins=2, protect="labels", bounds=BOUNDS, **promise).fit(
        *records(9)
    )
    with pytest.raises(BadInput, match="not of a label-only model"):
        reticent.LabelGPRegressor.from_releases(bins.releases_, **{**FIXED, **promise, "stages": 1})


def test_an_input_that_is_not_in_the_table_adds_nothing():
    statistic = label_sum(
        np.array([[0.0]]),
        np.ones(1),
        np.ones((1, 1)),
        design="",
        centre=np.zeros(1),
        clip_threshold=1.0,
        squares=0.0,
    )
    records = np.array([[0.0, 0.5], [-0.0, 0.25], [1e-300, 1.0], [np.nan, 1.0], [1e-300, np.nan]])
    assert statistic.block_sum(records).tolist() == [0.75 * 2**24, 0, 0]
    half = int(0.5**0.5 * 2**24)
    assert statistic.block_sum(np.array([[0.0, np.nan]])).tolist() == [0, half, half]


def test_labels_are_not_published_as_inputs():
    """One range for all columns of a frame once covered the label's column too, which was then
    released as an input.
    """
    import pandas

    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"age": rng.uniform(0, 100, 40), "weight": rng.uniform(0, 100, 40)})
    bounds = reticent.Bounds(x=(0, 150), y={"weight": (0, 150)})
    model = reticent.LabelGPRegressor(bounds=bounds, epsilon=0.1, delta=1e-6).fit(frame)
    assert model.n_features_in_ == 1
    assert list(model.feature_names_in_) == ["age"]


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_missing_labels_are_not_the_middle_of_the_range(share):
    """A level of 2 in a range around 0, with labels that are missing more often on one side."""
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 10, size=(800, 1))
    y = 2.0 + 0.25 * rng.normal(size=800)
    y[rng.uniform(size=800) < share * x[:, 0] / 5] = np.nan
    model = reticent.LabelGPRegressor(stages=4, random_state=0, **COMMON).fit(x, y)
    there = np.isfinite(y).sum()
    assert abs(model.n_complete_ - there) < 4 * model.n_complete_sd_ < 0.2 * there
    mean, std = model.predict([[2.0], [8.0]], return_std=True)
    assert (np.abs(mean - 2.0) < 3.5 * std).all()
    assert mean[0] > 1.6
    known = np.isfinite(y)
    assert np.isclose(model.score(x, y), model.score(x[known], y[known]), rtol=0, atol=1e-12)


def test_a_fit_of_nothing_but_missing_values_is_a_fit():
    nothing = np.full(20, np.nan)
    for x, y in ((np.arange(20.0)[:, None] / 2, nothing), (nothing[:, None], np.ones(20))):
        model = reticent.LabelGPRegressor(stages=2, random_state=0, **FIXED).fit(x, y)
        mean, std = model.predict(GRID, return_std=True)
        assert np.isfinite(mean).all()
        assert (std > 0.5).all()


def test_no_missing_label_moves_a_release_further_than_claimed(fitted):
    for release in fitted.releases_:
        told = dict(release.statistic)
        statistic = reticent.privacy.row_maps.label_sum.LabelSum(
            **{
                {"reach": "clip_threshold"}.get(k, k): v
                for k, v in told.items()
                if k not in ("name", "kind", "size")
            }
        )
        inputs = np.frombuffer(b64decode(told["inputs"]))
        for x in inputs[::10]:
            ends = [
                statistic.block_sum(np.array([[x, v]])).astype(np.int64).astype(object)
                for v in (-1.0, 0.0, 1.0, np.nan)
            ]
            for one in ends[:3]:
                moved = int(((one - ends[3]) ** 2).sum())
                assert 0 < moved <= statistic.sensitivity2


def test_words_have_effects_of_their_own():
    """Three words in an order that no line fits: high, low, high."""
    rng = np.random.default_rng(0)
    bounds = reticent.Bounds(x={"age": (0, 10), "town": ["A", "B", "C"]}, y={"stay": (-3, 3)})
    import pandas

    frame = pandas.DataFrame(
        {"age": rng.uniform(0, 10, 600), "town": rng.choice(["A", "B", "C", "other"], 600)}
    )
    level = frame.town.map({"A": 1.5, "B": -1.5, "C": 1.5, "other": -3.0})
    frame["stay"] = level + 0.05 * frame.age + 0.2 * rng.normal(size=600)
    model = reticent.LabelGPRegressor(
        stages=3, bounds=bounds, epsilon=3.0, delta=1e-5, random_state=0
    ).fit(frame)
    queries = pandas.DataFrame({"age": [5.0] * 4, "town": ["A", "B", "C", "other"]})
    mean, std = model.predict(queries, return_std=True)
    assert (np.abs(mean[:3] - [1.75, -1.25, 1.75]) < np.maximum(3 * std[:3], 0.3)).all()
    assert np.isnan(mean[3])
    with pytest.raises(BadInput, match="no order"):
        reticent.LabelGPRegressor(RBF(1.0), bounds=bounds, epsilon=1, delta=1e-5).fit(frame)


@pytest.mark.parametrize(("chance", "epsilon"), [(0.3, 1.0), (0.05, 1e5)])
def test_yes_and_no_are_neither_noiseless_nor_in_the_middle(chance, epsilon):
    """Their noise is up to one half-range, and far ones are no longer cut as the budget grows."""
    rng = np.random.default_rng(8)
    x = rng.uniform(0, 10, size=(1500, 1))
    y = (rng.random(1500) < chance).astype(float)
    model = reticent.LabelGPRegressor(
        RBF(3.0, "fixed") * ConstantKernel(0.02**2, "fixed"),
        learn_kernel=False,
        bounds=reticent.Bounds(x=[(0, 10)], y=(0, 1)),
        epsilon=epsilon,
        delta=1e-5,
        random_state=0,
    ).fit(x, y)
    mean, std = model.predict(np.linspace(1, 9, 9)[:, None], return_std=True)
    assert (np.abs(mean - y.mean()) < 3 * std).all()
    assert std.max() < 0.05
    assert model.noise_ == pytest.approx(np.sqrt(chance * (1 - chance)), rel=0.15)


@pytest.mark.parametrize("told", ["by parameter", "by column"])
def test_rare_labels_of_yes_count_in_full_where_labels_are_binary(told):
    """Clips that follow the bulk of the labels would cut them off: see docs/lab/labels.md."""
    bounds = reticent.Bounds(x={"x": (0, 10)}, y={"y": reticent.YesNo()})
    outcome = None
    if told == "by parameter":
        bounds = reticent.Bounds(x={"x": (0, 10)}, y={"y": (0, 1)})
        outcome = "binary"
    off = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        frame = pl.DataFrame(
            {"x": rng.uniform(0, 10, 500), "y": (rng.random(500) < 0.05).astype(int)}
        )
        model = reticent.LabelGPRegressor(
            outcome=outcome, bounds=bounds, epsilon=1, delta=2e-4, random_state=seed
        ).fit(frame)
        mean, std = model.predict(pl.DataFrame({"x": [2.0, 5.0, 8.0]}), return_std=True)
        off.append((mean - 0.05) / std)
        assert std.max() < 0.06
        assert {release.statistic["reach"] for release in model.releases_} == {1.0}
    assert np.abs(off).max() < 3
    assert np.abs(np.mean(off)) < 1.5


def test_clips_vanish_as_the_budget_grows():
    """Skewed labels: what a clip cuts off is one-sided."""
    rng = np.random.default_rng(9)
    x = rng.uniform(0, 10, size=(1000, 1))
    y = rng.lognormal(size=1000).clip(0, 30)
    model = reticent.LabelGPRegressor(
        RBF(3.0, "fixed") * ConstantKernel(0.5**2, "fixed"),
        learn_kernel=False,
        bounds=reticent.Bounds(x=[(0, 10)], y=(0, 30)),
        epsilon=1e5,
        delta=1e-5,
    ).fit(x, y)
    last = LabelSum.decode(model.releases_[-1])
    assert last.clip_threshold >= 1 + np.abs(last.centre).max() - 1e-9
    assert model.predict(x).mean() == pytest.approx(y.mean(), rel=0.02)
