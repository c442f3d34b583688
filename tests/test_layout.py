"""The rules that keep the tree readable: who may import whom, what is lazy, how long a file may be."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import reticent
from tests.tree import tree

ROOT = Path(reticent.__file__).parent
TOP = ROOT.parent.parent
FILES = sorted(ROOT.rglob("*.py"))
LAYERS = {
    "errors": set(),
    "memo": set(),
    "maths": {"memo", "maths"},
    "privacy": {"errors", "memo", "privacy"},
    "models": {"errors", "memo", "maths", "privacy", "models"},
    "experiments": {"errors", "maths", "privacy", "models", "experiments"},
    "apps": {"errors", "memo", "privacy", "models", "experiments", "apps"},
    "plot": {"apps"},  # a public name for what apps draw
}
HEAVY = ("pyarrow", "dask", "psycopg", "dp_accounting", "safetensors", "narwhals", "matplotlib", "jinja2")
# a model offers its report; nothing below it knows what that looks like
UPWARD = {("base.py", "reticent.apps.report"), ("obfuscator.py", "reticent.apps.obfuscation_report")}
MODEL_PLUMBING = {
    f"reticent.models.{name}"
    for name in [
        "bandit_setup",
        "base",
        "bins",
        "classes",
        "curves",
        "em",
        "grids",
        "hypotheses",
        "inputs",
        "judging",
        "label_sum",
        "moments",
        "policy",
        "residuals",
        "responsibilities",
        "rewards",
        "rounds",
        "starts",
        "storage",
    ]
}


@cache
def imports(path: Path):
    """Names of imported modules; those under `if TYPE_CHECKING` do not count."""
    return list(_imports(path))


def _imports(path: Path):
    tree = ast.parse(path.read_text())
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            yield node.module or ""


def layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path):
    if layer(path) not in LAYERS:
        assert path.name in ("__init__.py", "__main__.py")
        return
    for name in imports(path):
        if name.startswith("reticent.") and (path.name, name) not in UPWARD:
            assert name.split(".")[1] in LAYERS[layer(path)], f"{path.name} may not import {name}"
        if name == "reticent.privacy.noise":
            known = ("curator.py", "stream.py", "noise.py", "obfuscation.py")
            assert path.name in known, "noise is drawn for sums, streams and curves, and nowhere else"
        if (
            layer(path) == "models"
            and name.startswith("reticent.models.")
            and path.name not in ("base.py", "storage.py")
        ):
            assert name in MODEL_PLUMBING, f"{path.name}: a model does not know other models"


def test_tables_of_the_command_line_are_written_in_one_place():
    """Where formulas become text."""
    users = [path.name for path in FILES if layer(path) == "apps" and "csv.writer" in path.read_text()]
    assert users == ["tables.py"]


def test_no_cache_of_the_library_counts_how_often_it_is_asked():
    """How many runs a search made is not released, and counters of caches would tell: `reticent.memo` has none."""
    library = [path for path in FILES if layer(path) not in ("experiments", "memo")]
    assert [
        path.name for path in library if re.search(r"\blru_cache|functools import.*\bcache\b", path.read_text())
    ] == []


def test_heavy_packages_are_imported_in_one_file():
    library = [path for path in FILES if layer(path) != "experiments"]  # studies draw their own pictures
    for package in HEAVY:
        users = {path.name for path in library for name in imports(path) if name.split(".")[0] == package}
        assert len(users) == 1, f"{package} is imported in {users}"


def test_heavy_packages_are_imported_only_when_needed():
    """Fitting an array needs none of them, but for what scikit-learn itself brings along and narwhals, which knows frames."""
    code = """
import sys, numpy as np, sklearn.base
before = set(sys.modules)
import reticent
reticent.Ledger("budget.db"), reticent.calibrate(1, 1e-6), reticent.load, reticent.Curator
reticent.PrivateMean(bounds=reticent.Bounds(x=(0, 1)), epsilon=1, delta=1e-6).fit(np.zeros((10, 2)))
print(*(set(sys.modules) - before))
import reticent.apps.inspection, reticent.apps.fit_command, reticent.apps.predict
print("matplotlib" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, drawing = set(done.stdout.split("\n")[0].split()), done.stdout.split("\n")[1]
    assert drawing == "False"  # commands that draw nothing
    assert "reticent.models.mean" in loaded
    assert not (set(HEAVY) - {"narwhals"}) & loaded


def test_importing_reticent_imports_nothing_heavy():
    code = "import sys, reticent; print(*sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "scipy", "sklearn", *HEAVY} & set(loaded)


def test_every_public_name_exists_and_has_a_docstring():
    for name in reticent.__all__:
        thing = getattr(reticent, name)
        assert name == "__version__" or thing.__doc__, name
    with pytest.raises(AttributeError):
        _ = reticent.nonsense
    assert set(reticent.__all__) == {"__version__", *reticent._HOME}
    assert set(reticent.__all__) <= set(dir(reticent))


def test_every_estimator_states_its_privacy():
    for name in reticent.__all__:
        thing = getattr(reticent, name)
        if (
            isinstance(thing, type)
            and issubclass(thing, reticent.PrivateEstimator)
            and thing is not reticent.PrivateEstimator
        ):
            for word in ("Privacy\n", "Neighbours:", "Released:", "public:"):
                assert word in thing.__doc__, f"{name} does not say {word!r}"


def tracked() -> list[str]:
    """All files of the project: what git tracks, and nothing that lies beside it, such as an environment."""
    listed = subprocess.run(["git", "ls-files"], cwd=TOP, capture_output=True, text=True)
    return list(filter(None, listed.stdout.split("\n"))) if listed.returncode == 0 else []


def test_an_environment_inside_the_folder_is_no_part_of_the_project():
    """The README says `python3 -m venv env`: neither git, nor ruff, nor the documentation, nor the tests may look into it."""
    ignored = subprocess.run(["git", "check-ignore", "-q", "env/lib/x.py"], cwd=TOP)
    assert ignored.returncode in (0, 128)  # 128: not a git repository
    settings = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]
    assert "env" in settings["ruff"]["extend-exclude"]
    assert settings["mypy"]["files"] == ["src"]
    assert "env" not in settings["pytest"]["ini_options"]["testpaths"]
    assert re.search(r'^exclude_patterns = .*"env"', (TOP / "docs" / "conf.py").read_text(), re.MULTILINE)
    assert not [name for name in tracked() if name.startswith(("env/", "venv/", ".venv/"))]


def test_each_file_says_what_it_is():
    """A file is one concept, however long that is: a limit on lines only breeds dense lines."""
    for name, lines, about in tree():
        assert about or lines == 0, name


def test_no_machine_paths_or_hosts_in_the_tree():
    forbidden = re.compile("/" + "root/|/" + "work/|" + r"pypi\." + r"org|pythonhosted\." + "org")
    for name in tracked():
        path = TOP / name
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".txt", ".yml", ".html", ""}:
            assert not forbidden.search(path.read_text(errors="replace")), name
