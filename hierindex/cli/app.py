"""Entry point of the command line: runs a command and reports errors."""

import logging
import os
import sys
import warnings
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn, cast

import typer

from hierindex.cli import asking, building, looking, serving
from hierindex.cli.options import flag
from hierindex.cli.output import print_note
from hierindex.errors import HierindexError, InputError

NO_COMMAND, INTERRUPTED = 2, 130  # exit status; the latter by typer, after Ctrl-C
UsageError: Any = cast(Any, typer.BadParameter.__base__)  # click's, or that of typer's own copy
CONTINUED = ("build", "update", "demo")  # commands that go on from what an interrupted one kept
FIRST_STEPS = """\
Build an index of a folder, describe it, and ask a question:

    hierindex build docs --index my-index
    hierindex info --index my-index
    hierindex query "Why was the bridge closed?" --index my-index
"""
COMMANDS = {
    "Build and change": (building.build, building.update, building.watch, building.delete),
    "Ask": (asking.query, asking.chat, asking.compare),
    "Look": (
        *(looking.info, looking.tree, looking.show),
        *(looking.outline, looking.report, looking.export),
    ),
    "Serve": (serving.explore, serving.serve, serving.mcp),
    "Check and restore": (looking.verify, looking.generations, looking.rollback),
    "Try and measure": (building.demo, asking.evaluate),
}
app: typer.Typer = typer.Typer(name="hierindex", pretty_exceptions_enable=False)
for _panel, _commands in COMMANDS.items():
    for _command in _commands:
        app.command(rich_help_panel=_panel)(_command)


@app.callback(invoke_without_command=True, epilog=FIRST_STEPS)
def program(
    context: typer.Context,
    version: Annotated[bool, flag("--version", "Print the version of hierindex.")] = False,
) -> None:
    """Build trees of summaries over documents, and query them at any level."""
    if version:
        from hierindex import __version__

        typer.echo(f"hierindex {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(NO_COMMAND)


def main() -> NoReturn:
    """Run a command; print an error as one sentence on standard error and set the exit status."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    warnings.showwarning = _notice
    os.environ.setdefault("LANCEDB_LOG", "error")  # its warnings are of damage, which we report
    logger = logging.getLogger("hierindex")
    logger.handlers = [_Notes()]
    logger.setLevel(logging.INFO)
    try:
        status = app(standalone_mode=False, prog_name="hierindex") or 0
        if status == INTERRUPTED:
            command = "".join(sys.argv[1:2])
            kept = f", and the next {command} reuses what was read, embedded and written"
            kept = kept if command in CONTINUED else ""
            print_note(f"Interrupted; nothing unfinished was published{kept}.")
    except UsageError as error:
        status = error.exit_code
        command = error.ctx.command_path if error.ctx else "hierindex"
        print_note(f"{_said(error).rstrip('.?')}; see `{command} --help`.")
    except HierindexError as error:
        status = error.exit_status
        print_note(str(error))
    except Exception as error:  # noqa: BLE001  # no tracebacks for users
        from hierindex.store.connection import damage

        status = 1
        print_note(str(damage(error) or f"{type(error).__name__}: {error}"))
    sys.exit(status)


def _said(error: Any) -> str:
    """Return a usage error in our words, if pydantic found it for typer, or else in typer's."""
    from pydantic import ValidationError

    if not isinstance(error.__cause__, ValidationError):
        return str(error.format_message())
    of = error.param
    name = of.opts[0] if of.param_type_name == "option" else of.metavar
    return str(InputError.of_field(error.__cause__, lambda _: name))


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
