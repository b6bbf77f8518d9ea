"""Settings of the site that `make docs` builds: guides, notebooks and the reference."""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx
from typer import Context
from typer.main import get_command

import hierindex
from hierindex.cli.app import app as program

HERE = Path(__file__).parent
ROOT = HERE.parent
INCLUDED = {
    "CHANGELOG.md": "about/changelog.md",
    "LICENSE": "about/licence.md",
    "tests/benchmarks/README.md": "about/figures.md",
    "tests/benchmarks/COST.md": "about/costs.md",
}
"""Files outside this folder that are pages."""

os.environ["COLUMNS"] = "80"  # of help pages

project = "hierindex"
author = project_copyright = "The hierindex authors"
version = release = hierindex.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

# Markdown and notebooks
exclude_patterns = ["**.ipynb_checkpoints"]
nb_execution_mode = "off"  # the outputs are stored; tests run the notebooks
nb_ipywidgets_js = {}  # it would be fetched from elsewhere
myst_heading_anchors = 4

# Docstrings
default_role = "py:obj"
add_module_names = False
autodoc_typehints = "none"  # docstrings have the types
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
toc_object_entries_show_parents = "hide"

# Pages
html_theme = "pydata_sphinx_theme"
html_title = "hierindex"
html_static_path = ["style"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # texts would be fetched, which browsers refuse for files
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def commands() -> str:
    """Return the help of every command."""
    group = get_command(program)
    above = Context(group, info_name="hierindex")
    pages = {
        name: command.get_help(Context(command, info_name=name, parent=above))
        for name, command in group.commands.items()
    }
    return "".join(f"\n## {name}\n\n```text\n{page}```\n" for name, page in pages.items())


def recipes() -> str:
    """Return every script of `pipelines`."""
    paths = sorted((ROOT / "pipelines").glob("*.py"))
    return "".join(f"\n## {path.stem}\n\n```python\n{path.read_text()}```\n" for path in paths)


WRITTEN = {"reference/commands": commands, "recipes": recipes}
"""What the program writes below the text of a page."""


def complete(app: Sphinx, page: str, source: list[str]) -> None:
    """Add what is written by the program, and link to pages what is included elsewhere."""
    if page in WRITTEN:
        source[0] += WRITTEN[page]()
    if app.env.doc2path(page).suffix == ".md":
        source[0] = linked(source[0], app.env.doc2path(page).parent)


def complete_included(app: Sphinx, path: Path, page: str, source: list[str]) -> None:
    """Do the same for a file that a page includes."""
    source[0] = linked(source[0], (Path(app.srcdir) / path).parent)


def linked(text: str, folder: Path) -> str:
    """Turn links to files outside this folder, seen from the file's, into links of the site."""

    def replaced(link: re.Match[str]) -> str:
        path = (folder / link[1]).resolve()
        if not path.is_file() or path.is_relative_to(HERE):
            return link[0]
        inside = path.relative_to(ROOT).as_posix()
        return f"](/{INCLUDED.get(inside, f'../{inside}')}{link[2] or ''})"

    return re.sub(r"\]\(([\w./-]+)(#[\w-]*)?\)", replaced, text)


def setup(app: Sphinx) -> None:
    """Connect what writes pages."""
    app.connect("source-read", complete)
    app.connect("include-read", complete_included)
