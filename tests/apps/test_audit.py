"""``reticent audit``: an attack that finds most of what is there, and more than that only if something is broken."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import reticent
from reticent.apps import audit
from reticent.apps.audit import PAIRS, Finding, attack, lower_bound
from reticent.privacy.accounting import calibrate
from reticent.privacy.curator import Curator


@pytest.fixture(autouse=True)
def repeatable(monkeypatch):
    """Noise from seeds, so that an attack has the same luck every time; everything else is as it is."""
    seeds = itertools.count()

    def curator(*args, seed=None, **options):
        return Curator(*args, **options, seed=b"%d" % next(seeds) if seed is None else seed)

    monkeypatch.setattr(audit, "Curator", curator)


SOME = ("mean", "gp", "mixture")  # sums, products and shares: what is tested with them is the attack, not the statistic


@pytest.mark.parametrize("name", PAIRS)
def test_the_pairs_are_the_worst(name):
    """The exchange of A for B moves the statistic by its sensitivity, in integers and exactly where that can be."""
    pair = PAIRS[name]
    statistic = pair.statistic()
    difference = (audit._exact(statistic, pair.a) - audit._exact(statistic, pair.b)) / statistic.step
    moved = (statistic.shares() * difference**2).sum()
    if name.startswith(("gp", "classifier", "mixture")):  # rows are cut off to a grid: a little shorter
        assert 0.999 * statistic.sensitivity2 < moved <= statistic.sensitivity2
    else:
        assert moved == statistic.sensitivity2
    if statistic.sensitivity1 is not None:
        assert np.abs(difference).sum() == statistic.sensitivity1


@pytest.mark.parametrize("name", SOME)
def test_releases_side_by_side_are_what_a_curator_releases(name, monkeypatch):
    """Bit for bit: the second row is what a second release would be, if it were the only one."""
    pair = PAIRS[name]
    statistic, event = pair.statistic(), reticent.Gaussian(count=2, noise_multiplier=1.0)
    records = np.array([pair.a, pair.b])
    sources = [reticent.scan(records[:, : pair.inputs], y=records[:, pair.inputs :] if pair.outputs else None)] * 2
    options = {"bounds": pair.bounds, "event": event, "targets": pair.outputs > 0, "seed": b"1"}
    one, other = (Curator(source, **options) for source in sources)
    values, scale = audit._releases(one, statistic, 2)
    for row in values:
        release = other.release(statistic)
        assert row.tobytes() == release.value.tobytes()
        assert scale.tobytes() == release.scale.tobytes()
    many = audit._releases(Curator(sources[0], **options), statistic, 200)[0]
    assert len(np.unique(many, axis=0)) == 200


def _silent(self, statistic):
    """A release without noise, which says that it has some."""
    whole = RELEASE(self, statistic)
    return replace(whole, value=(self._exact(statistic, 1) * statistic.step).astype(float))


def _late(self, statistic):
    """The same from the third release on."""
    return (_silent if self._made > 2 else RELEASE)(self, statistic)


RELEASE = Curator.release


@pytest.mark.parametrize(("name", "fault"), [("mean", _silent), ("kmeans", _late)])
def test_a_fault_of_whole_releases_is_found(name, fault, monkeypatch):
    """Steps of a release that are right by themselves tell nothing of a release that does not use them."""
    event = reticent.Gaussian(count=500, noise_multiplier=calibrate(1.0, 0.05))
    monkeypatch.setattr(Curator, "release", fault)
    assert attack(name, event, epsilon=1.0, delta=0.05, runs=1000).verdict == "BROKEN"


def test_noise_that_begins_anew_with_each_release_is_found(monkeypatch):
    """Without seeds, as in earnest: bits that are the same for each release look like noise if many releases share them."""
    monkeypatch.setattr(audit, "Curator", Curator)
    monkeypatch.setattr("reticent.privacy.noise.os.urandom", bytes)
    event = reticent.Gaussian(count=500, noise_multiplier=calibrate(1.0, 0.05))
    assert attack("mean", event, epsilon=1.0, delta=0.05, runs=1000).verdict == "BROKEN"


def test_every_model_is_audited():
    from reticent.apps.results import MODELS

    alike = {"PCA"}  # what it releases is what FactorAnalysis does
    assert {pair.model for pair in PAIRS.values()} | alike >= {model.estimator for model in MODELS.values()}
    fitted = {
        name
        for name in reticent.__all__
        if isinstance(one := getattr(reticent, name), type) and issubclass(one, reticent.PrivateEstimator)
    }
    several = {"JointBandit", "LocalBanditClient", "LocalBanditServer"}  # a server has what clients send, and no more
    attacked = {audit.whose(name) for name in audit.chosen("all", 0.05)}
    assert attacked | alike | {"LocalBanditServer"} == (fitted | several) - {"PrivateEstimator"}


def test_the_help_names_every_attack(run):
    told = "".join(run("audit", "--help").out.split())  # lines may break at a hyphen
    assert all(f"{name}," in told or f"{name}orall" in told for name in audit.chosen("all", 0.05))


PURE = ("mean", "histogram", "kmeans")


def test_all_are_attacked():
    for delta, known in ((0.1, (*PAIRS, *audit.WHOLE)), (0.0, PURE)):
        assert audit.chosen("all", delta) == list(known)


@pytest.mark.parametrize(("name", "delta"), [*((one, 0.1) for one in PAIRS), *((one, 0.0) for one in PURE)])
def test_the_attack_has_power_and_the_claim_holds(name, delta):
    (one,) = audit.audit([name], epsilon=2.0, delta=delta, runs=1000, advance=lambda steps: None)
    assert one.statistic == name
    assert 0.3 < one.power < 1  # with ε = 2, since an attack on a weaker promise needs fewer runs
    assert one.sure < one.bound
    assert one.verdict == "holds"


@pytest.mark.parametrize("name", SOME)
def test_noise_that_is_too_small_is_found(name):
    event = reticent.Gaussian(count=500, noise_multiplier=reticent.calibrate(1, 0.05) / 3)
    found = attack(name, event, epsilon=1.0, delta=0.05, runs=1000)
    assert found.bound > 1
    assert found.verdict == "BROKEN"


@pytest.mark.parametrize("name", SOME)
def test_noise_that_is_twice_too_large_is_seen(name):
    event = reticent.Gaussian(count=500, noise_multiplier=reticent.calibrate(1, 0.05) * 2)
    assert attack(name, event, epsilon=1.0, delta=0.05, runs=1000).power < 0.3


def test_the_threshold_is_chosen_on_other_runs_than_it_is_judged_by(monkeypatch):
    random = np.random.default_rng(1)
    # what the attacker learns from: a perfect separation that does not last
    told = iter([np.ones(1000), np.zeros(1000)])
    monkeypatch.setattr(audit, "_scores", lambda *args: np.concatenate([next(told), random.random(1000)]))
    event = reticent.Gaussian(noise_multiplier=1.0)
    assert attack("mean", event, epsilon=1.0, delta=0.05, runs=2000).bound < 0.2


def test_clopper_and_pearson():
    # 0 of 100: the upper limit is 1 − 0.025^(1/100); 100 of 100: the lower limit is 0.025^(1/100)
    root = 0.025**0.01
    assert lower_bound(100, 0, 100, 0.0, 0.95) == pytest.approx(math.log(root / (1 - root)))
    assert lower_bound(100, 0, 100, 0.1, 0.95) == pytest.approx(math.log((root - 0.1) / (1 - root)))
    assert lower_bound(0, 0, 100, 0.0, 0.95) == -math.inf
    assert lower_bound(5, 100, 100, 0.5, 0.95) == -math.inf
    assert lower_bound(50, 10, 100, 0.0, 0.95) < math.log(5)


def test_the_bound_covers_as_often_as_it_says():
    """Randomised response with ε = 1, whose rates are known: at most 5 % of the bounds may lie above 1."""
    random = np.random.default_rng(0)
    hit, alarm = math.e / (1 + math.e), 1 / (1 + math.e)
    bounds = [lower_bound(random.binomial(400, hit), random.binomial(400, alarm), 400, 0.0, 0.95) for _ in range(2000)]
    assert np.mean(np.array(bounds) > 1) < 0.05
    assert np.median(bounds) > 0.6


def test_verdicts():
    assert Finding("mean", 1, 0.8, 0.5, 10).verdict == "holds"
    assert Finding("mean", 1, 1.1, 0.9, 10).verdict == "unclear"
    assert Finding("mean", 1, 1.4, 1.2, 10).verdict == "BROKEN"


def test_command(run):
    answer = run("audit", "mean", "--quick")
    assert answer.code == 0, answer.err
    heading, row = answer.out.split("\n")[:2]
    assert heading.split() == [
        "statistic",
        "estimator",
        "claimed",
        "ε",
        "δ",
        "shown",
        "ε",
        "≥",
        "power",
        "runs",
        "verdict",
    ]
    assert row.split()[:4] == ["mean", "PrivateMean", "1", "0.05"]
    assert "Power: the share of the claim" in answer.out
    assert "Next:" in answer.out


def test_command_for_machines(run):
    (found,) = json.loads(run("audit", "histogram", "--quick", "--epsilon", 2, "--delta", 0, "--json").out)
    assert (found["statistic"], found["claimed"], found["delta"]) == ("histogram", 2.0, 0.0)
    assert 0.5 < found["bound"] < 2
    assert found["power"] == pytest.approx(found["bound"] / 2)


def test_a_broken_mechanism_is_4(run, monkeypatch):
    monkeypatch.setattr(audit, "audit", lambda *args, **options: [Finding("mean", 1, 3.0, 2.0, 10)])
    answer = run("audit", "mean", "--quick")
    assert answer.code == 4
    assert "BROKEN" in answer.out
    assert "more than was claimed" in answer.err


def test_a_bound_just_above_the_claim_says_to_run_again(run, monkeypatch):
    monkeypatch.setattr(audit, "audit", lambda *args, **options: [Finding("mean", 1, 1.1, 0.9, 10)])
    answer = run("audit", "mean", "--quick")
    assert answer.code == 0
    assert "run it again" in answer.out


def test_wrong_use(run):
    answer = run("audit", "median")
    assert answer.code == 2
    assert ", ".join(PAIRS) in answer.err
    answer = run("audit", "mean", "--quick", "--epsilon", 0)
    assert answer.code == 2
    assert "--epsilon must be a positive number, not 0" in answer.err
    assert "default" not in answer.err
    assert run("audit", "mean", "--quick", "--delta", 1).code == 2
    for name in ("covariance", "gp", "gp-labels", "classifier"):
        answer = run("audit", name, "--quick", "--delta", 0)
        assert answer.code == 4
        assert "delta > 0" in answer.err
