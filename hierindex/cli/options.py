"""Arguments and options of the commands."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from hierindex.settings import Settings, load_settings

Command = Callable[..., None]

Index = Annotated[Path, typer.Option("--index", help="Folder of the index.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print only a JSON object.")]
Question = Annotated[str, typer.Argument(metavar="QUESTION")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Metadata filter; also !=, <, <=, >, >=, ~ (contains). A summary matches if every "
        "chunk under it does.",
    ),
]

DECLARATIONS = {
    "whole_documents": "--whole-documents/--best-chunks",
    "partial_summaries": "--partial-summaries/--whole-summaries",
}
METAVARS = {"llm_record": "FILE", "prompt": "NAME|FILE", "grounding": "NAME"}


def with_settings(names: str) -> Callable[[Command], Command]:
    """Give a command a flag for each named field of `Settings`.

    The flags take the place of the command's parameter `settings`, which gets the settings as
    loaded with these flags.
    """
    flags = [_flag(name) for name in names.split()]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**arguments: Any) -> None:
            given = {flag.name: arguments.pop(flag.name) for flag in flags}
            command(**arguments, settings=load_settings(**given))

        parameters = list[Parameter]()
        for parameter in signature(command).parameters.values():
            parameters += flags if parameter.name == "settings" else [parameter]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def _flag(name: str) -> Parameter:
    """Return the parameter from which typer makes the flag of a setting."""
    field = Settings.model_fields[name]
    kind = list[int] if name == "level" else field.annotation
    declared = [DECLARATIONS[name]] if name in DECLARATIONS else []
    option = typer.Option(*declared, help=field.description, metavar=METAVARS.get(name))
    annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
