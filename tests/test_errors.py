"""Exceptions: their parameter, exit codes and way through a pickle."""

import pickle

import pytest

from reticent import errors
from reticent.validation import as_generator, check_choice, check_integer

ALL = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize("kind", ALL)
def test_an_error_survives_pickling_with_its_parameter(kind):
    copy = pickle.loads(pickle.dumps(kind("epsilon must be above 0.", parameter="epsilon")))
    assert type(copy) is kind
    assert str(copy) == "epsilon must be above 0."
    assert copy.parameter == "epsilon"
    assert copy.exit_code == kind.exit_code


@pytest.mark.parametrize("kind", ALL)
def test_an_error_need_not_be_about_a_parameter(kind):
    assert kind("The file is damaged.").parameter is None
    assert pickle.loads(pickle.dumps(kind("The file is damaged."))).parameter is None


@pytest.mark.parametrize(
    ("check", "parameter"),
    [
        (lambda: check_integer("stages", 0), "stages"),
        (lambda: check_choice("kind", "c", ("a", "b")), "kind"),
        (lambda: as_generator("seed"), "random_state"),
    ],
)
def test_a_check_names_the_parameter_that_its_message_begins_with(check, parameter):
    with pytest.raises(errors.BadInput) as refusal:
        check()
    assert refusal.value.parameter == parameter
    assert str(refusal.value).startswith(f"{parameter} ")
