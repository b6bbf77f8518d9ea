"""Commands that describe or export an index."""

from typing import Annotated

import typer

from hierindex.cli import options
from hierindex.cli.output import print_result
from hierindex.errors import InputError


def info(index: options.Index, as_json: options.AsJson = False) -> None:
    """Print the levels, numbers of nodes and models of an index."""
    from hierindex.cli.text import described
    from hierindex.index import HierarchicalIndex

    print_result(HierarchicalIndex.open(index).info(), as_json, described)


def show(
    node: Annotated[str, typer.Argument(metavar="NODE", help="A node id, or a prefix of it.")],
    index: options.Index,
    as_json: options.AsJson = False,
) -> None:
    """Print the text, parents, children and sources of a node."""
    from hierindex.cli.text import node_shown
    from hierindex.index import HierarchicalIndex

    print_result(HierarchicalIndex.open(index).describe(node), as_json, node_shown)


def export(
    form: options.Form,
    index: options.Index,
    to: options.To,
    as_json: options.AsJson = False,
) -> None:
    """Export the tree for other programs."""
    from hierindex.cli.export import WRITERS
    from hierindex.cli.text import exported
    from hierindex.index import HierarchicalIndex

    if form not in WRITERS:
        raise InputError(f"FORMAT must be one of {', '.join(WRITERS)}, got {form!r}.")
    n_nodes = WRITERS[form](HierarchicalIndex.open(index), to)
    print_result({"format": form, "path": str(to), "nodes": n_nodes}, as_json, exported)
