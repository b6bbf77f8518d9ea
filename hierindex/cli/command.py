"""Commands with plain help pages, whose errors are sentences, and which Ctrl-C ends with one."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from hierindex.cli.help import Rows, grouped, name_of, page, usage
from hierindex.cli.output import print_note
from hierindex.cli.stopping import INTERRUPTED, kept_by
from hierindex.errors import InputError, nearest, requirement

USAGE = cast(Any, typer.BadParameter.__base__)  # click's UsageError, or that of typer's own copy


class Command(TyperCommand):
    """A command of hierindex."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help page."""
        formatter.write(page(self, ctx, grouped(self.get_params(ctx))))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; raise InputError if one is wrong."""
        _set_off([self.get_help_option(ctx)])
        with _errors_as_sentences(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; after Ctrl-C, say what is kept."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print_note(f"Interrupted; {kept_by(str(self.name))}")
            raise typer.Exit(INTERRUPTED) from None


class Group(TyperGroup):
    """The program, whose help page lists its commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help page."""
        rows: Rows = {}
        for name, command in self.commands.items():
            about = (command.help or "").partition("\n\n")[0]
            rows.setdefault(cast(Any, command).rich_help_panel, []).append((name, about))
        formatter.write(page(self, ctx, rows, grouped(self.get_params(ctx))))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments before a command; raise InputError if one is wrong."""
        _set_off(self.get_params(ctx))
        with _errors_as_sentences(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of a name; raise InputError if there is none."""
        if args[0] not in self.commands and not ctx.resilient_parsing:
            raise InputError(
                f"There is no command {args[0]!r}{nearest(args[0], self.commands)}; "
                f"`{ctx.command_path} --help` lists all commands."
            )
        return super().resolve_command(ctx, args)


def _set_off(options: Iterable[Any]) -> None:
    """Set the default of typer's own switches, as it imports pydantic to convert None to a bool."""
    for option in options:
        if option.is_flag and option.default is None:
            option.default = False


@contextmanager
def _errors_as_sentences(ctx: Any) -> Iterator[None]:
    try:
        yield
    except USAGE as error:
        what, how = _problem(error, ctx), f"see `{ctx.command_path} --help`"
        if hasattr(error, "param_type"):  # of a missing argument
            how = f"the usage is `{usage(ctx.command, ctx)}`"
        raise InputError(f"{what}; {how}.") from None


def _problem(error: Any, ctx: Any) -> str:
    """Return what is wrong with a command line."""
    parameter: Any = getattr(error, "param", None)
    option: Any = getattr(error, "option_name", None)
    if hasattr(error, "possibilities"):
        parameters = ctx.command.get_params(ctx)
        known = [name for each in parameters for name in (*each.opts, *each.secondary_opts)]
        return f"There is no option {option}{nearest(option, known)}"
    if option is not None:
        return f"{option} " + ("takes no value" if "not take" in error.message else "needs a value")
    if parameter is None:  # too many arguments, which are in brackets
        extra = error.message.rpartition("(")[2].rstrip(").")
        return f"Too many arguments: {extra!r}; put quotes around a text of several words"
    name = name_of(parameter).strip("[]")
    if hasattr(error, "param_type"):
        return f"{name} is missing"
    message = error.message.rstrip(".")
    if errors := getattr(error.__cause__, "errors", None):  # of pydantic
        message = requirement(errors()[0])
    return f"{name.split()[0]} is invalid: {message[0].lower()}{message[1:]}"
