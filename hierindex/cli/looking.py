"""Commands that say what an index holds, or hand it on."""

from typing import Annotated

import typer

from hierindex.cli import options
from hierindex.cli.output import print_result
from hierindex.errors import InputError


def info(index: options.Index, as_json: options.AsJson = False) -> None:
    """Say what an index holds: levels, nodes, models."""
    from hierindex.cli.text import described
    from hierindex.index import HierarchicalIndex

    print_result(HierarchicalIndex.open(index).info(), as_json, described)


def show(
    node: Annotated[str, typer.Argument(metavar="NODE", help="An id or its beginning.")],
    index: options.Index,
    as_json: options.AsJson = False,
) -> None:
    """Show a node: its text, its parents and children, where its text stands."""
    from hierindex.cli.text import node_shown
    from hierindex.index import HierarchicalIndex

    print_result(HierarchicalIndex.open(index).describe(node), as_json, node_shown)


def export(
    form: options.Form,
    index: options.Index,
    to: options.To,
    as_json: options.AsJson = False,
) -> None:
    """Write the tree in a form that other programs read."""
    from hierindex.cli.export import WRITERS
    from hierindex.cli.text import exported
    from hierindex.index import HierarchicalIndex

    if form not in WRITERS:
        raise InputError(f"FORMAT must be one of {', '.join(WRITERS)}, got {form!r}.")
    n_nodes = WRITERS[form](HierarchicalIndex.open(index), to)
    print_result({"format": form, "path": str(to), "nodes": n_nodes}, as_json, exported)
