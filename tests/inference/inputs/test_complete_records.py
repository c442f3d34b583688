"""The number of complete records: near the count, never beyond n, all of them if they may be."""

import numpy as np
import pytest

from reticent.inference.inputs.complete_records import UnitTotal, complete_records


def test_a_clear_count_is_believed():
    found = complete_records(620.0, 5.0, UnitTotal(1000))
    assert found.mean == pytest.approx(620, abs=0.1)
    assert found.sd == pytest.approx(5, rel=0.01)
    assert "About 62 %" in found.warning


def test_a_count_near_n_means_all():
    for count in (990.0, 1000.0, 1040.0, 1e6):
        found = complete_records(count, 15.0, UnitTotal(1000))
        assert 990 < found.mean <= 1000
        assert found.warning is None


@pytest.mark.parametrize("count", [-1e9, -50.0, 0.0, 3.0, 500.0, 1e9])
@pytest.mark.parametrize("sd", [0.5, 30.0, 1e6])
@pytest.mark.parametrize("n", [1, 1000])
def test_the_number_is_possible_whatever_the_noise(count, sd, n):
    found = complete_records(count, sd, UnitTotal(n))
    assert 1 <= found.mean <= n
    assert 0 <= found.sd <= n
    assert np.isfinite(found.relative_variance)


def test_no_warning_without_being_sure():
    assert complete_records(700.0, 200.0, UnitTotal(1000)).warning is None
    assert (
        complete_records(960.0, 1.0, UnitTotal(1000)).warning is None
    )  # a few per cent are no surprise


def test_it_is_the_mean_of_the_posterior():
    rng = np.random.default_rng(0)
    n, sd, draws = 200, 20.0, 200_000
    truth = np.where(rng.random(draws) < 0.5, n, rng.uniform(0, n, draws))
    counts = truth + sd * rng.normal(size=draws)
    for count in (80.0, 160.0, 190.0, 210.0):
        near = truth[np.abs(counts - count) < 2]
        found = complete_records(count, sd, UnitTotal(n))
        assert found.mean == pytest.approx(near.mean(), abs=1.5)
        assert found.sd == pytest.approx(near.std(), abs=1.5)


def test_a_noisy_number_of_all_is_no_upper_limit():
    """With n ± 30 and a count ± 10 of the same 1000, the count is believed; nothing is cut at n."""
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(400):
        total = UnitTotal(round(1000 + 30 * rng.normal()), 30.0)
        errors.append(complete_records(1000 + 10 * rng.normal(), 10.0, total).mean - 1000)
    assert abs(np.mean(errors)) < 3 * np.std(errors) / 20
    assert np.std(errors) < 10.5


def test_it_is_the_mean_of_the_posterior_where_n_is_noisy():
    rng = np.random.default_rng(2)
    n, n_sd, sd, draws = 200, 25.0, 15.0, 2_000_000
    units = n + n_sd * rng.normal(size=draws)
    truth = np.where(rng.random(draws) < 0.5, units, rng.uniform(0, 1, draws) * units)
    counts = truth + sd * rng.normal(size=draws)
    for count in (80.0, 160.0, 200.0, 240.0):
        near = truth[np.abs(counts - count) < 1]
        found = complete_records(count, sd, UnitTotal(n, n_sd))
        assert found.mean == pytest.approx(near.mean(), abs=1.5)
        assert found.sd == pytest.approx(near.std(), abs=1.5)


def test_with_weights_the_total_says_nothing_about_missing_values():
    found = complete_records(230.0, 5.0, UnitTotal(1000, one_each=False))
    assert found.mean == pytest.approx(230, abs=0.1)
    assert found.warning is None
    assert complete_records(998.0, 5.0, UnitTotal(1000, one_each=False)).mean < 998


@pytest.mark.parametrize("sd", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("n_sd", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("count", [-5.0, 0.0, 99.0, 101.0, 1e6])
def test_it_is_a_number_whatever_the_two_noises_are(count, sd, n_sd):
    for one_each in (True, False):
        found = complete_records(count, sd, UnitTotal(100, n_sd, one_each))
        assert np.isfinite([found.mean, found.sd]).all()
        assert found.mean >= 1


def test_that_there_may_be_none_is_said_of_counts_near_zero_alone():
    normal = np.random.default_rng(0).normal(size=500)
    for n in (200, 1000):
        sd = n / 10
        nobody = [complete_records(sd * z, sd, UnitTotal(n)).perhaps_none for z in normal]
        everybody = [complete_records(n + sd * z, sd, UnitTotal(n)).perhaps_none for z in normal]
        some = [complete_records(n / 2 + sd * z, sd, UnitTotal(n)).perhaps_none for z in normal]
        assert np.mean(nobody) > 0.98
        assert not any(everybody)
        assert np.mean(some) < 0.05
    # noise that hides everybody says nothing
    assert not any(complete_records(2000 * z, 2000.0, UnitTotal(1000)).perhaps_none for z in normal)
