"""``reticent inspect``: a model file, shown."""

import json
import subprocess
from hashlib import sha256
from types import SimpleNamespace

import numpy as np
import pytest

import reticent
from reticent.cli.demo_data import people, write_csv
from reticent.reporting.formatting import format_with_error
from reticent.reporting.presenters.descriptive import CovariancePresenter, MeanPresenter
from reticent.reporting.registry import PRESENTERS, presenter_of
from reticent.reporting.release_table import release_groups
from tests.support.prose import says

INPUTS = {"age": (0, 110), "height": (40, 220)}
BOUNDS = reticent.Bounds(x=INPUTS, y={"weight": (2, 150)})
LABELS = reticent.Bounds(x=INPUTS, classes={"sex": [0, 1]})


@pytest.fixture
def saved(tmp_path, people_csv):
    def save(name, people=people_csv, **params):
        bounds = LABELS if name == "GPClassifier" else BOUNDS
        model = getattr(reticent, name)(**{"bounds": bounds, "epsilon": 2, "delta": 1e-5, **params})
        path = tmp_path / "m.reticent"
        model.fit(reticent.scan(people)).save(path, overwrite=True)
        return model, path

    return save


@pytest.mark.parametrize("name", PRESENTERS)
def test_everything_is_there(run, saved, name, tmp_path):
    quick = {}
    n = 500
    if name == "LabelGPRegressor":  # whose time grows with the number of different inputs
        quick = {"stages": 2, "learn_kernel": False, "people": tmp_path / "few.csv"}
        n = 60
        write_csv(people(n, seed=3), quick["people"])
    model, path = saved(name, **quick)
    answer = run("inspect", path)
    assert answer.code == 0, answer.err
    assert answer.out.startswith(f"{name}, {n} records    PRIVATE")
    for words in ("age", "height", "110", "220", "gaussian", "Guarantee", "reticent.load"):
        assert words in answer.out
    digest = sha256(path.read_bytes().partition(b"\n")[2]).hexdigest()
    assert digest in answer.out
    about = json.loads(run("inspect", path, "--json").out)
    assert about["sha256"] == digest
    assert about["guarantee"]["statement"] == model.guarantee_.statement
    assert about["releases"][0]["n"] == n
    assert about["releases"][0]["size"] == len(model.releases_[0].value)


def test_releases_that_are_alike_are_shown_in_one_line(run, saved):
    model, path = saved("GPRegressor", basis=6, learn_kernel=False)
    text = run("inspect", path).out
    lines = [line.split() for line in text.split("Releases")[1].split("Guarantee")[0].split("\n")]
    size = len(model.releases_[-1].value)
    assert ["InputMoments", "5", "gaussian"] in [line[:3] for line in lines]
    assert ["ResidualGram", "20", "×", f"{size}", "gaussian"] in [line[:5] for line in lines]
    assert ["ResidualSizeGram", "36", "gaussian"] in [line[:3] for line in lines]
    assert [line[2] for line in lines if line[:1] == ["InputCounts"]] == ["gaussian"]
    assert text.count("gaussian") == 5  # the last stage by itself
    assert says(" ".join(text.split()), "ResidualGram", "20 times", "6 features", "residual")
    assert (
        len(json.loads(run("inspect", path, "--json").out)["releases"]) == 24
    )  # machines are told all


def test_only_releases_that_are_alike_are_put_together():
    def release(name, size, sd):
        event = reticent.Gaussian(noise_multiplier=1.0)
        return SimpleNamespace(
            statistic={"name": name}, event=event, value=np.zeros(size), sd=np.full(size, sd)
        )

    found = release_groups(
        [
            release("A", 3, 1.0),
            release("A", 3, 4.0),
            release("A", 4, 1.0),
            release("B", 4, 1.0),
            release("A", 3, 1.0),
        ]
    )
    assert [(one.name, one.count, one.most_size) for one in found] == [
        ("A", 2, 3),
        ("A", 1, 4),
        ("B", 1, 4),
        ("A", 1, 3),
    ]
    assert (found[0].least_sd, found[0].most_sd) == (1.0, 4.0)
    assert [one.numbers for one in found] == ["2 × 3", "4", "4", "3"]
    assert found[0].title == "A, 2 times"


def test_several_outputs_are_shown_one_after_the_other(run, saved):
    bounds = reticent.Bounds(x={"age": (0, 110)}, y={"weight": (2, 150), "systolic": (60, 220)})
    model, path = saved("GPRegressor", bounds=bounds, basis=6, stages=2, learn_kernel=False)
    answer = run("inspect", path)
    assert answer.code == 0, answer.err
    mean, sd = model.predict([[55.0]], return_std=True)
    for j, name in enumerate(("weight", "systolic")):
        assert format_with_error(mean[0, j], sd[0, j]) in answer.out
        assert f"{name} (output)" in answer.out
        assert f"{name} spreads by about" in answer.out
    results = json.loads(run("inspect", path, "--json").out)["results"]["outputs"]
    assert list(results) == ["weight", "systolic"]
    assert results["systolic"]["effects"]["age"]["mean"][3] == pytest.approx(mean[0, 1])
    assert results["systolic"]["noise"] == model.noise_[1]


def test_every_estimator_can_be_fitted_from_the_command_line():
    public = {
        name
        for name in reticent.__all__
        if isinstance(thing := getattr(reticent, name), type)
        and issubclass(thing, reticent.PrivateEstimator)
    }
    searched = "PrivateSearch"  # which has a command of its own
    assert PRESENTERS.keys() == public - {"PrivateEstimator", searched}


def test_results_are_the_models(run, saved):
    model, path = saved("PrivateCovariance")
    results = json.loads(run("inspect", path, "--json").out)["results"]
    assert results["covariance"] == model.covariance_.tolist()
    assert results["mean"]["age"] == {"value": model.mean_[0], "noise_sd": model.mean_sd_[0]}
    assert f"{model.correlation_[0, 1]:.2f}" in run("inspect", path).out
    spread, noise = (results["standard_deviation"]["age"][key] for key in ("value", "noise_sd"))
    assert spread == pytest.approx(model.covariance_[0, 0] ** 0.5)
    text = run("inspect", path).out
    assert format_with_error(spread, noise) in text
    assert "approximate" in text


def test_noise_of_standard_deviations_and_correlations_is_about_right():
    # centred data, so that the means' noise, which the covariances share, plays no part
    X = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=2000)
    bounds = reticent.Bounds(x=(-5, 5))
    fits = [
        reticent.PrivateCovariance(bounds=bounds, epsilon=20, delta=1e-6, random_state=i).fit(X)
        for i in range(200)
    ]
    found = [CovariancePresenter(fit).results() for fit in fits]
    for value, noise in (
        (
            [one["standard_deviation"]["column 0"]["value"] for one in found],
            [one["standard_deviation"]["column 0"]["noise_sd"] for one in found],
        ),
        (
            [one["correlation"][0][1] for one in found],
            [one["correlation_noise_sd"][0][1] for one in found],
        ),
    ):
        assert np.std(value) == pytest.approx(np.mean(noise), rel=0.25)  # five standard errors


def test_a_variance_lost_in_noise_is_shown_without_noise(run, saved):
    for seed in range(50):  # some of them have a variance that came out as zero
        model, path = saved(
            "PrivateCovariance", bounds=reticent.Bounds(x={"age": (0, 1e6)}), random_state=seed
        )
        if model.covariance_[0, 0] == 0:
            break
    about = json.loads(run("inspect", path, "--json").out)
    assert about["results"]["standard_deviation"]["age"] == {"value": 0.0, "noise_sd": None}
    assert about["results"]["correlation_noise_sd"] == [[0.0]]
    assert run("inspect", path).code == 0


def test_negative_counts_are_explained(run, saved):
    explained = "Counts that noise has made negative are shown as 0; the release keeps them."
    model, path = saved("PrivateHistogram", bins=100)
    assert (model.counts_ < 0).any()
    assert explained in " ".join(run("inspect", path).out.split())
    _, path = saved("PrivateHistogram", bins=2, bounds=reticent.Bounds(x={"age": (0, 80)}))
    assert explained not in " ".join(run("inspect", path).out.split())


def test_a_seeded_model_is_not_private(run, saved):
    _, path = saved("PrivateMean", random_state=1)
    answer = run("inspect", path)
    assert " NOT PRIVATE " in answer.out.split("\n")[0]
    assert "seed" in answer.out
    assert json.loads(run("inspect", path, "--json").out)["private"] is False


def test_fine_histograms_are_shown_in_groups(run, saved):
    model, path = saved("PrivateHistogram", bins=100)
    lines = [line.split() for line in run("inspect", path).out.split("\n") if " – " in line]
    shown = [int(line[3].replace(",", "")) for line in lines[:20]]
    sums = model.counts_[0].reshape(20, 5).sum(axis=1)
    assert shown == np.floor(np.maximum(sums, 0)).tolist()
    assert lines[1][:3] == ["5.5", "–", "11"]
    assert (
        len(json.loads(run("inspect", path, "--json").out)["results"]["histogram"]["age"]["counts"])
        == 100
    )


def test_altered_and_absent_files_are_5(run, saved, tmp_path):
    _, path = saved("PrivateMean")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    answer = run("inspect", path)
    assert answer.code == 5
    assert "not what was saved" in answer.err
    assert run("inspect", tmp_path / "absent.reticent").code == 5
    (tmp_path / "text").write_text("hello")
    assert run("inspect", tmp_path / "text").code == 5


@pytest.mark.parametrize(
    ("value", "sd", "text"),
    [
        (41.3719, 0.0283, "41.372 ± 0.028"),
        (5.0, 12.3, "5 ± 12"),
        (0.5, 1e-9, "0.5000000000 ± 0.0000000010"),
    ],
)
def test_digits_end_where_the_noise_begins(value, sd, text):
    assert format_with_error(value, sd) == text


def test_a_subclass_is_shown_as_what_it_is():
    class Own(reticent.PrivateMean):
        """A mean with a name of its own."""

    assert isinstance(presenter_of(Own()), MeanPresenter)
    with pytest.raises(reticent.BadInput, match="no report and no drawing of object"):
        presenter_of(object())


def test_who_signed_a_file_is_said_and_that_nobody_did(run, saved, people_csv, tmp_path):
    _, path = saved("PrivateMean")
    assert says(run("inspect", path).out, "signed no", "nothing proves")
    assert json.loads(run("inspect", path, "--json").out)["signed_by"] is None
    reticent.load(path).report(tmp_path / "plain.html")
    assert "nothing proves who wrote this file" in (tmp_path / "plain.html").read_text()
    key = tmp_path / "key.pem"
    out = tmp_path / "signed.reticent"
    subprocess.run(
        ["openssl", "genpkey", "-algorithm", "ed25519", "-out", key],
        check=True,
        capture_output=True,
    )
    asked = ("--x", "age=0:110", "--epsilon", 1, "--delta", 1e-5, "--out", out)
    assert run("fit", "mean", people_csv, *asked, "--sign", tmp_path / "absent").code == 2
    assert not out.exists()
    assert run("fit", "mean", people_csv, *asked, "--sign", key).code == 0
    signer = json.loads(run("inspect", out, "--json").out)["signed_by"]
    public = ["openssl", "pkey", "-in", key, "-pubout", "-outform", "DER"]
    assert (
        signer == sha256(subprocess.run(public, check=True, capture_output=True).stdout).hexdigest()
    )
    assert f"by the key with the fingerprint {signer}" in run("inspect", out).out.replace("\n", "")
    reticent.load(out).report(tmp_path / "signed.html")
    assert signer in (tmp_path / "signed.html").read_text()


def test_a_key_that_cannot_be_used_is_said_before_the_charge(run, people_csv, tmp_path):
    ledger = tmp_path / "budget.db"
    run("ledger", "open", ledger, "people", "--epsilon", 2, "--delta", 1e-5)
    (tmp_path / "key.pem").write_text("no key")
    asked = (
        "--x",
        "age=0:110",
        "--epsilon",
        1,
        "--delta",
        1e-5,
        "--ledger",
        ledger,
        "--dataset",
        "people",
    )
    answer = run(
        "fit", "mean", people_csv, *asked, "--out", tmp_path / "m", "--sign", tmp_path / "key.pem"
    )
    assert answer.code == 2
    assert "openssl genpkey -algorithm ed25519" in " ".join(answer.err.split())
    assert reticent.Ledger(ledger).history("people") == []
