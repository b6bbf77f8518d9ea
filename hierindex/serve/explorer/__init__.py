"""The explorer: a page that shows a tree in a browser, and its server."""

from pathlib import Path

PAGE = Path(__file__).parent / "page"
