"""What the tests do with pages and indexes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import processes
from indexes import built
from llama_index.core.node_parser import NodeParser
from llama_index.core.node_parser.node_utils import build_nodes_from_splits
from llama_index.core.schema import BaseNode, Document

from hierindex import DocumentHierarchy, HierarchicalIndex

T = TypeVar("T")
QUESTION = "Why was the bridge at Harlow closed in 1963?"


def apart(function: Callable[[], T]) -> T:
    """Call a function in a thread of its own, as Playwright's event loop runs in this one."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(function).result()


class Paragraphs(NodeParser):
    """Makes a chunk of each paragraph, however long."""

    def _parse_nodes(self, nodes: list[BaseNode], **options: Any) -> list[BaseNode]:
        return [
            chunk
            for node in nodes
            for chunk in build_nodes_from_splits(node.get_content().split("\n\n"), node)
        ]


until = partial(processes.until, seconds=10)


def of_documents(uri: Path, *documents: Document | Path) -> HierarchicalIndex:
    """Build an index with a summary of each document, and a chunk of each paragraph."""
    splitter = Paragraphs(include_metadata=False)
    return apart(lambda: built(documents, uri, DocumentHierarchy, splitter=splitter))


def archive(uri: Path, n: int) -> HierarchicalIndex:
    """Build an index of one document with a long list of chunks."""
    text = "\n\n".join(f"Report {i} of the archive has {i} pages." for i in range(n))
    return of_documents(uri, Document(text=text, id_="archive"))


def browse(page):
    """Open the outline, at the root."""
    page.click("#panes [data-pane=outline]")
    page.locator("#tree .row").first.click()
    page.wait_for_selector(".cited", state="attached")


def row(page, title):
    return page.locator("#tree .row", has=page.get_by_text(title, exact=True)).first


def selected(page):
    return page.locator("#tree .row[aria-selected=true] .title").text_content()


def read(page):
    """The title of the node whose text is shown."""
    return page.locator("#summary h2").inner_text()


def cited(page):
    page.wait_for_selector(".cited")
    return flat("".join(page.locator(".cited").all_inner_texts()))


def flat(text):
    return " ".join(text.split())


def ask(page, question=QUESTION, **options):
    if options:
        page.click("[popovertarget=options]")
        for label, value in options.items():
            page.get_by_label(label, exact=True).select_option(value)
        page.keyboard.press("Escape")
    page.fill("#asked", question)
    page.click("#ask")
    page.locator("#answer h2", has_text=flat(question)).wait_for()


def violations(page, **options):
    """What axe-core finds, as text."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={**options, "resultTypes": ["violations"]})
    return [
        (each["id"], node["html"][:200], node["failureSummary"])
        for each in found.response["violations"]
        for node in each["nodes"]
    ]
