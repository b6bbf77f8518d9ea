"""Entry point of the command line: runs a command and reports errors."""

import gc
import logging
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, NoReturn

import typer

from hierindex.cli.agents import mcp
from hierindex.cli.asking import compare, query
from hierindex.cli.building import build, demo
from hierindex.cli.chatting import chat
from hierindex.cli.command import Command, Group
from hierindex.cli.evaluating import evaluate
from hierindex.cli.examples import EXAMPLES, PROGRAM, shown
from hierindex.cli.exploring import explore, report
from hierindex.cli.generations import generations, rollback
from hierindex.cli.initializing import init
from hierindex.cli.looking import export, info, outline, show, tree
from hierindex.cli.output import escape_unencodable, print_note
from hierindex.cli.serving import serve
from hierindex.cli.updating import delete, update
from hierindex.cli.verifying import verify
from hierindex.cli.watching import watch
from hierindex.errors import HierindexError

NO_COMMAND = 2  # exit status
COLLECT_AFTER = 100_000  # new objects; at 700, a tenth of a command's time is spent in vain
LIBRARIES = ("llama-index-core", "lancedb", "openvino", "torch", "typer")
ABOUT = """\
Build trees of summaries over documents, and query them at any level.

`hierindex COMMAND --help` has the options of a command, and examples.
"""
COMMANDS = {
    "Build and change": (init, build, update, watch, delete),
    "Ask": (query, chat, compare),
    "Look": (info, tree, show, outline, report, export),
    "Serve": (explore, serve, mcp),
    "Check and restore": (verify, generations, rollback),
    "Try and measure": (demo, evaluate),
}
app = typer.Typer(
    name="hierindex",
    cls=Group,
    rich_markup_mode=None,  # its pages take a third of the time of a command to import
    pretty_exceptions_enable=False,
)
for panel, commands in COMMANDS.items():
    for command in commands:
        epilog = shown(EXAMPLES[command.__name__])
        app.command(cls=Command, rich_help_panel=panel, epilog=epilog)(command)


@app.callback(invoke_without_command=True, help=ABOUT, epilog=shown(PROGRAM))
def program(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the versions of hierindex and what it uses.")
    ] = False,
) -> None:
    """Print versions, or the help page if no command is named."""
    if version:
        typer.echo(versions())
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(NO_COMMAND)


def versions() -> str:
    """Return the versions of hierindex, of Python, and of the libraries that matter most."""
    from importlib.metadata import version
    from platform import python_version

    from hierindex import __version__

    lines = [f"hierindex {__version__}", f"Python {python_version()}"]
    return "\n".join([*lines, *(f"{name} {version(name)}" for name in LIBRARIES)])


@cache
def command_line() -> Callable[..., Any]:
    """Return what parses and runs commands; making it takes 0.015 s."""
    return typer.main.get_command(app)


def main() -> NoReturn:
    """Run a command; print an error as one sentence on standard error and set the exit status."""
    escape_unencodable()
    warnings.showwarning = _notice
    logger = logging.getLogger("hierindex")
    logger.handlers = [_Notes()]
    logger.setLevel(logging.INFO)
    try:
        status = command_line()(standalone_mode=False, prog_name="hierindex") or 0
    except HierindexError as error:
        status = error.exit_status
        print_note(str(error))
    except Exception as error:  # noqa: BLE001  # no tracebacks for users
        from hierindex.store.damage import damage

        status = 1
        print_note(str(damage(error) or f"{type(error).__name__}: {error}"))
    sys.exit(status)


def run() -> NoReturn:
    """Run a command in a process of its own, which ends as soon as its result is printed.

    Python would free each object of each module, which takes up to a second, and it cannot end a
    thread that works on in vain in native code.
    """
    gc.set_threshold(COLLECT_AFTER)
    try:
        main()
    except SystemExit as end:
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):  # it is closed
                stream.flush()
        os._exit(int(end.code or 0))


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
    run()
