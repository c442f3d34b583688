"""Models by their words: what the command line says of them is what their classes say."""

from inspect import signature

import pytest

import reticent
from reticent.cli.commands.fit import MODEL_OPTIONS
from reticent.cli.model_words import MODEL_WORDS
from reticent.reporting.registry import PRESENTERS, presenter_class


@pytest.mark.parametrize("word", MODEL_WORDS)
def test_options_are_those_of_the_class(word):
    known = signature(getattr(reticent, MODEL_WORDS[word].estimator)).parameters
    assert set(MODEL_WORDS[word].options) == set(MODEL_OPTIONS) & set(known)


def test_every_model_that_is_shown_has_a_word():
    words = {one.estimator: one for one in MODEL_WORDS.values()}
    assert words.keys() == PRESENTERS.keys()
    for name, word in words.items():
        presenter = presenter_class(getattr(reticent, name))
        assert presenter.predicts == word.outputs
        assert presenter.transforms == word.transforms
