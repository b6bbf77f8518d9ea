"""Entry point of the command line: runs a command and reports errors."""

import logging
import sys
import warnings
from typing import Any, cast

import typer

from hierindex.cli.agents import mcp
from hierindex.cli.asking import compare, query
from hierindex.cli.building import build, demo
from hierindex.cli.chatting import chat
from hierindex.cli.evaluating import evaluate
from hierindex.cli.exploring import explore, report
from hierindex.cli.generations import generations, rollback
from hierindex.cli.looking import export, info, outline, show, tree
from hierindex.cli.output import escape_unencodable, print_note
from hierindex.cli.serving import serve
from hierindex.cli.updating import delete, update
from hierindex.cli.verifying import verify
from hierindex.cli.watching import watch
from hierindex.errors import HierindexError

INTERRUPTED = 130  # typer's exit status after Ctrl-C
USAGE = cast(Any, typer.BadParameter.__base__)  # click's UsageError, or that of typer's own copy

app = typer.Typer(
    name="hierindex",
    help="Build trees of summaries over documents, and query them at any level.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
CHANGING, ASKING = (build, update, watch, delete), (query, chat, compare)
LOOKING = (info, tree, show, outline, explore, report, export)
SERVING = (serve, mcp)
STATES = (verify, generations, rollback)
for command in (*CHANGING, *ASKING, *LOOKING, *SERVING, *STATES, evaluate, demo):
    app.command()(command)


def main() -> None:
    """Run a command; print an error as one sentence on standard error and set the exit status."""
    escape_unencodable()
    warnings.showwarning = _notice
    logger = logging.getLogger("hierindex")
    logger.handlers = [_Notes()]
    logger.setLevel(logging.INFO)
    try:
        status = app(standalone_mode=False) or 0
        if status == INTERRUPTED:
            print_note("Interrupted; the index is unchanged, the next build reuses finished work.")
    except HierindexError as error:
        status = error.exit_status
        print_note(str(error))
    except USAGE as error:
        status = error.exit_code
        if message := error.format_message():  # empty if help was printed
            print_note(f"{message} (see `{error.ctx.command_path} --help`).")
    except Exception as error:  # noqa: BLE001  # no tracebacks for users
        from hierindex.store.damage import damage

        status = 1
        print_note(str(damage(error) or f"{type(error).__name__}: {error}"))
    sys.exit(status)


class _Notes(logging.Handler):
    """A handler that prints each distinct log message once."""

    def __init__(self) -> None:
        super().__init__()
        self._printed = set[str]()

    def emit(self, record: logging.LogRecord) -> None:
        note = record.getMessage()
        if note not in self._printed:
            self._printed.add(note)
            print_note(f"note: {note}")


def _notice(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print warnings of hierindex as notes, and drop those of other libraries."""
    if category.__module__.startswith("hierindex"):
        print_note(f"note: {message}")


if __name__ == "__main__":
    main()
