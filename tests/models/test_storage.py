"""Model files: what is inside, and what happens when they are damaged."""

import json
import random

import numpy as np
import pytest

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
