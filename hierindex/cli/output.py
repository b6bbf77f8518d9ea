"""What a command found, as JSON or for people."""

import json
from collections.abc import Callable
from typing import Any

import typer


def print_result(
    result: dict[str, Any], as_json: bool, text: Callable[[dict[str, Any]], str]
) -> None:
    """Print a result as one JSON object, or as the text that is made of it."""
    typer.echo(json.dumps(result, ensure_ascii=False, indent=2) if as_json else text(result))
