"""The site, built as `make docs` builds it."""

import subprocess
import sys
from pathlib import Path

import pytest
from docs.markdown_pages import NOTEBOOKS


def built_site(folder: Path) -> Path:
    """Build the site in a folder, or skip what needs it; a warning is an error."""
    pytest.importorskip("sphinx", reason="run `make docs`")
    pytest.importorskip("myst_nb", reason="run `make docs`")
    command = [sys.executable, "-m", "sphinx", "-M", "html", str(NOTEBOOKS), str(folder)]
    command += ["-q", "--fail-on-warning", "--keep-going"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"
