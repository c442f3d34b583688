"""The rules that keep the tree readable.

Who may import whom, what is lazy, how long a file may be.
"""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import reticent
from reticent.privacy.statistics.base import Statistic
from tests.tree import tree

ROOT = Path(reticent.__file__).parent
TOP = ROOT.parent.parent
FILES = sorted(ROOT.rglob("*.py"))
# Which room may import which. The package boundary is the trust boundary: `privacy` imports nothing
# that learns from releases; what is not needed to fit a model is never imported by what is.
MAY_IMPORT = {
    "errors": set(),
    "memo": set(),
    "number_kinds": set(),  # annotations of named numbers
    "validation": {"errors"},
    "about": {"errors"},  # public text that goes with a release
    "files": {"errors", "privacy"},  # writing them
    "codebook": {"about", "errors", "privacy"},
    "data_check": {"errors", "privacy"},  # exact counts, for whoever holds the records
    "privacy": {"errors", "memo", "validation"},
    "inference": {"memo", "number_kinds", "privacy.row_maps"},  # feature maps; no records
    "models": {
        "about",
        "errors",
        "memo",
        "number_kinds",
        "validation",
        "files",
        "privacy",
        "inference",
    },
    "reporting": {"about", "errors", "memo", "validation", "files", "privacy", "models"},
    "planning": {"errors", "memo", "validation", "privacy", "inference", "models", "reporting"},
    "auditing": {"errors", "memo", "validation", "privacy", "models", "reporting.formatting"},
    "obfuscation": {
        "errors",
        "memo",
        "number_kinds",
        "validation",
        "files",
        "privacy",
        "models",
        "reporting",
    },
    "service": {"errors", "memo", "validation", "privacy", "models"},
    "studies": {
        "errors",
        "validation",
        "privacy",
        "inference",
        "models",
        "planning",
        "obfuscation",
    },
    "cli": None,  # everything
    "plot": {"planning", "reporting"},  # a public name for what is drawn
}
HEAVY = (
    "pyarrow",
    "dask",
    "pyspark",
    "psycopg",
    "duckdb",
    "openpyxl",
    "dp_accounting",
    "safetensors",
    "narwhals",
    "matplotlib",
    "jinja2",
)
# a model offers its report, and shows itself in a notebook; nothing below it knows what that looks
# like
UPWARD = {
    ("models/base.py", "reticent.reporting.page.page"),
    ("models/base.py", "reticent.reporting.page.notebook"),
    ("privacy/bounds.py", "reticent.codebook"),  # bounds offer to be read from one
}
DRAWS_NOISE = {
    "privacy/curator.py",
    "privacy/noise.py",
    "privacy/selection",
    "privacy/streams",
    "obfuscation/noise.py",
}
READS_FILES = {
    f"privacy/sources/{name}.py"
    for name in (
        *("codes", "csv", "csv_dialect", "files", "parquet", "remote"),
        *("arrow/columns", "arrow/streams", "clusters/spark", "databases/postgres"),
    )
} | {"data_check.py", "planning/sample_tables.py"}
MOST_FILES = 12  # in a folder, besides its door, `__init__.py`


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


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def inside(name: str, rooms: set[str]) -> bool:
    """Whether the module ``reticent.<name>`` lies in one of the rooms."""
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def forbidden_imports(path: Path) -> list[str]:
    """What a file imports from rooms that its own room may not know."""
    here = path.relative_to(ROOT).as_posix()
    if room(path) not in MAY_IMPORT:
        return [] if here in ("__init__.py", "__main__.py") else ["a file outside of all rooms"]
    allowed = MAY_IMPORT[room(path)]
    if allowed is None:
        return []
    known = allowed | {room(path)}
    ours = [name for name in imports(path) if name.startswith("reticent.")]
    wrong = [name for name in ours if not inside(name.removeprefix("reticent."), known)]
    return [name for name in wrong if (here, name) not in UPWARD]


def test_imports_go_one_way():
    found = {str(path.relative_to(ROOT)): forbidden_imports(path) for path in FILES}
    assert {here: names for here, names in found.items() if names} == {}
    assert len(found) > 100


def test_no_fit_looks_at_records_as_a_check_does():
    """Exact counts are for a screen: nothing but that command may know how to make them."""
    users = {
        path.relative_to(ROOT).as_posix()
        for path in FILES
        if "reticent.data_check" in imports(path)
    }
    assert users == {"cli/views/data_check.py"}


def test_noise_is_drawn_in_few_places():
    for path in FILES:
        if "reticent.privacy.noise" in imports(path):
            here = path.relative_to(ROOT).as_posix()
            assert here.startswith(tuple(DRAWS_NOISE)), f"{here} draws noise"


def test_only_the_trusted_package_defines_statistics():
    """Whatever runs on a record before noise is added is in `privacy`; users' own classes aside."""
    import_all()
    for found in subclasses(Statistic):
        if found.__module__.startswith("reticent."):
            assert found.__module__.startswith("reticent.privacy."), found


def import_all() -> None:
    for module in pkgutil.walk_packages(reticent.__path__, "reticent."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def subclasses(base: type) -> set[type]:
    direct = set(base.__subclasses__())
    return direct.union(*(subclasses(one) for one in direct))


def test_no_folder_is_too_full():
    for folder in {path.parent for path in FILES}:
        files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(files) <= MOST_FILES, f"{folder.name} has {len(files)} files: make rooms"


def test_tests_mirror_the_tree():
    """Tests of a room are in a folder of the same name; what spans rooms has folders of its own."""
    spanning = {"attacks", "audit", "contract", "support", "tools", "without"}
    folders = {
        path.parent.relative_to(TOP / "tests") for path in (TOP / "tests").rglob("test_*.py")
    }
    for folder in folders:
        if folder.parts and folder.parts[0] not in spanning:
            assert (ROOT / folder).is_dir(), f"tests/{folder} mirrors nothing"


def test_tables_are_written_in_one_place():
    """Where formulas become text."""
    library = [path for path in FILES if room(path) != "studies"]
    users = [path.name for path in library if "csv.writer" in path.read_text()]
    assert users == ["csv_tables.py"]


def test_no_cache_of_the_library_counts_how_often_it_is_asked():
    """How many runs a search made is not released, and counters of caches would tell:
    `reticent.memo` has none.
    """
    library = [path for path in FILES if room(path) not in ("studies", "memo")]
    assert [
        path.name
        for path in library
        if re.search(r"\blru_cache|functools import.*\bcache\b", path.read_text())
    ] == []


def test_heavy_packages_are_imported_in_one_file():
    library = [path for path in FILES if room(path) != "studies"]  # studies draw their own pictures
    for package in HEAVY:
        users = {
            path.relative_to(ROOT).as_posix()
            for path in library
            for name in imports(path)
            if name.split(".")[0] == package
        }
        if package == "pyarrow":
            assert users == READS_FILES
        elif package == "psycopg":
            assert users == {"privacy/ledger/postgres.py", "privacy/sources/databases/postgres.py"}
        else:
            assert len(users) == 1, f"{package} is imported in {users}"


def test_heavy_packages_are_imported_only_when_needed():
    """Fitting an array needs none of them, but for what scikit-learn itself brings along and
    narwhals, which knows frames.
    """
    code = """
import sys, numpy as np, sklearn.base
before = set(sys.modules)
import reticent
reticent.Ledger("budget.db"), reticent.calibrate(1, 1e-6), reticent.load, reticent.Curator
reticent.PrivateMean(bounds=reticent.Bounds(x=(0, 1)), epsilon=1, delta=1e-6).fit(np.zeros((10, 2)))
print(*(set(sys.modules) - before))
import reticent.cli.commands.inspect, reticent.cli.commands.fit, reticent.cli.commands.predict
print("matplotlib" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split("\n")[0].split())
    drawing = done.stdout.split("\n")[1]
    assert drawing == "False"  # commands that draw nothing
    assert "reticent.models.descriptive.mean" in loaded
    assert not (set(HEAVY) - {"narwhals"}) & loaded


def test_importing_reticent_imports_nothing_heavy():
    code = "import sys, reticent; print(*sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
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
    """All files of the project.

    What git tracks, and nothing that lies beside it, such as an environment.
    """
    listed = subprocess.run(["git", "ls-files"], cwd=TOP, capture_output=True, text=True)
    return list(filter(None, listed.stdout.split("\n"))) if listed.returncode == 0 else []


def test_an_environment_inside_the_folder_is_no_part_of_the_project():
    """The README says `python3 -m venv env`.

    Neither git, nor ruff, nor the documentation, nor the tests may look into it.
    """
    ignored = subprocess.run(["git", "check-ignore", "-q", "env/lib/x.py"], cwd=TOP)
    assert ignored.returncode in (0, 128)  # 128: not a git repository
    settings = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]
    assert "env" in settings["ruff"]["extend-exclude"]
    assert settings["mypy"]["files"] == ["src"]
    assert "env" not in settings["pytest"]["ini_options"]["testpaths"]
    configuration = (TOP / "docs" / "conf.py").read_text()
    assert re.search(r'^exclude_patterns = \[[^]]*"env"', configuration, re.MULTILINE)
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
