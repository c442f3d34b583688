"""Not a test: a cheap fitted model of each kind, and a page taken apart."""

import functools
import re
from html.parser import HTMLParser

import numpy as np
import pandas
from sklearn.gaussian_process.kernels import RBF

import reticent
from reticent.cli.model_words import MODEL_WORDS

__all__ = ["Page", "crowd", "kept", "made"]


class Page(HTMLParser):
    """A page taken apart: its tags with their attributes, and its visible text."""

    def __init__(self, path):
        super().__init__()
        self.source = path.read_text("utf-8")
        self.tags = []
        self.words = []
        self._silent = False
        self.feed(self.source)
        self.text = re.sub(r"\s+", " ", "".join(self.words)).replace("\xa0", " ")

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._silent = tag in ("script", "style")
        self.words.append(" " if tag in ("td", "th", "li", "p") else "")

    def handle_endtag(self, tag):
        self._silent = False

    def handle_data(self, data):
        if not self._silent:
            self.words.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]

    def attribute(self, name):
        return [attrs[name] for _, attrs in self.tags if name in attrs]


def made(word, *, columns=("age", "height", "weight", "ward"), **options):
    """A cheap model of any kind."""
    bounds = {"x": dict.fromkeys(columns, (0, 10))}
    options = {"epsilon": 1.0, "delta": 1e-6, **options}
    outputs = options.pop("outputs", ("output <i>",))
    if word.startswith("gp"):
        bounds["y"] = dict.fromkeys(outputs, (0, 10))
        small = {
            "gp": {"basis": 5, "stages": 2},
            "gp-labels": {"stages": 2},
            "gp-binned": {"bins": 3},
        }[word]
        options = {"kernel": RBF(4.0, "fixed"), **small, **options}
    classes = options.pop("classes", ("no", "</svg>"))
    records = np.random.default_rng(0).uniform(0, 10, (500, len(columns) + len(outputs)))
    frame = pandas.DataFrame(records, columns=[*columns, *outputs])
    if word == "classifier":
        bounds["classes"] = {outputs[0]: classes}
        options = {"basis": 6, "stages": 12, **options}
        frame[outputs[0]] = np.array(classes)[
            (frame[columns[0]] * len(classes) / 10.001).astype(int)
        ]
    return getattr(reticent, MODEL_WORDS[word].estimator)(
        bounds=reticent.Bounds(**bounds), **options
    ).fit(frame)


kept = functools.cache(made)  # for tests that only look: fitted once


def crowd(n=4000, **options):
    """Records that crowd in one corner of the box: medians 12 and 30 in ranges up to 100."""
    random = np.random.default_rng(0)
    x = np.column_stack([random.gamma(4, 12 / 3.67, n), random.normal(30, 6, n)])
    bounds = reticent.Bounds(x=[(0, 100), (0, 100)], y=(-3, 3), norm=options.pop("norm", None))
    options = {"basis": 6, "stages": 24, "learn_kernel": False, "epsilon": 8.0, **options}
    return reticent.GPRegressor(bounds=bounds, delta=1e-6, **options).fit(x, np.sin(x[:, 0]))
