"""The command line: commands that parse, call the library once and print; errors as sentences."""

import logging
import sys
import warnings
from typing import Any

import typer

from hierindex.cli.asking import compare, query
from hierindex.cli.building import build, demo
from hierindex.cli.looking import export, info, show
from hierindex.errors import HierindexError

INTERRUPTED = 130  # typer's exit status after Ctrl-C

app = typer.Typer(
    name="hierindex",
    help="Turn documents into a tree of summaries and ask it at any level.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (build, query, compare, info, show, export, demo):
    app.command()(command)


def main() -> None:
    """Run a command; an error is one sentence on standard error and an exit status."""
    warnings.showwarning = _notice
    logger = logging.getLogger("hierindex")
    logger.handlers = [_Notes()]
    logger.setLevel(logging.INFO)
    try:
        app()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _fail("Interrupted; an index is as it was, and a build goes on where it was.", end.code)
        raise
    except HierindexError as error:
        _fail(str(error), error.exit_status)
    except Exception as error:  # noqa: BLE001  # the one place where any error becomes a sentence
        _fail(f"{type(error).__name__}: {error}", 1)


def _fail(sentence: str, status: int) -> None:
    typer.echo(f"hierindex: {' '.join(sentence.split())}", err=True)
    sys.exit(status)


class _Notes(logging.Handler):
    """Prints what the library logs as notices."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(f"hierindex: note: {record.getMessage()}", err=True)


def _notice(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print our own warnings as notices; those of libraries are not for a command's user."""
    if category.__module__.startswith("hierindex"):
        typer.echo(f"hierindex: note: {message}", err=True)


if __name__ == "__main__":
    main()
