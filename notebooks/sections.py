"""The sections of all pages as a file, which `style/search.js` searches in the browser."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from lxml import html
from sphinx.application import Sphinx

Section = tuple[str, str, str, str]
"""The title of a page, an address, and the title and text of what stands there."""

MODULES = re.compile(r"^([a-z_]+\.)+")
MOST = 2000  # characters of a section that are searched


class Sections:
    """What is written of each page, and at the end as a file of the site."""

    def __init__(self) -> None:
        self.found: list[Section] = []

    def collect(
        self,
        app: Sphinx,
        page: str,
        template: str,
        context: dict[str, Any],
        doctree: nodes.document | None,
    ) -> None:
        """Keep the sections of a page; the page of the search gets the scripts instead."""
        if page == "search":
            for script in ("sections.js", "search.js"):
                app.add_js_file(script, loading_method="defer")
        elif doctree is not None:
            title = html.fromstring(context["title"]).text_content()
            self.found += sections_of(f"{page}.html", title, context["body"])

    def write(self, app: Sphinx, error: Exception | None) -> None:
        """Write them as a script, since a page that is a file may load no data."""
        if error is None:
            text = json.dumps(self.found, ensure_ascii=False)
            Path(app.outdir, "_static", "sections.js").write_text(f"const SECTIONS = {text};\n")


def sections_of(address: str, title: str, body: str) -> Iterator[Section]:
    """Yield the sections of a page, and what the reference documents, each without those inside."""
    tree = html.fromstring(f"<div>{body}</div>")
    places = tree.xpath("//section[@id] | //dl[dt[@id and contains(@class, 'sig')]]")
    for place in reversed(places):  # those inside come first
        if place.tag == "dl":
            anchor = place.xpath("dt/@id")[0]
            name, heads = MODULES.sub("", anchor), place.xpath("dt")
        else:
            anchor, heads = place.get("id"), place.xpath("h1 | h2 | h3 | h4")
            name = "".join(heads[0].itertext()).removesuffix("#")
        for head in heads:
            head.drop_tree()
        yield title, f"{address}#{anchor}", name, " ".join(place.text_content().split())[:MOST]
        place.drop_tree()
