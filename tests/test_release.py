"""What a release says of itself: one version everywhere, and credit for all five papers."""

import re
import tomllib
from pathlib import Path

import yaml
from packaging.version import Version

import reticent
from tests.packaging import oldest

TOP = Path(__file__).parents[1]
CITATION = yaml.safe_load((TOP / "CITATION.cff").read_text())


def test_one_version_everywhere():
    changes = (TOP / "CHANGELOG.md").read_text()
    newest = re.search(r"^## (\S+) \((\S+)\)$", changes, re.MULTILINE)
    assert (CITATION["version"], str(CITATION["date-released"])) == newest.groups()
    here = Version(reticent.__version__)
    if "## Unreleased" in changes:
        assert here.is_devrelease
        assert here > Version(newest[1])
    else:
        assert newest[1] == reticent.__version__


def test_every_paper_is_cited_with_its_authors():
    papers = (TOP / "docs" / "papers.md").read_text()
    assert len(CITATION["references"]) == 5
    for paper in CITATION["references"]:
        authors = ", ".join(
            f"{one['given-names']} {one['family-names']}" for one in paper["authors"]
        )
        assert f"{authors} ({paper['year']})." in papers


def test_the_oldest_dependencies_are_the_ones_that_are_allowed():
    requirements = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["dependencies"]
    lowest = oldest(requirements)
    assert "numpy==2.0" in lowest
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", one) for one in lowest)
