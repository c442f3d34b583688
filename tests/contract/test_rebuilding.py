"""A model is what its releases say: rebuilt with a wrong word it is refused, or it is the same.

Never a better promise.
"""

import copy
from dataclasses import replace

import numpy as np
import pytest

import reticent
from tests.contract.cases import BOX, CLASSED, ESTIMATORS, PLANE, records, relation, split
from tests.contract.test_estimators import fitted_once

# records have labels that are no classes, and a fit that leaves most of them out says so
pytestmark = pytest.mark.filterwarnings("ignore:About .* of the records:UserWarning")

FEW = {
    name: model
    for name, model in ESTIMATORS.items()
    if name != "BinnedGPRegressor, kernel by scores"
}
each = pytest.mark.parametrize("model", FEW.values(), ids=FEW)
STAGED = (
    "GPRegressor",
    "GPRegressor with noise levels",
    "GPClassifier",
    "FactorAnalysis",
    "PCA",
    "GaussianMixture",
    "PrivateSearch",
    "PrivateSearch of outputs",
)  # of several releases each


def rebuilt(model, releases=None, **changed):
    one = fitted_once(model)
    return type(one).from_releases(
        one.releases_ if releases is None else releases, **{**one.get_params(deep=False), **changed}
    )


def altered(release, **changed):
    """Forged, with a checksum that is right again.

    What is said must be refused for what it says.
    """
    return replace(release, checksum=None, **changed)


@each
def test_a_part_of_the_releases_or_more_of_them_is_refused(model):
    releases = fitted_once(model).releases_
    parts = [[], releases + releases[-1:]]
    if len(releases) > 1:
        parts += [releases[:1], releases[:-1], releases[1:]]
    for part in parts:
        with pytest.raises(reticent.ReticentError):
            rebuilt(model, part)


@pytest.mark.parametrize("name", STAGED)
def test_releases_in_another_order_are_refused(name):
    """Each was asked for because of those before it.

    (Label-only models hold each question in its answer.)
    """
    with pytest.raises(reticent.ReticentError):
        rebuilt(FEW[name], fitted_once(FEW[name]).releases_[::-1])


@each
@pytest.mark.parametrize("part", ["value", "scale"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, "short", "long"])
def test_numbers_that_no_curator_gives_are_refused(model, part, wrong):
    first, *others = fitted_once(model).releases_[
        ::-1
    ]  # the last one: the first of a search holds no sum
    values = getattr(first, part)
    if isinstance(wrong, str):
        changed = values[:-1] if wrong == "short" else np.append(values, values[-1])
    else:
        changed = np.append(values[:-1], wrong)
    with pytest.raises(reticent.BadInput):
        rebuilt(model, [*others[::-1], altered(first, **{part: changed})])


@pytest.mark.parametrize("name", [*STAGED, "LabelGPRegressor"])
def test_releases_that_do_not_belong_together_are_refused(name):
    """One that says another n, event, person or stamp than the others is of another fit, whatever
    else it says.
    """
    *others, last = fitted_once(FEW[name]).releases_
    for change in (
        {"n": last.n + 1},
        {"event": reticent.Gaussian(noise_multiplier=1e-3)},
        {"records_per_person": 2},
        {"private": not last.private},
        {"fit": "0" * 16},
        {"entry": "0" * 64},
        {"relation": "record" if last.relation == "label" else "label"},
    ):
        with pytest.raises(reticent.ReticentError):
            rebuilt(FEW[name], [*others, altered(last, **change)])


@each
@pytest.mark.parametrize(
    "change",
    [{"epsilon": 1e-3}, {"epsilon": 7.0}, {"delta": 1e-4}, {"records_per_person": 50}],
    ids=str,
)
def test_parameters_that_pay_for_something_else_are_refused(model, change):
    """The guarantee is read off the releases, and parameters that would have paid for other ones
    make no model of them.
    """
    with pytest.raises(reticent.ReticentError):
        rebuilt(model, **change)


@each
def test_a_forged_event_is_refused_though_its_checksum_is_right(model):
    """A better one in all releases, beside the parameters of the fit: ε is that of what the
    parameters paid for.
    """
    one = fitted_once(model)
    for better in (1.001, 1e20):
        event = replace(
            one.releases_[0].event,
            noise_multiplier=one.releases_[0].event.noise_multiplier * better,
        )
        with pytest.raises(reticent.BadInput, match="paid for with"):
            rebuilt(model, [altered(release, event=event) for release in one.releases_])
    assert one.guarantee_.epsilon == pytest.approx(one.epsilon, rel=1e-6)


@each
def test_a_forged_noise_scale_is_refused_though_its_checksum_is_right(model):
    *others, last = fitted_once(model).releases_
    for wrong in (0.999, 1.001, 1e-6):
        with pytest.raises(reticent.BadInput, match="another noise scale"):
            rebuilt(model, [*others, altered(last, scale=last.scale * wrong)])


@each
def test_a_release_that_was_changed_by_hand_is_refused(model):
    """Copied with another field, or written to in place."""
    one = fitted_once(model)
    release = one.releases_[-1]
    for change in (
        {"private": True},
        {"private": False},
        {"value": release.value + 1},
        {"n": release.n + 1},
    ):
        if getattr(release, next(iter(change))) is not next(iter(change.values())):
            with pytest.raises(reticent.BadInput, match="altered"):
                replace(release, **change)
    with pytest.raises(ValueError, match="read-only"):
        release.value[0] = 0.0
    statistic = copy.deepcopy(release.statistic)
    release.statistic["name"] += "s"
    try:
        with pytest.raises(reticent.BadInput, match="altered"):
            rebuilt(model)
    finally:
        release.statistic.clear()
        release.statistic.update(statistic)
    rebuilt(model)


@each
def test_what_is_protected_is_read_off_the_releases(model):
    one = fitted_once(model)
    first = one.releases_[0]
    assert one.guarantee_.relation == first.relation == relation(model)
    other = "record" if first.relation == "label" else "label"
    with pytest.raises(reticent.BadInput, match="These releases protect any one"):
        rebuilt(model, [altered(release, relation=other) for release in one.releases_])
    washing = type("Washing", (type(one),), {"_relation": other})
    with pytest.raises(
        reticent.BadInput, match=r"These releases protect any one|protects less than whole records"
    ):
        washing.from_releases(one.releases_, **one.get_params(deep=False))


@pytest.mark.parametrize(
    "name", [name for name, model in FEW.items() if model.bounds in (BOX, PLANE, CLASSED)]
)
def test_bounds_are_those_of_the_releases(name):
    """What is scaled, is scaled back as it was, whatever bounds a file or a caller names."""
    model = FEW[name]
    other = [(0, 9)] * len(model.bounds.x)
    y = {"y": (0, 9)} if model.bounds.y else {}
    classes = {"classes": list(model.bounds.classes)} if model.bounds.classes else {}
    again = rebuilt(model, bounds=reticent.Bounds(x=other, **y, **classes))
    asked = split(model, records(12))[0]
    for method in ("predict", "predict_proba", "score_samples"):
        if hasattr(again, method):
            np.testing.assert_array_equal(
                getattr(again, method)(asked), getattr(fitted_once(model), method)(asked)
            )


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("GPRegressor", {"stages": 3}),
        ("GPRegressor", {"basis": 8}),
        ("GPRegressor", {"stages": 1}),
        ("GPClassifier", {"method": "labels"}),
        ("GPClassifier", {"method": "dirichlet", "stages": None}),
        ("GPClassifier", {"basis": 10}),
        ("BinnedGPRegressor of regions", {"bins": (2, 3), "regions": None}),
        ("BinnedGPRegressor of regions", {"regions": [[0, 0], [-1, 1], [1, 1]]}),
        ("BinnedGPRegressor of regions", {"protect": "labels"}),
        ("BinnedGPRegressor of regions", {"kind": "count"}),
        ("BinnedGPRegressor of regions", {"learn_kernel": "exponential"}),
        ("BinnedGPRegressor of regions", {"delta": 0}),
        ("BinnedGPRegressor of labels", {"regions": None}),
        ("BinnedGPRegressor of labels", {"protect": "records"}),
        ("BinnedGPRegressor of counts", {"kind": "mean", "bounds": PLANE, "bins": (3, 2)}),
        ("GPRegressor with noise levels", {"noise_column": None, "bounds": PLANE}),
        ("LabelGPRegressor", {"stages": 3}),
        ("PrivateHistogram", {"bins": 6}),
        ("PrivateSearch", {"expected_runs": 50, "candidates": []}),
        ("PrivateSearch", {"mean": "coinpress"}),
        ("PrivateSearch", {"estimator": reticent.PrivateHistogram()}),
    ],
    ids=str,
)
def test_other_parameters_than_those_of_the_fit_are_refused(name, changed):
    with pytest.raises(reticent.ReticentError):
        rebuilt(FEW[name], **changed)


@pytest.mark.parametrize("name", ["PCA", "FactorAnalysis", "PrivateMean", "PrivateCovariance"])
def test_releases_of_one_model_make_no_other(name):
    """Not even PCA and factor analysis: they differ where noise hides single columns."""
    own = fitted_once(FEW[name])
    for other in (
        "PCA",
        "FactorAnalysis",
        "PrivateMean",
        "PrivateHistogram",
        "PrivateCovariance",
        "KMeans",
    ):
        params = FEW[other].get_params(deep=False)
        if other == name:
            again = type(FEW[other]).from_releases(own.releases_, **params)
            assert again.guarantee_ == own.guarantee_
            np.testing.assert_array_equal(again.mean_, own.mean_)
        else:
            with pytest.raises(reticent.ReticentError):
                type(FEW[other]).from_releases(own.releases_, **params)


def test_components_and_factors_are_two_readings_where_columns_are_standardised():
    box = reticent.Bounds(x=[(-5, 5)] * 2)
    records = np.random.default_rng(0).normal(size=(2_000, 2))
    params = {"bounds": box, "epsilon": 20, "delta": 1e-6}
    own = reticent.PCA(1, **params, random_state=0).fit(records)
    again = reticent.FactorAnalysis.from_releases(own.releases_, n_components=1, **params)
    assert again.guarantee_ == own.guarantee_
    np.testing.assert_array_equal(again.mean_, own.mean_)


def test_another_number_of_components_is_another_reading_of_the_same_look():
    """With so few records nothing is asked for that depends on it.

    Reading is free, and promises the same.
    """
    again = rebuilt(FEW["GaussianMixture"], n_components=3)
    assert again.guarantee_ == fitted_once(FEW["GaussianMixture"]).guarantee_
