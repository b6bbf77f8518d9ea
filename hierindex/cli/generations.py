"""Commands that list the generations of an index, and return to an earlier one."""

from datetime import datetime
from typing import Annotated, Any

import typer

from hierindex.cli import options
from hierindex.cli.output import print_result


def generations(index: options.Index, as_json: options.AsJson = False) -> None:
    """Print the generations of an index that are kept, and what each write changed."""
    from hierindex.store.vector_store import HierarchyStore

    store = HierarchyStore(index)
    store.snapshot().require()
    print_result({"generations": store.generations()}, as_json, listed)


def rollback(
    index: options.Index,
    generation: Annotated[
        int | None,
        typer.Argument(metavar="[N]", help="A generation; by default the one before the newest."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Publish an earlier generation of an index as its newest one.

    Files are not touched, so the next `hierindex update` reads them again and undoes this.
    """
    from hierindex.indexing.changes import difference
    from hierindex.store.vector_store import HierarchyStore

    store = HierarchyStore(index)
    store.snapshot().require()
    with store.writing("rollback"):
        before = store.snapshot()
        store.rollback(generation)
        made = store.generations()[-1] | difference(before, store.snapshot())
    print_result(made, as_json, _rolled_back)


def listed(held: dict[str, Any]) -> str:
    """Format generations as a table, the oldest first."""
    from hierindex.cli.text import beside, table

    head = ("generation", "published", "documents", "levels", "nodes")
    rows = (
        (
            str(each["generation"]),
            f"{datetime.fromisoformat(each['time']).astimezone():%Y-%m-%d %H:%M}",
            *(each[count] for count in head[2:]),
        )
        for each in held["generations"]
    )
    return beside(table(head, rows), "written by", map(_changes, held["generations"]))


def _rolled_back(made: dict[str, Any]) -> str:
    """Format a generation, and how its documents and sources differ from those before."""
    from hierindex.cli.text import changed

    names, sources = changed(made["names"]), changed(made["sources"], " sources")
    return "\n".join([listed({"generations": [made]}), *names, *sources])


def _changes(generation: dict[str, Any]) -> str:
    """Return the kind of a write, and the numbers of what it changed."""
    what, changes = str(generation["what"]), generation["changes"]
    if "generation" in changes:
        return f"{what} to generation {changes['generation']}"
    counts = ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in changes.items() if n)
    return f"{what}: {counts}" if counts else what
