"""Every prompt and what was answered, in a file, for whoever asks for it."""

import json
import os
from pathlib import Path

from llama_index.core.base.llms.types import CompletionResponse

from hierindex.errors import InputError
from hierindex.summarize.output import finish_reason
from hierindex.summarize.summary import Usage


class Transcript:
    """Appends a line of JSON for each request, its failure or its answer; the user's alone to read.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    InputError
        If the file cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            os.close(os.open(self.path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600))
        except OSError as error:
            raise InputError(f"The record {str(path)!r} cannot be written: {error}.") from error

    def add(
        self,
        model: str,
        prompt: str,
        response: CompletionResponse | None,
        usage: Usage,
        fault: str | None,
    ) -> None:
        """One request: what was answered, if it was, and what was wrong with that, if it was."""
        line = {
            "model": model,
            "prompt": prompt,
            "completion": None if response is None else response.text,
            "finish_reason": None if response is None else finish_reason(response),
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "fault": fault,
        }
        with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
