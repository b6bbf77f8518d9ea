"""The calls of a language model, written down: in memory, and in a file for whoever asks for it."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from llama_index.core.base.llms.types import ChatResponse, CompletionResponse, ToolCallBlock
from llama_index.core.callbacks.token_counting import get_tokens_from_response
from llama_index.core.utils import get_tokenizer
from pydantic import BaseModel

from hierindex.errors import InputError
from hierindex.llm.checks import finish_reason
from hierindex.llm.usage import Usage

Response = CompletionResponse | ChatResponse


@dataclass(frozen=True)
class Call:
    """A request and its answer, or what was wrong with it.

    `prompt` joins the contents of its messages by an empty line. Tokens are the service's own
    counts where it gives them, else those of LlamaIndex's global tokenizer; a request without an
    answer has none. (Of a stream it gives them if it is asked to: OpenAI's
    `stream_options={"include_usage": True}`.)
    """

    prompt: str
    completion: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: str | None = None
    fault: str | None = None

    @classmethod
    def of(cls, prompt: str, response: Response | None, fault: str | None = None) -> Self:
        """The call of a prompt; of a stream, the response is its last piece."""
        if response is None:
            return cls(prompt, "", 0, 0, None, fault)
        completion, told = _text(response), _tokens(response)
        if not any(told):  # an empty answer has no tokens, and says so
            told = len(get_tokenizer()(prompt)), len(get_tokenizer()(completion))
        return cls(prompt, completion, *told, finish_reason(response), fault)

    @property
    def usage(self) -> Usage:
        """What it cost."""
        return Usage(1, self.prompt_tokens, self.completion_tokens)


@dataclass
class Request:
    """A prompt that was sent, what came back so far, and in the end the call."""

    prompt: str
    sent: float = 0.0  # as time.monotonic tells
    response: Any = None
    goes_on: bool = False  # a stream of which there is more
    refused: bool = False  # by an HTTP status: it cost nothing
    call: Call | None = None


@dataclass
class Calls:
    """The calls of a model, in the order of their ends.

    Parameters
    ----------
    model : str
        Its name, for the file.
    path : Path, optional
        A file to which each call is appended, as a line of JSON; see `start_record`.
    """

    model: str = ""
    path: Path | None = None
    made: list[Call] = field(default_factory=list)

    def add(self, call: Call) -> None:
        """Write a call down."""
        self.made.append(call)
        if self.path is not None:
            line = json.dumps({"model": self.model, **asdict(call)}, ensure_ascii=False)
            with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(line + "\n")

    @property
    def usage(self) -> Usage:
        """What they cost together."""
        return sum((call.usage for call in self.made), Usage())


def start_record(path: str | Path) -> Path:
    """A file for calls, for its user alone to read; what is there already stays.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    try:
        os.close(os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise InputError(f"The record {str(path)!r} cannot be written: {error}.") from error
    return Path(path)


def prompt_of(*args: Any, **options: Any) -> str:
    """What a model's method is asked, a prompt or messages, as one text."""
    asked = args[0] if args else options.get("prompt", options.get("messages"))
    if isinstance(asked, str):
        return asked
    return "\n\n".join(message.content or "" for message in asked or ())


def _tokens(response: Response) -> tuple[int, int]:
    """Of prompt and completion, as the service counts them; 0 and 0 where it does not."""
    told = response.additional_kwargs
    if "prompt_tokens" in told:
        return told["prompt_tokens"], told.get("completion_tokens", 0)
    if not isinstance(response.raw, dict | BaseModel):
        return 0, 0
    n_prompt, n_completion = get_tokens_from_response(response)
    return n_prompt or 0, n_completion or 0


def _text(response: Response) -> str:
    if isinstance(response, CompletionResponse):
        return response.text or ""
    called = (b for b in response.message.blocks if isinstance(b, ToolCallBlock))
    return response.message.content or "\n".join(map(_arguments, called))


def _arguments(call: ToolCallBlock) -> str:
    """What a tool is called with, as JSON: the answer of a model that fills in a form."""
    given = call.tool_kwargs
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
