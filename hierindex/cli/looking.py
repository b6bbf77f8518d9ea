"""Commands that describe, export or check an index, and return to an earlier generation."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import hierindex
from hierindex.cli import options, text
from hierindex.cli.options import argument, flag, option
from hierindex.cli.output import print_result
from hierindex.errors import InputError
from hierindex.settings import OUTLINE_TOKENS, REPORT_MB

INVALID = 1  # exit status if a check does not hold


def info(index: options.Index, as_json: options.AsJson = False) -> None:
    """Print the levels, node counts and models of an index."""
    print_result(hierindex.HierarchicalIndex.open(index).info(), as_json, text.described)


def show(
    node: Annotated[str, argument("NODE", "Id of a document or node, or a unique prefix.")],
    index: options.Index,
    source: Annotated[bool, flag("--source", "Also print the cited passages in context.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Print the text, parents, children and sources of a node.

    "page xii (14)" means the 14th page of the file, whose printed page number
    is xii.
    """
    opened = hierindex.HierarchicalIndex.open(index)
    shown = opened.describe(node)
    if source:
        shown["passages"] = [each.to_json() for each in opened.sources(shown["id"])]
    print_result(shown, as_json, text.node_shown)


def tree(
    index: options.Index,
    node: Annotated[
        str | None,
        argument("NODE", "Id of a document or node, or a unique prefix; by default all roots."),
    ] = None,
    depth: Annotated[
        int | None,
        option(
            "N", "Levels of children to print; by default as many as give up to 40 nodes.", min=0
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Print a table of contents of the index, or of the subtree of a node."""
    print_result(hierindex.HierarchicalIndex.open(index).tree(node, depth), as_json, text.contents)


def outline(
    index: options.Index,
    nodes: Annotated[
        list[str] | None,
        argument(
            "NODE", "Ids of documents or nodes, or unique prefixes; by default the whole index."
        ),
    ] = None,
    budget: Annotated[
        int, option("N", "Maximum tokens of all nodes together.", min=1)
    ] = OUTLINE_TOKENS,
    question: Annotated[
        str | None,
        option(
            "QUESTION", "Give more room to text that is similar to this question. None by default."
        ),
    ] = None,
    where: options.Where = None,
    as_json: options.AsJson = False,
) -> None:
    """Summarise the index, or a part of it, in its own sentences within a token budget."""
    from hierindex.respond.answer import outline_json
    from hierindex.retrieve.retrieval import outlined as outline_of
    from hierindex.store.filters import known_filters

    opened = hierindex.HierarchicalIndex.open(index)
    filters = known_filters(where, opened.table.snapshot())
    found = outline_of(opened.table, opened.encoder, budget, question, nodes or None, filters)
    print_result(outline_json(found), as_json, text.outlined)


def report(
    index: options.Index,
    to: Annotated[Path, option("FILE.html", "File to create.")],
    ask: Annotated[
        list[str] | None,
        option("QUESTION", "Question to answer in the report; may be repeated. None by default."),
    ] = None,
    max_mb: Annotated[
        float,
        option(
            "MB", "Maximum size; texts of the lowest levels are left out first.", min=0, max=10_000
        ),
    ] = REPORT_MB,
    as_json: options.AsJson = False,
) -> None:
    """Write one HTML file to read, print and explore offline: overview, answers, tree, sources."""
    opened = hierindex.HierarchicalIndex.open(index)
    max_bytes = round(max_mb * 1e6)
    written = hierindex.export.to_html(opened, to, ask=ask or (), max_bytes=max_bytes)
    print_result({"path": str(to), **written.to_json()}, as_json, text.report)


def export(
    form: Annotated[
        Literal["document-summary", "parquet", "json", "markdown", "svg"],
        argument(
            "FORMAT",
            "document-summary (a LlamaIndex index), parquet, json, markdown (a folder of "
            "pages) or svg (a picture).",
        ),
    ],
    index: options.Index,
    to: Annotated[
        Path,
        option(
            "PATH",
            "File to create; for document-summary and markdown, a folder, which markdown "
            "brings up to date.",
        ),
    ],
    force: Annotated[
        bool,
        flag("--force", "For markdown: overwrite files that were edited since the last export."),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Export the tree for other programs, or a picture of it."""
    if force and form != "markdown":
        raise InputError("--force is for markdown; the other formats overwrite nothing.")
    opened, exports = hierindex.HierarchicalIndex.open(index), hierindex.export
    if form == "markdown":
        written: dict[str, Any] = {**exports.to_markdown(opened, to, force=force)}
    else:
        writers = {
            "document-summary": exports.persist_document_summary_index,
            "parquet": exports.to_parquet,
            "json": exports.to_json,
            "svg": exports.to_svg,
        }
        written = {"nodes": writers[form](opened, to)}
    print_result({"format": form, "path": str(to), **written}, as_json, text.exported)


def verify(
    index: options.Index,
    repair: Annotated[
        bool, flag("--repair", "Recreate damaged search indices and delete a damaged cache.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Check the integrity of an index: files, links, texts, quotes, vectors, search indices.

    The exit status is 0 if all checks pass, 1 if one fails.
    """
    from hierindex.store.table import Table

    outcome = hierindex.HierarchicalIndex(Table.of(index)).verify(repair=repair)
    print_result(outcome.to_json(), as_json, text.verified)
    if not outcome.ok:
        raise typer.Exit(INVALID)


def generations(index: options.Index, as_json: options.AsJson = False) -> None:
    """List the generations (versions) of an index, and what each of them changed."""
    history = hierindex.HierarchicalIndex.open(index).table.history()
    print_result({"generations": history}, as_json, text.generations)


def rollback(
    index: options.Index,
    generation: Annotated[
        int | None, argument("N", "A generation; by default the one before the newest.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Return to an earlier generation: publish it as the newest one.

    The source files are not changed, so the next `hierindex update` reads
    them again and undoes the rollback.
    """
    table = hierindex.HierarchicalIndex.open(index).table
    with table.writing("rollback"):  # does not wait for another writer
        table.rollback(generation)
    made = table.history()[-1]
    print_result(made, as_json, lambda made: text.generations({"generations": [made]}))
