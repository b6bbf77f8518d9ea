"""The command line: commands that parse, call the library once and print; errors as sentences."""

import logging
import sys
import warnings
from typing import Any, cast

import typer

from hierindex.cli.asking import compare, query
from hierindex.cli.building import build, demo
from hierindex.cli.looking import export, info, show
from hierindex.cli.output import print_note
from hierindex.errors import HierindexError

INTERRUPTED = 130  # typer's exit status after Ctrl-C
USAGE = cast(Any, typer.BadParameter.__base__)  # click's UsageError, or that of typer's own copy

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
        status = app(standalone_mode=False) or 0
        if status == INTERRUPTED:
            print_note("Interrupted; an index is as it was, and a build goes on where it was.")
    except HierindexError as error:
        status = error.exit_status
        print_note(str(error))
    except USAGE as error:
        status = error.exit_code
        if said := error.format_message():  # empty where the help is printed instead
            print_note(f"{said} (see `{error.ctx.command_path} --help`).")
    except Exception as error:  # noqa: BLE001  # the one place where any error becomes a sentence
        status = 1
        print_note(f"{type(error).__name__}: {error}")
    sys.exit(status)


class _Notes(logging.Handler):
    """Prints what the library logs as notices, each once."""

    def __init__(self) -> None:
        super().__init__()
        self._said = set[str]()

    def emit(self, record: logging.LogRecord) -> None:
        note = record.getMessage()
        if note not in self._said:
            self._said.add(note)
            print_note(f"note: {note}")


def _notice(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print our own warnings as notices; those of libraries are not for a command's user."""
    if category.__module__.startswith("hierindex"):
        print_note(f"note: {message}")


if __name__ == "__main__":
    main()
