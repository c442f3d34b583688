"""Model files: what is inside, and what happens when they are damaged."""

import json
import random

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

import reticent
from reticent import BadInput, Bounds, CorruptModel, PrivateMean
from reticent.models import storage


@pytest.fixture
def path(tmp_path):
    model = PrivateMean(bounds=Bounds(x={"age": (0, 110)}), epsilon=1, delta=1e-6)
    import pandas as pd

    model.fit(pd.DataFrame({"age": [30.0, 40.0, 50.0]}))
    model.save(tmp_path / "m.reticent")
    return tmp_path / "m.reticent"


def test_every_flipped_bit_is_noticed(path):
    content = path.read_bytes()
    for place in random.sample(range(8 * len(content)), 400):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(CorruptModel):
            reticent.load(path)


def test_every_truncation_is_noticed(path):
    content = path.read_bytes()
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        with pytest.raises(CorruptModel):
            reticent.load(path)


def test_other_files(tmp_path):
    with pytest.raises(CorruptModel, match="cannot be read"):
        reticent.load(tmp_path / "absent")
    with pytest.raises(CorruptModel, match="cannot be read"):
        reticent.load(tmp_path)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(CorruptModel, match="not a reticent model"):
        reticent.load(tmp_path / "text")


def rewritten(path, change):
    """The same file with its header changed and its checksum made right again: what a newer version might write."""
    from hashlib import sha256

    from safetensors.numpy import load as from_bytes
    from safetensors.numpy import save as to_bytes

    header, _, _ = storage.read(path)
    body = path.read_bytes().partition(b"\n")[2]
    change(header)
    body = to_bytes(from_bytes(body), metadata={"reticent": json.dumps(header)})
    path.write_bytes(b"reticent 1 " + sha256(body).hexdigest().encode() + b"\n" + body)


@pytest.mark.parametrize("name", ["NoSuchModel", "Bounds", "__version__", "os", "load"])
def test_only_our_own_models_are_built(path, name):
    rewritten(path, lambda header: header.update(model=name))
    with pytest.raises(CorruptModel, match="does not know"):
        reticent.load(path)


def test_files_that_do_not_fit_are_refused(path):
    rewritten(path, lambda header: header["params"].update(unknown=1))
    with pytest.raises(CorruptModel, match="does not fit"):
        reticent.load(path)
    rewritten(path, lambda header: header.pop("releases"))
    with pytest.raises(CorruptModel, match="not the contents"):
        reticent.load(path)


def test_what_is_inside(path):
    header, releases, digest = storage.read(path)
    assert set(header) == {"model", "version", "params", "releases"}
    assert "ledger" not in header["params"]
    assert len(releases) == 1
    assert len(digest) == 64
    assert b"pickle" not in path.read_bytes()


def test_a_password_in_the_ledger_url_is_not_saved(tmp_path):
    model = PrivateMean(bounds=Bounds(x=(0, 1)), epsilon=1, delta=1e-6).fit(np.zeros((3, 1)))
    model._params.update(ledger="postgresql://me:secret@host/db", dataset="people")
    model.save(tmp_path / "m")
    assert b"secret" not in (tmp_path / "m").read_bytes()
    assert reticent.load(tmp_path / "m").dataset == "people"


def test_a_file_holds_the_parameters_of_the_fit(tmp_path):
    model = PrivateMean(bounds=Bounds(x=(0, 1)), epsilon=1, delta=1e-6).fit(np.zeros((3, 1)))
    model.set_params(epsilon=7.0, bounds=None)
    model.save(tmp_path / "m")
    assert reticent.load(tmp_path / "m").epsilon == 1


def test_parameters_that_cannot_be_written(tmp_path):
    model = PrivateMean(bounds=Bounds(x=(0, 1)), epsilon=1, delta=1e-6).fit(np.zeros((3, 1)))
    model._params["dataset"] = object()
    with pytest.raises(BadInput, match="dataset"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_is_replaced_only_if_asked_for(tmp_path):
    model = PrivateMean(bounds=Bounds(x=(0, 1)), epsilon=1, delta=1e-6).fit(np.zeros((3, 1)))
    for write in (model.save, model.report):
        path = tmp_path / write.__name__
        path.write_text("paid for")
        with pytest.raises(BadInput, match=r"exists already.*overwrite=True"):
            write(path)
        assert path.read_text() == "paid for"
        write(path, overwrite=True)
        assert path.read_text(errors="replace") != "paid for"


def test_a_folder_that_does_not_exist(tmp_path):
    model = PrivateMean(bounds=Bounds(x=(0, 1)), epsilon=1, delta=1e-6).fit(np.zeros((3, 1)))
    with pytest.raises(BadInput, match="folder that exists"):
        model.save(tmp_path / "absent" / "m.reticent")


@pytest.mark.parametrize("wrong", ["taken", "absent/m", "taken/m", "folder", "long" * 100])
def test_a_file_that_cannot_be_written_costs_no_second_fit(wrong, tmp_path):
    """The fit is paid for by then: the error says that nothing is lost, and nothing half written is left behind."""
    (tmp_path / "taken").write_text("paid for")
    (tmp_path / "folder").mkdir()
    model = PrivateMean(bounds=Bounds(x=(0, 1)), epsilon=1, delta=1e-6).fit(np.zeros((3, 1)))
    for overwrite in (False, True)[: 1 if wrong == "taken" else 2]:
        with pytest.raises(BadInput, match=r"still in memory, and needs no other fit: .*(name|folder)"):
            model.save(tmp_path / wrong, overwrite=overwrite)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["folder", "taken"]
    model.save(tmp_path / "elsewhere")
    assert np.array_equal(reticent.load(tmp_path / "elsewhere").mean_, model.mean_)


def test_a_search_by_a_function_of_ones_own_is_kept_by_its_best_estimator(tmp_path):
    """A function cannot be in a file; the error says what can."""
    search = reticent.PrivateSearch(PrivateMean(), [{}], expected_runs=1, scoring=lambda model, X, y: np.ones(len(X)))
    search.set_params(bounds=Bounds(x=(0, 1)), epsilon=1, delta=1e-6).fit(np.zeros((30, 1)))
    with pytest.raises(BadInput, match=r"scoring cannot be written.*save best_estimator_"):
        search.save(tmp_path / "search")
    search.best_estimator_.save(tmp_path / "best")
    loaded = reticent.load(tmp_path / "best")
    assert np.array_equal(loaded.mean_, search.best_estimator_.mean_)
    assert loaded.guarantee_ == search.guarantee_, "what the whole search costs"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("params", {"bounds": {"Kernel": "os"}}),
        ("params", {"bounds": {"Kernel": "Kernel"}}),
        ("params", {"bounds": {"Estimator": "load", "params": {}}}),
        ("params", {"bounds": {"Estimator": "Ledger", "params": {"url": "made.db"}}}),
        ("params", {"bounds": {"Bounds": {"x": "all"}}}),
        ("params", []),
        ("releases", [{}]),
        ("releases", 3),
        ("releases", []),
        ("model", ["PrivateMean"]),
    ],
    ids=str,
)
def test_nothing_is_made_of_a_header_but_bounds_kernels_and_models(path, key, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())

    def change(header):
        header[key] = {**header["params"], **value} if isinstance(value, dict) else value

    rewritten(path, change)
    with pytest.raises(CorruptModel):
        reticent.load(path)
    assert set(tmp_path.iterdir()) == before


def test_parameters_of_every_kind_come_back():
    kernel = ConstantKernel(2.5, (0.1, 9)) * RBF(np.array([1.0, 2.0]), "fixed") + Matern(3.0, nu=1.5) + WhiteKernel(0.1)
    given = {
        "kernel": kernel,
        "bounds": Bounds(x={"age": (0, 110)}, classes={"ill": ["no", "yes"]}),
        "bins": np.array([[0, 1], [2, 3]]),
        "share": np.float32(0.5),
        "candidates": [{"bins": 3, "kernel": RBF(0.1)}, {}],
        "estimator": PrivateMean(ledger="postgresql://me:secret@host", random_state=3),
        "random_state": None,
        "ledger": "postgresql://me:secret@host",
    }
    plain = json.loads(json.dumps(storage.plain_params(given)))
    assert "secret" not in json.dumps(plain)
    back = storage.restored_params(plain)
    assert back["kernel"] == kernel
    assert back["bounds"] == given["bounds"]
    assert back["bins"] == ((0, 1), (2, 3))
    assert back["share"] == 0.5
    assert back["candidates"] == ({"bins": 3, "kernel": RBF(0.1)}, {})
    assert (back["estimator"].ledger, back["estimator"].random_state) == (None, None)
    assert "ledger" not in back


class OwnKernel(RBF):
    """Somebody's own, under a name that scikit-learn has not."""


def test_a_kernel_of_ones_own_is_not_written_and_not_looked_for():
    with pytest.raises(BadInput, match="kernel cannot be written"):
        storage.plain_params({"kernel": OwnKernel(), "random_state": None})
    pretender = type("RBF", (OwnKernel,), {})
    with pytest.raises(BadInput, match="kernel cannot be written"):
        storage.plain_params({"kernel": pretender(), "random_state": None})
