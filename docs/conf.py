"""How the documentation is built: ``sphinx-build -W -c docs . build/site``, without network.

The source folder is the whole project, so that one set of links works here and wherever the files
are read: proofs stay beside the code, and a link to nowhere stops the build. What can be written
from the code is (``generated.py``), and pictures are drawn by the pages' own snippets
(``pictures.py``).
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

import generated
import pictures

import reticent

_NAME = re.compile(r"(?<![\\`\w])(\w*[^\W_])_(?![\w`])")
_SNIPPET = re.compile(r"(^```python\n(?:(?!```).)*?)\n\n```$", re.MULTILINE | re.DOTALL)

project = "reticent"
author = "The reticent developers"
version = release = reticent.__version__
project_copyright = "The reticent developers. Apache-2.0"

root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "src/reticent/**/*.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = [
    ".*",
    "env",
    "venv",
    "build",
    "dist",
    "tests",
    "benchmarks",
    "examples",
    "docs/theme",
]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
needs_sphinx = "8.1"

myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
suppress_warnings = ["myst.header"]  # a proof may begin with smaller headings
highlight_language = "python"

autodoc_typehints = "none"  # docstrings say it in words
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": "BaseEstimator"}
autosummary_generate = True
autosummary_imported_members = False
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
napoleon_google_docstring = False
napoleon_custom_sections = ["Privacy", ("Attributes", "params_style")]
napoleon_use_param = napoleon_use_rtype = False  # words, not references
add_module_names = False

templates_path = [str(Path(__file__).parent / "theme")]  # from here, and from the source folder
html_theme = "furo"
html_title = "reticent"
html_static_path = ["theme/static"]
html_css_files = ["reticent.css"]
html_additional_pages = {"index": "front.html"}  # the site begins in docs/
html_copy_source = html_show_sourcelink = html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b4f8a",
        "color-brand-content": "#0b4f8a",
        "color-code-background": "#f4f6f9",
    },
    "dark_css_variables": {"color-brand-primary": "#7cbcf5", "color-brand-content": "#7cbcf5"},
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "github-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
linkcheck_anchors = False


def _fill(app: Any, docname: str, source: list[str]) -> None:
    page = _SNIPPET.sub(
        r"\1\n```", source[0]
    )  # a snippet ends with an empty line, so that doctest knows its end
    source[0] = pictures.placed(generated.filled(page))


def _draw(app: Any) -> None:
    pictures.draw(Path(app.srcdir) / "docs")


def _skip(app: Any, what: str, name: str, found: Any, skip: bool, options: Any) -> bool | None:
    """scikit-learn's own machinery is not ours to explain."""
    theirs = (getattr(found, "__module__", None) or "").startswith("sklearn.")
    if theirs or name.endswith("_request"):
        return True
    return None


def _escape(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain words: a name that ends with an underscore is no link."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")
            parts[::2] = [_NAME.sub(r"\1\\_", part) for part in parts[::2]]
            lines[i] = "``".join(parts)


def setup(app: Any) -> dict[str, Any]:
    """Connect what is written and drawn while building."""
    app.connect("builder-inited", _draw)
    app.connect("source-read", _fill)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _escape, priority=600)  # after napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
