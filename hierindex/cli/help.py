"""Help pages as plain text: usage, what a command does, its options in groups, and examples."""

from collections.abc import Iterable, Iterator
from shutil import get_terminal_size
from textwrap import fill, indent
from typing import Any

WIDTH = 80
NAMES = 26  # columns for the names of options

Rows = dict[str, list[tuple[str, str]]]
"""Names and what they do, by the title of their group."""


def page(command: Any, ctx: Any, *tables: Rows) -> str:
    """Return the help page of a command, each of whose tables has a margin of its own."""
    width = min(WIDTH, get_terminal_size().columns)
    about = (fill(" ".join(each.split()), width) for each in (command.help or "").split("\n\n"))
    parts = [f"Usage: {usage(command, ctx)}", *about]
    for groups in tables:
        names = min(NAMES, max(len(name) for rows in groups.values() for name, _ in rows))
        for title, rows in groups.items():
            parts.append("\n".join([f"{title}:", *_lines(rows, names, width)]))
    if command.epilog:
        parts.append(f"Examples:\n{indent(command.epilog, '  ')}")
    return "\n\n".join(parts) + "\n"


def usage(command: Any, ctx: Any) -> str:
    """Return a command with its arguments and the options that it needs."""
    if hasattr(command, "commands"):
        return f"{ctx.command_path} COMMAND ..."
    parameters = command.get_params(ctx)
    arguments = [name_of(each) for each in parameters if _is_argument(each)]
    needed = [name_of(each) for each in parameters if each.required and not _is_argument(each)]
    return " ".join([ctx.command_path, *arguments, *needed, "[OPTIONS]"])


def grouped(parameters: Iterable[Any]) -> Rows:
    """Return the arguments and options of a command."""
    rows: Rows = {}
    for each in sorted(parameters, key=_is_argument, reverse=True):
        title = getattr(each, "rich_help_panel", None)
        title = title or ("Arguments" if _is_argument(each) else "Options")
        rows.setdefault(title, []).append((name_of(each), _help(each)))
    return rows


def name_of(parameter: Any) -> str:
    """Return how an argument or an option is written."""
    value = str(parameter.metavar or parameter.name.upper())
    if _is_argument(parameter):
        return value
    if parameter.is_flag:
        return "/".join([*parameter.opts, *parameter.secondary_opts])
    return f"{parameter.opts[0]} {value}"


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _help(parameter: Any) -> str:
    """Return the help of a parameter, with its default if that is not in it."""
    text, default = parameter.help or "", parameter.default
    if default in (None, False, ()) or parameter.required or "default" in text:
        return text
    return f"{text} By default {parameter.opts[0] if default is True else default}."


def _lines(rows: Iterable[tuple[str, str]], names: int, width: int) -> Iterator[str]:
    """Yield names with texts beside them, or below them if a name is long."""
    margin = " " * (names + 4)
    for name, text in rows:
        block = fill(f"{margin}{text}", width, subsequent_indent=margin, break_on_hyphens=False)
        if len(name) > names:
            yield f"  {name}"
        else:
            block = f"  {name}".ljust(len(margin)) + block[len(margin) :]
        yield block.rstrip()
