"""The command that checks an index."""

import os
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from hierindex.cli import options
from hierindex.cli.output import print_result

INVALID = 1  # exit status if a check does not hold


def verify(
    index: options.Index,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Repair what needs no model: search indices and the cache.",
        ),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Check that an index is whole: its files, links, texts, quotes, vectors and indices.

    The exit status is 0 if all checks hold, 1 if one does not.
    """
    os.environ.setdefault("LANCEDB_LOG", "error")  # its warnings of damaged files are reported
    from hierindex.store.vector_store import HierarchyStore
    from hierindex.verify.verify import verify as check

    outcome = check(HierarchyStore(index), repair=repair)
    print_result(outcome.to_json(), as_json, verified)
    if not outcome.ok:
        raise typer.Exit(INVALID)


def verified(outcome: dict[str, Any]) -> str:
    """Format the outcome of a verification: a table of checks, problems and what to do."""
    from hierindex.cli.numbers import counted
    from hierindex.cli.text import table

    rows = [(check["name"], check["checked"], check["count"]) for check in outcome["checks"]]
    parts = [table(("check", "checked", "problems"), rows), *_problems(outcome["checks"])]
    if outcome["ok"]:
        parts.append(f"All checks of {counted(outcome['nodes'], 'node')} hold.")
    parts += [*outcome["repaired"], *outcome["left"]]
    return "\n\n".join(parts)


def _problems(checks: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the problems of each check that does not hold."""
    for check in checks:
        lines = [": ".join(filter(None, (p["where"], p["what"]))) for p in check["problems"]]
        if more := check["count"] - len(lines):
            lines.append(f"and {more:,} more")
        if lines:
            yield "\n".join([f"{check['name']}:", *(f"  {line}" for line in lines)])
