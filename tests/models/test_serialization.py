"""Model files: what is inside, and what happens when they are damaged."""

import hashlib
import json
import random
import subprocess
from dataclasses import fields

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

import reticent
from reticent import BadInput, Bounds, CorruptModel, PrivateMean, Release
from reticent.models import serialization as storage


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
    with pytest.raises(CorruptModel, match=r"cannot be read: .*Check the path"):
        reticent.load(tmp_path / "absent")
    with pytest.raises(CorruptModel, match="cannot be read"):
        reticent.load(tmp_path)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(CorruptModel, match="not a reticent model"):
        reticent.load(tmp_path / "text")


def rewritten(path, change):
    """The same file with its header changed and its checksum made right again.

    What a newer version might write.
    """
    from hashlib import sha256

    from safetensors.numpy import load as from_bytes
    from safetensors.numpy import save as to_bytes

    header = storage.read(path).header
    body = path.read_bytes().partition(b"\n")[2]
    change(header)
    body = to_bytes(from_bytes(body), metadata={"reticent": json.dumps(header)})
    path.write_bytes(b"reticent 2 " + sha256(body).hexdigest().encode() + b"\n" + body)


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
    header, releases, digest, signer = storage.read(path)
    assert signer is None
    assert set(header) == {"model", "version", "params", "releases"}
    assert "ledger" not in header["params"]
    assert len(releases) == 1
    assert len(digest) == 64
    assert b"pickle" not in path.read_bytes()


def forge(path, **changes):
    """The same file with some fields of its release changed, and all checksums made right again."""

    def change(header):
        release = storage.read(path).releases[0]
        values = {field.name: getattr(release, field.name) for field in fields(release)}
        forged = Release(**{**values, **changes, "checksum": None})
        header["releases"][0] = {**forged.header(), "checksum": forged.checksum}

    rewritten(path, change)


def test_a_forged_promise_is_refused_whatever_the_checksums_say(path):
    """Beside these parameters there is one event, one unit and one noise scale."""
    for wrong in (
        {"event": reticent.Gaussian(noise_multiplier=1e20)},
        {"event": reticent.Laplace(noise_multiplier=5.0)},
        {"records_per_person": 50},
        {"relation": "label"},
        {"shares_spent": 2},
    ):
        before = path.read_bytes()
        forge(path, **wrong)
        with pytest.raises(CorruptModel, match="does not fit"):
            reticent.load(path)
        path.write_bytes(before)
    reticent.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("n", wrong) for wrong in (0, -7, float("nan"), "5", 3.0, True, None, 10**30)],
        *[("records_per_person", wrong) for wrong in (0, 1.999, "1", None)],
        *[("times", wrong) for wrong in (0, -1, 1.5, 10**9)],
        *[("statistic", wrong) for wrong in (None, [], {}, {"size": 1})],
        ("private", 1),
        ("private", True),
        ("relation", "people"),
        ("relation", ["record"]),
        ("entry", 5),
        ("fit", None),
        ("bounds", {"x": [[0, 1]] * 3}),
        ("event", {"kind": "gaussian"}),
        ("checksum", None),
        ("checksum", "0" * 64),
        ("unknown", 1),
    ],
    ids=str,
)
def test_fields_that_no_curator_gives_are_refused(path, name, value):
    if name == "private":  # of a seeded fit, then
        PrivateMean(bounds=Bounds(x=(0, 1)), epsilon=1, delta=1e-6, random_state=1).fit(
            np.zeros((3, 1))
        ).save(path, overwrite=True)
    rewritten(path, lambda header: header["releases"][0].update({name: value}))
    with pytest.raises(CorruptModel):
        reticent.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.update(more=1),
        lambda header: header.pop("version"),
        lambda header: header.update(version=5),
        lambda header: header.update(params=[1]),
        lambda header: header.update(model=5),
        lambda header: header.update(release={}),
        lambda header: header["releases"].append(header["releases"][0]),
        lambda header: header["params"].update(epsilon=-1),
        lambda header: header["params"].update(epsilon=2.0),
        lambda header: header["params"].update(bounds=nested(300)),
        lambda header: header["params"].update(
            ledger="postgresql://somebody.invalid/x", dataset="p"
        ),
        lambda header: header["params"].update(ledger=None),
    ],
)
def test_headers_that_are_never_written_are_refused(path, change):
    rewritten(path, change)
    with pytest.raises(CorruptModel):
        reticent.load(path)


def nested(depth):
    value = 1
    for _ in range(depth):
        value = {"Dict": {"a": value}}
    return value


@pytest.mark.parametrize("where", ["metadata", "header", "size"])
def test_headers_of_any_depth_and_size_are_refused(path, where):
    from hashlib import sha256

    deep = "[" * 200_000 + "]" * 200_000
    told = json.dumps({"__metadata__": {"reticent": deep}}) if where == "metadata" else deep
    size = 10**9 if where == "size" else len(told)
    body = size.to_bytes(8, "little") + told.encode()
    path.write_bytes(b"reticent 2 " + sha256(body).hexdigest().encode() + b"\n" + body)
    with pytest.raises(CorruptModel, match="not the contents"):
        reticent.load(path)


def test_an_estimator_inside_another_brings_no_account_along(tmp_path):
    search = reticent.PrivateSearch(
        PrivateMean(), [{}], expected_runs=1, bounds=Bounds(x=(0, 1)), epsilon=1, delta=1e-6
    )
    search.fit(np.zeros((30, 1))).save(tmp_path / "m")
    rewritten(
        tmp_path / "m",
        lambda header: header["params"]["estimator"]["params"].update(ledger="budget.db"),
    )
    with pytest.raises(CorruptModel, match="no account"):
        reticent.load(tmp_path / "m")


def test_a_file_of_version_one_says_what_to_do(path):
    path.write_bytes(path.read_bytes().replace(b"reticent 2", b"reticent 1", 1))
    with pytest.raises(CorruptModel, match=r"written by reticent 0\.1.*fit the model again"):
        reticent.load(path)


@pytest.fixture
def keys(tmp_path):
    """Two pairs of keys, private and public."""
    made = []
    for name in ("ours", "theirs"):
        key = Ed25519PrivateKey.generate()
        private = tmp_path / f"{name}.pem"
        public = tmp_path / f"{name}.pub"
        how = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        private.write_bytes(key.private_bytes(*how))
        public.write_bytes(
            key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
        made.append((private, public))
    return made


def test_a_signature_tells_who_wrote_a_file(tmp_path, keys):
    (ours, our_public), (_, their_public) = keys
    model = PrivateMean(bounds=Bounds(x=(0, 1)), epsilon=1, delta=1e-6).fit(np.zeros((3, 1)))
    model.save(tmp_path / "signed", sign_with=ours)
    model.save(tmp_path / "plain")
    assert (tmp_path / "signed").read_bytes().partition(b"\n")[2] == (
        tmp_path / "plain"
    ).read_bytes().partition(b"\n")[2]
    der = subprocess.run(
        ["openssl", "pkey", "-pubin", "-in", our_public, "-outform", "DER"], capture_output=True
    )
    assert storage.read(tmp_path / "signed").signer == hashlib.sha256(der.stdout).hexdigest()
    assert storage.read(tmp_path / "plain").signer is None
    for load in (
        reticent.load(tmp_path / "signed"),
        reticent.load(tmp_path / "signed", signed_by=our_public),
    ):
        assert np.array_equal(load.mean_, model.mean_)
    with pytest.raises(CorruptModel, match=r"is signed by [0-9a-f]{64}, and not signed by"):
        reticent.load(tmp_path / "signed", signed_by=their_public)
    with pytest.raises(CorruptModel, match="is not signed, and not signed by"):
        reticent.load(tmp_path / "plain", signed_by=our_public)


def test_a_signature_is_checked_in_any_case(tmp_path, keys):
    """Nothing of a signed file can be changed, and no signature is good for another file."""
    (ours, public), _ = keys
    mean = PrivateMean(bounds=Bounds(x=(0, 1)), epsilon=1, delta=1e-6)
    mean.fit(np.zeros((3, 1))).save(tmp_path / "one", sign_with=ours)
    mean.fit(np.zeros((3, 1))).save(tmp_path / "two", sign_with=ours)
    first, other = ((tmp_path / name).read_bytes() for name in ("one", "two"))
    line, _, body = first.partition(b"\n")
    words = line.split(b" ")
    others = other.partition(b"\n")[0].split(b" ")
    wrong = [
        b" ".join([*words[:5], others[5]]),
        b" ".join([*words[:4], others[4][::-1], words[5]]),
        b" ".join([*words[:3], b"rsa", *words[4:]]),
        b" ".join(words[:5]),
        b" ".join([*words, b"more"]),
        line + b" ",
        b" ".join([*words[:5], words[5].upper()]),
        b" ".join(words[:3]) + b"  " + b" ".join(words[3:]),
        b" ".join([*others[:3], *words[3:]]),
    ]
    for told in wrong:
        (tmp_path / "one").write_bytes(told + b"\n" + body)
        with pytest.raises(CorruptModel, match="not what was saved"):
            reticent.load(tmp_path / "one")
    for place in random.sample(range(8 * len(first)), 200):
        damaged = bytearray(first)
        damaged[place // 8] ^= 1 << place % 8
        (tmp_path / "one").write_bytes(damaged)
        with pytest.raises(CorruptModel):
            reticent.load(tmp_path / "one", signed_by=public)
    (tmp_path / "one").write_bytes(b" ".join(words[:3]) + b"\n" + body)
    assert storage.read(tmp_path / "one").signer is None, (
        "whoever takes a signature away leaves a file without one"
    )


def test_keys_that_cannot_be_used_are_refused_with_words(tmp_path, keys):
    (ours, public), _ = keys
    model = PrivateMean(bounds=Bounds(x=(0, 1)), epsilon=1, delta=1e-6).fit(np.zeros((3, 1)))
    (tmp_path / "text").write_text("hello")
    for wrong, says in (
        (tmp_path / "absent", "cannot be read"),
        (tmp_path / "text", "genpkey"),
        (public, "genpkey"),
    ):
        with pytest.raises(BadInput, match=says):
            model.save(tmp_path / "m", sign_with=wrong)
    assert not (tmp_path / "m").exists()
    model.save(tmp_path / "m", sign_with=ours)
    for wrong, says in (
        (tmp_path / "absent", "cannot be read"),
        (tmp_path / "text", "pubout"),
        (ours, "pubout"),
    ):
        with pytest.raises(BadInput, match=says):
            reticent.load(tmp_path / "m", signed_by=wrong)


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
    """The fit is paid for by then.

    The error says that nothing is lost, and nothing half written is left behind.
    """
    (tmp_path / "taken").write_text("paid for")
    (tmp_path / "folder").mkdir()
    model = PrivateMean(bounds=Bounds(x=(0, 1)), epsilon=1, delta=1e-6).fit(np.zeros((3, 1)))
    for overwrite in (False, True)[: 1 if wrong == "taken" else 2]:
        with pytest.raises(
            BadInput, match=r"still in memory, and needs no other fit, .*: .*(name|folder)"
        ):
            model.save(tmp_path / wrong, overwrite=overwrite)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["folder", "taken"]
    model.save(tmp_path / "elsewhere")
    assert np.array_equal(reticent.load(tmp_path / "elsewhere").mean_, model.mean_)


def test_a_search_by_a_function_of_ones_own_is_kept_by_its_best_estimator(tmp_path):
    """A function cannot be in a file; the error says what can."""
    search = reticent.PrivateSearch(
        PrivateMean(), [{}], expected_runs=1, scoring=lambda model, X, y: np.ones(len(X))
    )
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
def test_nothing_is_made_of_a_header_but_bounds_kernels_and_models(
    path, key, value, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())

    def change(header):
        header[key] = {**header["params"], **value} if isinstance(value, dict) else value

    rewritten(path, change)
    with pytest.raises(CorruptModel):
        reticent.load(path)
    assert set(tmp_path.iterdir()) == before


def test_parameters_of_every_kind_come_back():
    kernel = (
        ConstantKernel(2.5, (0.1, 9)) * RBF(np.array([1.0, 2.0]), "fixed")
        + Matern(3.0, nu=1.5)
        + WhiteKernel(0.1)
    )
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


def test_a_key_that_is_given_itself_is_not_repeated(path, tmp_path):
    """A name is asked for; an error with the key in it would end in a log."""
    model = reticent.load(path)
    secret = "-----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----\n"
    for given in (secret, secret.encode()):
        with pytest.raises(BadInput, match="name of its PEM file") as refused:
            model.save(tmp_path / "signed.reticent", sign_with=given)
        assert "MC4CAQ" not in str(refused.value)
