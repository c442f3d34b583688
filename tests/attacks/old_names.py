"""Names of version 0.1.0 for the modules, classes and methods that attacks use.

An attack is written once, by today's names. `use_old_names` makes them lead to what version 0.1.0
had, if that is the version that is being attacked. Attacks that start a process of their own call
it there first.
"""

import abc
import importlib
import importlib.util
import sys
from operator import attrgetter
from types import ModuleType
from typing import TypeVar

Class = TypeVar("Class", bound=type)

OLD_MODULES = {
    "reticent.auditing.attack": "reticent.apps.audit",
    "reticent.cli.commands.inspect": "reticent.apps.inspection",
    "reticent.cli.main": "reticent.apps.cli",
    "reticent.files.output": "reticent.apps.outfile",
    "reticent.privacy.accounting.composition": "reticent.privacy.accounting",
    "reticent.privacy.random_bits": "reticent.privacy.noise",
    "reticent.privacy.selection.exponential_mechanism": "reticent.privacy.exponential",
    "reticent.privacy.selection.private_selection": "reticent.privacy.choosing",
    "reticent.privacy.sources.base": "reticent.privacy.sources",
    "reticent.privacy.sources.clusters.dask": "reticent.privacy.cluster",
    "reticent.privacy.statistics.cell_sum": "reticent.privacy.celled",
    "reticent.privacy.statistics.integer_grid": "reticent.privacy.grid",
    "reticent.privacy.statistics.partitioned_gram": "reticent.privacy.staged",
    "reticent.privacy.streams.correlated_noise": "reticent.privacy.stream",
    "reticent.privacy.streams.stream": "reticent.privacy.stream",
    "reticent.reporting.attack_curve": "reticent.apps.attacker",
    "reticent.service.experiment_host": "reticent.apps.service.host",
    "reticent.service.store": "reticent.apps.service.store",
}
# by the module of 0.1.0: today's name of a function or class, and its name there
OLD_ATTRIBUTES = {
    "reticent": {"AssignmentMoments": "Shared"},
    "reticent.apps.service.host": {"ExperimentHost": "Host"},
    "reticent.privacy.staged": {"PartitionedGram": "StagedGram"},
    "reticent.privacy.stream": {"BinaryTree": "_Tree"},
}
# by the class of 0.1.0: today's name of a method that attacks call, and its name there
OLD_METHODS = {
    ("reticent.privacy.bounds", "Bounds"): {"scale": "unit"},
    ("reticent.privacy.statistic", "Gram"): {"coordinate_multiplicity": "shares"},
}
# by the class of 0.1.0: today's name of a field that attacks set, and its name there
OLD_FIELDS = {("reticent.models.bandit", "JointBandit"): {"_batch_size": "_size"}}
# what statistics and bounds of an attack define: today's name, and that of 0.1.0
OLD_MEMBERS = {
    "coordinate_multiplicity": "shares",
    "feature_map": "head",
    "output_limit": "output_reach",
    "pooled_covariance": "together",
    "residual_columns": "tail_columns",
    "residual_norm2": "tail_norm2",
    "responsibilities": "split",
    "scale": "unit",
    "second_moment": "second",
    "sensitivity_inflation": "stretch",
}


def is_old() -> bool:
    """Whether version 0.1.0 is the one on the path."""
    return importlib.util.find_spec("reticent.apps") is not None


def use_old_names() -> None:
    """Let today's names lead to those of version 0.1.0, if that version is on the path."""
    if not is_old():
        return
    for today, old in OLD_MODULES.items():
        if importlib.util.find_spec(old) is not None:
            _register(today, importlib.import_module(old))
    for old, names in OLD_ATTRIBUTES.items():
        module = importlib.import_module(old)
        for today, name in names.items():
            setattr(module, today, getattr(module, name))
    for (old, class_name), names in OLD_METHODS.items():
        changed = getattr(importlib.import_module(old), class_name)
        for today, name in names.items():
            setattr(changed, today, getattr(changed, name))

    for (old, class_name), names in OLD_FIELDS.items():
        changed = getattr(importlib.import_module(old), class_name)
        for today, name in names.items():
            setattr(changed, today, _alias(name))


def _alias(name: str) -> property:
    """A property that stands for the field ``name``."""
    return property(attrgetter(name), lambda model, value: setattr(model, name, value))


def _register(today: str, module: ModuleType) -> None:
    """Make a module importable by today's name, and from today's package."""
    sys.modules[today] = module
    package, _, name = today.rpartition(".")
    if package not in sys.modules:
        _register(package, ModuleType(package))
    setattr(sys.modules[package], name, module)


def member_name(today: str) -> str:
    """The name of a member in the version that is being attacked."""
    if is_old():
        return OLD_MEMBERS[today]
    return today


def defines_old_names(defined: Class) -> Class:
    """Class decorator: what an attack's class defines, under the names of 0.1.0 as well."""
    if is_old():
        for today, old in OLD_MEMBERS.items():
            if today in vars(defined):
                setattr(defined, old, vars(defined)[today])
        abc.update_abstractmethods(defined)
    return defined
