"""Arguments and options of the commands."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hierindex.cli.completion import completed
from hierindex.cli.flags import GROUPS
from hierindex.cli.output import print_note

if TYPE_CHECKING:
    from hierindex.store.connection import Connection

Command = Callable[..., None]


def _folder(index: str) -> str:
    """Return the place of an index; raise InputError if it can be none."""
    _connection(index)
    return index


def _existing(index: str) -> str:
    """Return the place of an index; raise InputError if it holds none."""
    _connection(index).require()
    return index


def _connection(index: str) -> "Connection":
    """Return what checks a place before anything that takes long is imported."""
    from hierindex.store.connection import TABLE, Connection

    return Connection(index, TABLE)


def _place(callback: Callable[[str], str]) -> Any:
    """Return the flag of an index."""
    return typer.Option(
        "--index",
        metavar="DIR",
        help="Folder of the index, or its URI in an object store.",
        callback=callback,
    )


Index = Annotated[str, _place(_existing)]
NewIndex = Annotated[str, _place(_folder)]
AsJson = Annotated[bool, typer.Option("--json", help="Print only a JSON object.")]
Purge = Annotated[
    bool, typer.Option("--purge", help="Remove earlier generations with what was changed.")
]
Timings = Annotated[
    bool,
    typer.Option("--timings", help="Print seconds by stage and level, and how nodes are grouped."),
]
Question = Annotated[str, typer.Argument(metavar="QUESTION", help="A question or a topic.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Metadata filter; also !=, <, <=, >, >=, ~ (contains). A summary matches if every "
        "chunk under it does. By default everything matches.",
    ),
]


def with_settings(names: str) -> Callable[[Command], Command]:
    """Give a command a flag for each named field of `Settings`.

    The flags take the place of the command's parameter `settings`, which gets the settings as
    loaded with these flags, or of its parameter `flags`, which gets those that are given.
    """
    flags = [
        _flag(title, name)
        for title, group in GROUPS.items()
        for name in group
        if name in names.split()
    ]

    def decorate(command: Command) -> Command:
        @wraps(command, assigned=("__name__", "__doc__"))
        def run(**arguments: Any) -> None:
            from hierindex.settings import flag_of, load_settings, misnamed_variables

            for sentence in misnamed_variables():
                print_note(f"note: {sentence}")
            given = {flag.name: arguments.pop(flag.name) for flag in flags}
            given = {name: value for name, value in given.items() if value is not None}
            if "flags" in of_command:
                command(**arguments, flags=given)
            else:
                command(**arguments, settings=load_settings(flag_of, **given))

        of_command = signature(command).parameters
        parameters = list[Parameter]()
        for parameter in of_command.values():
            parameters += flags if parameter.name in ("settings", "flags") else [parameter]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def _flag(title: str, name: str) -> Parameter:
    """Return the parameter from which typer makes the flag of a setting."""
    flag = GROUPS[title][name]
    kind: Any = flag.kind
    option = typer.Option(
        *flag.names,
        help=flag.help,
        metavar=flag.value or None,
        rich_help_panel=title,
        autocompletion=completed(name),
    )
    annotation = Annotated[kind | None, option]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
