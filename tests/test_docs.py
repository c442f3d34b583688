"""Commands that documentation shows are ones that the program takes.

What is written from the code is there.
"""

import re
import shlex
import sys
from pathlib import Path

import pytest
import typer
from typer.main import get_command

import reticent
from reticent.cli.main import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def shown(text):
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            for command in shlex.split(line, comments=True) and line.split("&&"):
                words = shlex.split(command, comments=True)
                if words[:1] == ["reticent"]:
                    yield words[1:]


def parse(words):
    """Have a command line read as far as its options; nothing is run."""
    command = get_command(app)
    context = command.make_context("reticent", list(words))
    rest = list(words)
    while hasattr(command, "commands"):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(
            name, list(rest), parent=context, resilient_parsing="--help" in rest
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_are_taken(page):
    for words in shown(page.read_text()):
        parse(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_page_waits_for_its_text(page):
    assert not re.search(r"\b(PLACEHOLDER|TODO|TBD|FIXME)\b", page.read_text())


def test_a_wrong_option_would_be_found():
    found = list(
        shown("```sh\npip install . && reticent fit gp a.csv \\\n    --nonsense 3  # so\n```\n")
    )
    assert found == [["fit", "gp", "a.csv", "--nonsense", "3"]]
    with pytest.raises(typer.BadParameter.__base__, match="nonsense"):
        parse(found[0])


def test_the_reference_has_every_public_name():
    listed = set(
        re.findall(r"^   (\w+)$", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE)
    )
    assert {*reticent.__all__, *reticent.plot.__all__} - {"__version__", "plot"} == listed


@pytest.fixture
def making(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    for name in ("generated", "pictures"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_pages_are_filled_from_the_code(making):
    import generated

    assert generated.filled("no mark") == "no mark"
    page = generated.filled("<!-- generated: studies -->\n<!-- generated: benchmarks -->")
    assert "| `reticent reproduce tuo-orbit` |" in page
    assert "| `python benchmarks/gram.py` | How fast are exact Gram sums? |" in page
    numbers = generated.filled((ROOT / "docs" / "numbers.md").read_text())
    assert "### Priors of `inference/moment_model`" in numbers
    assert "| `LimitSettings.band_sd` | `1.959963984540054` |" in numbers


def test_the_way_of_a_record_goes_through_files_that_exist(making):
    import generated

    way = (ROOT / "docs" / "tree.md").read_text()
    files = re.findall(r"`(\w+(?:/\w+)+\.py)`", way.split("## All files")[0])
    assert len(files) > 30
    assert all((ROOT / "src" / "reticent" / name).is_file() for name in files)
    assert "| `src/reticent/privacy/statistics/integer_grid.py` |" in generated.filled(way)


def test_pictures_are_drawn_by_the_page_for_light_and_dark_paper(making, tmp_path):
    import pictures

    page = tmp_path / "page.md"
    drawing = '<svg style="fill: #ffffff; stroke: #0b4f8a"/>'
    code = f">>> import pathlib\n>>> pathlib.Path('one.svg').write_text({drawing!r}) > 0\nTrue\n\n"
    page.write_text(f"```python\n{code}```\n<!-- picture: one | A line. -->\n")
    pictures.draw(tmp_path)
    assert (
        tmp_path / "drawn" / "one-light.svg"
    ).read_text() == '<svg style="fill: none; stroke: #0b4f8a"/>'
    assert (
        tmp_path / "drawn" / "one-dark.svg"
    ).read_text() == '<svg fill="#e7eaef" style="fill: none; stroke: #7cbcf5"/>'
    assert ":alt: A line." in pictures.placed(page.read_text())
    page.write_text(page.read_text().replace("True", "False"))
    (tmp_path / "drawn" / "one-dark.svg").unlink()
    with pytest.raises(RuntimeError, match="do not give what the page says"):
        pictures.draw(tmp_path)
