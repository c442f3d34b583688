"""Registry of the studies: where each is, what it shows, and how often it repeats a setting."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

__all__ = ["REPORT_SEED", "STUDIES", "Study"]

REPORT_SEED = 20261160  # never used while the methods were made


@dataclass(frozen=True)
class Study:
    """A study of the registry.

    Attributes
    ----------
    module : str
        Its module below `reticent.studies`, with a function ``run``.
    shows : str
        What it shows, in one sentence.
    repeats, quick : int
        How often it repeats each setting, and how often with ``--quick``.
    options : mapping
        Further arguments of ``run``, where one module serves several studies.
    """

    module: str
    shows: str
    repeats: int
    quick: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run it; its module is imported only now."""
        return import_module(f"reticent.studies.{self.module}").run(*args, **self.options, **kwargs)


STUDIES = {
    "dpgp-inference": Study(
        "honkela2021.inference",
        "Honkela, Fig 1: error and 95 % coverage against ε of a private "
        "Gaussian process, ours and the paper's.",
        repeats=40,
    ),
    "dpgp-calibration": Study(
        "honkela2021.calibration",
        "Honkela, Fig 2: how often bands of every level hold the truth, ours, "
        "the paper's and its naive one.",
        repeats=40,
    ),
    "dpgp-hyperparameters": Study(
        "honkela2021.hyperparameters_selected",
        "Honkela, Fig 3: hyperparameters by private selection, the paper's scheme and ours, "
        "beside the evidence of one fit.",
        repeats=100,
        quick=2,
    ),
    "gp-hyperparameters": Study(
        "honkela2021.hyperparameters_free",
        "Honkela, Fig 3: noise and length scale, found at no cost by the evidence of one fit, and "
        "by the paper's protocol.",
        repeats=100,
        quick=2,
    ),
    "calibration": Study(
        "own.calibration.study",
        "The grid: every estimator over data laws, n and ε: bias, coverage, ranks, monotony, and "
        "the ratio to the same model without privacy.",
        repeats=10,
    ),
    "gp-robustness": Study(
        "own.robustness",
        "Wrong bounds, outliers, heavy tails, clustered inputs: what they do to error and "
        "coverage; error falls with ε.",
        repeats=40,
    ),
    "gp-missing": Study(
        "own.missing_values",
        "Outputs or inputs missing in 10 to 60 % of the records: bias, coverage, and errors and "
        "bands against a table of the complete records alone.",
        repeats=40,
    ),
    "gp-words": Study(
        "own.words",
        "One fit with a word of 2 or 5 levels among its inputs, against a fit for each level: "
        "errors in pairs, and coverage.",
        repeats=10,
    ),
    "people-panels": Study(
        "own.people",
        "Means, tables and regressions of three panels with all rows of a person protected: error, "
        "noise and coverage against rows, contribution 1, 2, 5 and believed numbers of rows.",
        repeats=20,
        quick=2,
    ),
    "people-clipping": Study(
        "own.people_clipping",
        "Weights by number of rows against clipping each person's own sum: noise at equal shares "
        "of the sum lost, on three panels.",
        repeats=1,
    ),
    "gp-dimensions": Study(
        "own.dimensions",
        "One to eight inputs, 2,000 to 200,000 records: error relative to predicting the mean "
        "with the same promise.",
        repeats=10,
    ),
    "gp-planner": Study(
        "own.planner_calibration",
        "What reticent plan expects against what is then measured, on "
        "functions and records that it never saw.",
        repeats=40,
        quick=2,
    ),
    "dpem-mixture": Study(
        "park2017.mixtures",
        "DP-EM, Figs 2 and 3: log-likelihood of mixtures against ε on stand-ins, the paper's four "
        "compositions and ours.",
        repeats=3,
    ),
    "gp-classes": Study(
        "own.classification",
        "Accuracy and calibration of private classification, softmax, labels and Dirichlet, on "
        "digits and breast cancer.",
        repeats=10,
    ),
    "smith-lengthscales": Study(
        "smith2018.fig1c_integral_kernel",
        "Smith, Fig 1c: integral kernel, point kernel and plain histogram over length scales; "
        "binned regression against ε.",
        repeats=40,
        quick=2,
    ),
    "gp-labels": Study(
        "smith2018.label_regression",
        "Labels only, one input: error against ε of the papers' noise, of log det and trace "
        "cloaks, and of staged releases.",
        repeats=20,
    ),
    "smith-numbers": Study(
        "smith2018.printed_sensitivities",
        "Smith, Zwiessele and Lawrence: sensitivities in the text, as printed and exact.",
        repeats=1,
    ),
    "smith-table": Study(
        "smith2018.table1",
        "Smith, Zwiessele and Lawrence, Table 1: weights of 89 made-up children, the paper's "
        "noise, corrected, and ours.",
        repeats=20,
    ),
    "smith-parameters": Study(
        "smith2018.exponential_mechanism",
        "Smith, supplement: kernel parameters by the exponential mechanism, corrected, beside the "
        "evidence of released bins.",
        repeats=20,
        quick=2,
    ),
    "gp-peers": Study(
        "peers.regression",
        "GPRegressor against diffprivlib and DP-SGD on real data, same records, bounds, ε and δ.",
        repeats=10,
        quick=2,
    ),
    "gp-add-remove": Study(
        "own.add_remove",
        "GPRegressor against DP-SGD and DP-EBM on real data where one record is added or removed, "
        "so that the number of records is protected too.",
        repeats=3,
        quick=2,
    ),
    "class-peers": Study(
        "peers.classification",
        "GPClassifier against diffprivlib and DP-SGD on real data with 2 to 10 classes, same "
        "records, bounds, ε and δ.",
        repeats=5,
        quick=2,
    ),
    "mixed-peers": Study(
        "peers.mixed.prediction",
        "GPRegressor and GPClassifier against DP-EBM and one-hot DP-SGD on real tables with words, "
        "ordered words, dates and numbers.",
        repeats=5,
        quick=2,
    ),
    "mixed-synthetic": Study(
        "peers.mixed.synthetic",
        "Synthetic records of mixed tables by GaussianMixture and by MST of dpmm: margins, pairs "
        "of columns, and a model trained on them.",
        repeats=3,
    ),
    "dpem-kmeans": Study(
        "park2017.kmeans",
        "DP-EM, Fig 4: k-means of 1.25 million places at ε = 0.01, beside DPLloyd and "
        "diffprivlib; and in 5 to 20 columns.",
        repeats=6,
    ),
    "dpem-factors": Study(
        "park2017.factor_analysis",
        "DP-EM, Fig 5: factors of digits, by test log-likelihood and as "
        "pictures, beside the paper's way.",
        repeats=10,
    ),
    "tuo-examples": Study(
        "tuo2023.examples",
        "Tuo and Bhattacharya, Examples 1–3: the least noise that hides one or two values, "
        "against independent noise.",
        repeats=1,
    ),
    "tuo-orbit": Study(
        "tuo2023.orbit",
        "Tuo and Bhattacharya, Fig 3: one arc of a simulated satellite orbit hidden, in radius, "
        "angle and velocities.",
        repeats=1,
    ),
    "tuo-attacks": Study(
        "tuo2023.attacks",
        "Learners that see 100,000 simulated releases of an obfuscated curve, and what five fresh "
        "releases would tell.",
        repeats=1,
    ),
    "gpucb-regret": Study(
        "dubey2021.joint_regret",
        "Dubey, Figs 1–2 and Table 1: regret of private bandits of two inputs, ours, the paper's, "
        "and without privacy.",
        repeats=20,
        options={"names": ("gp-sum", "camel")},
    ),
    "gpucb-additive": Study(
        "dubey2021.joint_regret",
        "Dubey, Table 1: the same for the environments of 10 and 20 inputs.",
        repeats=10,
        options={"names": ("michalewicz", "styblinski")},
    ),
    "gpucb-local": Study(
        "dubey2021.local_regret",
        "Dubey, Alg 3: regret of the local bandit, after 1,024 and 16,384 rounds.",
        repeats=10,
    ),
    "gpucb-contexts": Study(
        "dubey2021.context_distribution",
        "Candidates of another distribution than a private bandit assumes, and in "
        "another order: what that costs.",
        repeats=10,
    ),
    "gpucb-features": Study(
        "dubey2021.fourier_error",
        "Dubey, Def 4 and Theorem 2: errors of Fourier features of two "
        "kernels, beside their bounds.",
        repeats=1,
    ),
    "gpucb-factorisations": Study(
        "dubey2021.factorizations",
        "Dubey, Alg 2: the noise of running sums by binary tree, square root and buffers.",
        repeats=1,
    ),
}
