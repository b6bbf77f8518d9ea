"""Values of options that a shell completes."""

from collections.abc import Callable
from typing import Any, get_args


def completed(setting: str) -> Callable[[], list[str]]:
    """Return a function that returns the words that a setting may have, if these are few."""

    def words() -> list[str]:
        from hierindex.settings import Settings

        match setting:
            case "response_mode":
                from hierindex.respond.engine import MODES

                return MODES
            case "prompt":
                from hierindex.summarize.prompts import PROMPTS

                return [*PROMPTS]
            case "summarizer":
                return ["extractive"]
        return list(dict.fromkeys(_words(Settings.model_fields[setting].annotation)))

    return words


def _words(annotation: Any) -> list[str]:
    """Return the words among the arguments of a type."""
    if isinstance(annotation, str):
        return [annotation]
    return [word for inner in get_args(annotation) for word in _words(inner)]
