"""Commands that check an index, list its generations and return to an earlier one."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import typer

from hierindex.cli import options
from hierindex.cli.output import print_result
from hierindex.cli.text import table
from hierindex.text.display import counted

INVALID = 1  # exit status if a check does not hold


def verify(
    index: options.Index,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Recreate damaged search indices and delete a damaged cache.",
        ),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Check the integrity of an index: files, links, texts, quotes, vectors, search indices.

    The exit status is 0 if all checks pass, 1 if one fails.
    """
    from hierindex.store.table import Table
    from hierindex.verify import verify as check

    outcome = check(Table.of(index), repair=repair)
    print_result(outcome.to_json(), as_json, verified)
    if not outcome.ok:
        raise typer.Exit(INVALID)


def verified(outcome: dict[str, Any]) -> str:
    """Format the result of a verification: a table of checks, problems, and advice."""
    rows = [(check["name"], check["checked"], check["count"]) for check in outcome["checks"]]
    parts = [table(("check", "checked", "problems"), rows), *_problems(outcome["checks"])]
    if outcome["ok"]:
        parts.append(f"All checks of {counted(outcome['nodes'], 'node')} hold.")
    parts += [*outcome["repaired"], *outcome["left"]]
    return "\n\n".join(parts)


def _problems(checks: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the problems of each failed check."""
    for check in checks:
        lines = [": ".join(filter(None, (p["where"], p["what"]))) for p in check["problems"]]
        if more := check["count"] - len(lines):
            lines.append(f"and {more:,} more")
        if lines:
            yield "\n".join([f"{check['name']}:", *(f"  {line}" for line in lines)])


def generations(index: options.Index, as_json: options.AsJson = False) -> None:
    """List the generations (versions) of an index, and what each of them changed."""
    from hierindex.store.table import Table

    table = Table.of(index)
    table.snapshot().require()
    print_result({"generations": table.history()}, as_json, listed)


def rollback(
    index: options.Index,
    generation: Annotated[
        int | None,
        typer.Argument(metavar="N", help="A generation; by default the one before the newest."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Return to an earlier generation: publish it as the newest one.

    The source files are not changed, so the next `hierindex update` reads
    them again and undoes the rollback.
    """
    from hierindex.store.table import Table

    table = Table.of(index)
    table.snapshot().require()
    with table.writing("rollback"):  # does not wait for another writer
        table.rollback(generation)
    print_result(table.history()[-1], as_json, lambda made: listed({"generations": [made]}))


def listed(held: dict[str, Any]) -> str:
    """Format generations as a table, the oldest first."""
    head = ("generation", "published", "documents", "levels", "nodes")
    rows = (
        (
            str(each["generation"]),
            f"{datetime.fromisoformat(each['time']).astimezone():%Y-%m-%d %H:%M}",
            *(each[count] for count in head[2:]),
            _changes(each),
        )
        for each in held["generations"]
    )
    return table((*head, "written by"), rows)


def _changes(generation: dict[str, Any]) -> str:
    """Return the kind of a write, and the numbers of its changes."""
    what, changes = str(generation["what"]), generation["changes"]
    if "generation" in changes:
        return f"{what} to generation {changes['generation']}"
    counts = ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in changes.items() if n)
    return f"{what}: {counts}" if counts else what
