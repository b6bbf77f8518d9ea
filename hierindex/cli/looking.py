"""Commands that describe or export an index."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hierindex.cli import options
from hierindex.cli.output import print_result
from hierindex.cli.text import contents, described, exported, node_shown, outlined
from hierindex.errors import InputError
from hierindex.settings import OUTLINE_TOKENS, REPORT_MB
from hierindex.text.display import counted


def info(index: options.Index, as_json: options.AsJson = False) -> None:
    """Print the levels, numbers of nodes and models of an index."""
    from hierindex.index import HierarchicalIndex

    print_result(HierarchicalIndex.open(index).info(), as_json, described)


def show(
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="Node id, a unique prefix, or document id.")
    ],
    index: options.Index,
    source: Annotated[
        bool, typer.Option("--source", help="Also print the cited passages in context.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Print the text, parents, children and sources of a node.

    "page xii (14)" means the 14th page of the file, whose printed page number
    is xii.
    """
    from hierindex.index import HierarchicalIndex

    opened = HierarchicalIndex.open(index)
    shown = opened.describe(node)
    if source:
        shown["passages"] = [each.to_json() for each in opened.sources(shown["id"])]
    print_result(shown, as_json, node_shown)


def tree(
    index: options.Index,
    node: Annotated[
        str | None,
        typer.Argument(metavar="NODE", help="Node id or unique prefix; by default all roots."),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Levels of children to print; by default up to 40 nodes."
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Print a table of contents of the index, or of the subtree of a node."""
    from hierindex.index import HierarchicalIndex

    print_result(HierarchicalIndex.open(index).tree(node, depth), as_json, contents)


def outline(
    index: options.Index,
    of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID", help="Document or node to outline; may be repeated. By default all."
        ),
    ] = None,
    budget: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum tokens of all nodes together.")
    ] = OUTLINE_TOKENS,
    question: Annotated[
        str | None,
        typer.Option(
            metavar="QUESTION",
            help="Give more room to text that is similar to this question. None by default.",
        ),
    ] = None,
    where: options.Where = None,
    as_json: options.AsJson = False,
) -> None:
    """Summarise the index, or a part of it, in its own sentences within a token budget."""
    from hierindex.index import HierarchicalIndex
    from hierindex.respond.answer import outline_json
    from hierindex.retrieve.retrieval import outlined as outline_of
    from hierindex.store.filtering import known_filters

    opened = HierarchicalIndex.open(index)
    filters = known_filters(where, opened.table.snapshot())
    found = outline_of(opened.table, opened.encoder, budget, question, of or None, filters)
    print_result(outline_json(found), as_json, outlined)


def report(
    index: options.Index,
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="File to create.")],
    of: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Root of the subtree to write. By default all roots."),
    ] = None,
    ask: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUESTION",
            help="Question to answer in the report; may be repeated. None by default.",
        ),
    ] = None,
    max_mb: Annotated[
        float,
        typer.Option(
            metavar="MB",
            min=0,
            max=10_000,
            help="Maximum size; texts of the lowest levels are left out first.",
        ),
    ] = REPORT_MB,
    as_json: options.AsJson = False,
) -> None:
    """Write one HTML file to read, print and explore offline: overview, answers, tree, sources."""
    from hierindex.export.report import to_html
    from hierindex.index import HierarchicalIndex

    max_bytes = round(max_mb * 1e6)
    written = to_html(HierarchicalIndex.open(index), out, of, ask=ask or (), max_bytes=max_bytes)
    print_result({"path": str(out), **written.to_json()}, as_json, _written)


def export(
    form: Annotated[
        Literal["document-summary", "parquet", "json", "markdown", "svg"],
        typer.Argument(
            metavar="FORMAT",
            help="document-summary (a LlamaIndex index), parquet, json, markdown (a folder of "
            "pages) or svg (a picture).",
        ),
    ],
    index: options.Index,
    to: Annotated[
        Path,
        typer.Option(
            metavar="PATH",
            help="File to create; for document-summary and markdown, a folder, which markdown "
            "brings up to date.",
        ),
    ],
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="For markdown: overwrite files that were edited since the last export."
        ),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Export the tree for other programs, or a picture of it."""
    from hierindex.export.document_summary import persist_document_summary_index
    from hierindex.export.files import to_json, to_parquet
    from hierindex.export.markdown import to_markdown
    from hierindex.export.svg import to_svg
    from hierindex.index import HierarchicalIndex

    report: dict[str, Any] = {"format": form, "path": str(to)}
    if form == "markdown":
        written = to_markdown(HierarchicalIndex.open(index), to, force=force)
        print_result({**report, **written}, as_json, exported)
        return
    if force:
        raise InputError("--force is for markdown; the other formats overwrite nothing.")
    writers: dict[str, Callable[[HierarchicalIndex, Path], int]] = {
        "document-summary": persist_document_summary_index,
        "parquet": to_parquet,
        "json": to_json,
        "svg": to_svg,
    }
    n_nodes = writers[form](HierarchicalIndex.open(index), to)
    print_result({**report, "nodes": n_nodes}, as_json, exported)


def _written(written: dict[str, Any]) -> str:
    size = f"{written['bytes'] / 1e6:.1f} MB"
    line = f"Wrote {written['path']}: {counted(written['nodes'], 'node')}, {size}."
    return "\n".join([line, *([written["left_out"]] if written["left_out"] else [])])
