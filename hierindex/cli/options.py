"""Arguments and options shared by several commands, and the flags of settings."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

from hierindex.cli.output import print_note
from hierindex.settings import (
    GROUPS,
    Help,
    flag_of,
    help_of,
    load_settings,
    misnamed_variables,
)

Function = Callable[..., None]

REPEATED = ("level",)  # flags that may be given several times


def argument(value: str, text: str) -> Any:
    """Declare an argument: the placeholder for its value, and its help."""
    return typer.Argument(metavar=value, help=text)


def option(value: str, text: str, *names: str, **more: Any) -> Any:
    """Declare an option: the placeholder for its value, its help, and limits such as `min`.

    It is named like its parameter, unless it has `names`.
    """
    return typer.Option(*names, metavar=value, help=text, **more)


def flag(name: str, text: str, *names: str) -> Any:
    """Declare an option without a value: its name, its help, and further names."""
    return typer.Option(name, *names, help=text)


def checked_index(index: str) -> str:
    """Return the address of an index; raise IndexNotFoundError if it does not exist."""
    from hierindex.store.connection import Connection

    Connection(index).require()
    return index


INDEX = "Folder of the index, or its URI in an object store."
Index = Annotated[  # checked before slow imports
    str, option("DIR", INDEX, callback=checked_index)
]
NewIndex = Annotated[str, option("DIR", INDEX)]
AsJson = Annotated[bool, flag("--json", "Print only a JSON object.")]
Purge = Annotated[
    bool, flag("--purge", "Also remove old generations, which hold the replaced text.")
]
Verbose = Annotated[
    bool,
    flag("--verbose", "Also print what was searched and why, and the nodes found.", "-v"),
]
Question = Annotated[str, argument("QUESTION", "A question or a topic.")]
Where = Annotated[
    list[str] | None,
    option(
        "KEY=VALUE",
        "Metadata filter; also !=, <, <=, >, >=, ~ (contains). May be repeated; all must "
        "match. A summary matches if all chunks under it do. None by default.",
    ),
]


def with_settings(names: str) -> Callable[[Function], Function]:
    """Give a command a flag for each named field of `Settings`.

    The flags replace the command's parameter `settings` or `flags`. `settings` receives the loaded
    settings with the given flags applied, `flags` only the given flags.
    """
    flags = [
        _flag(title, *declared)
        for title, group in GROUPS.items()
        for declared in help_of(group)
        if declared[0] in names.split()
    ]

    def decorate(command: Function) -> Function:
        @wraps(command, assigned=("__name__", "__doc__"))
        def run(**arguments: Any) -> None:
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


def _flag(title: str, name: str, kind: Any, said: Help) -> Parameter:
    """Return the parameter from which typer makes the flag of a setting.

    A flag accepts any text, because `load_settings` parses values and reports invalid ones.
    """
    taken: Any = bool if kind is bool else list[str] if name in REPEATED else str
    given = typer.Option(help=said.text, metavar=said.value or None, rich_help_panel=title)
    annotation = Annotated[taken | None, given]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
