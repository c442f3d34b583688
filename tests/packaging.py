"""The package as strangers get it: `python -m tests.packaging [--keep FOLDER]` builds wheel and
sdist and installs both afresh.

The sdist goes into an environment with the oldest dependencies that pyproject.toml allows, the
wheel into one with the newest. Each must run the tour; sizes and start-up times are printed. It
takes minutes and needs a package index, so no test runs it.
"""

import argparse
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

TOP = Path(__file__).parents[1]
IN_THE_WHEEL = (
    "py.typed",
    "reporting/page/templates/report.html",
    "privacy/noise.md",
    "models/descriptive/mean.md",
)


def oldest(requirements: list[str]) -> list[str]:
    """The lowest version that each requirement allows, as constraints for pip."""
    return [one.split(",")[0].replace(">=", "==") for one in requirements]


def run(*command: str | Path, **more) -> str:
    return subprocess.run(
        list(map(str, command)), check=True, text=True, stdout=subprocess.PIPE, **more
    ).stdout


def environment(folder: Path, *packages: str | Path) -> Path:
    """The folder of commands of a new environment that holds these packages."""
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin" / "pip", "install", "--quiet", *packages)
    return folder / "bin"


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist, after a look inside the wheel."""
    run(
        environment(folder / "build", "build") / "python",
        "-m",
        "build",
        "--outdir",
        folder,
        TOP,
        cwd=folder,
    )
    wheel, sdist = *folder.glob("*.whl"), *folder.glob("*.tar.gz")
    names = set(zipfile.ZipFile(wheel).namelist())
    missing = [name for name in IN_THE_WHEEL if f"reticent/{name}" not in names]
    assert not missing, f"not in the wheel: {missing}"
    assert all(name.startswith(("reticent/", "reticent-")) for name in names), (
        "the wheel holds more than the package"
    )
    return wheel, sdist


def install(folder: Path, package: Path, *constraints: str) -> None:
    """Install one package in an environment of its own, run the tour there, and say
    what it costs.
    """
    limits = folder.with_suffix(".txt")
    limits.write_text("\n".join(constraints))
    commands = environment(folder, "--constraint", limits, package)
    (site,) = folder.glob("lib/python*/site-packages")
    files = [
        file
        for one in site.iterdir()
        if not one.name.startswith(("pip", "setuptools"))
        for file in one.rglob("*")
    ]
    size = sum(file.stat().st_size for file in files if file.is_file())
    run(commands / "reticent", "tour", "--out", folder / "tour", cwd=folder)
    print(
        f"{folder.name}: {package.name} installs and runs the tour; "
        f"{size / 2**20:.0f} MiB with core dependencies"
    )
    print(run(commands / "python", TOP / "benchmarks" / "startup.py", cwd=folder), end="")
    print(" ".join(run(commands / "pip", "freeze").split()), flush=True)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument(
        "--keep", type=Path, help="a folder for packages and environments, which is kept"
    )
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = words.parse_args().keep or Path(scratch)
        wheel, sdist = build(folder)
        install(folder / "oldest", sdist, *oldest(project["dependencies"]))
        install(folder / "newest", wheel)


if __name__ == "__main__":
    main()
