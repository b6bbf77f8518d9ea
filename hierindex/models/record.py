"""Calls to language models: tokens and usage, checks of answers, and records."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass, field
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel

from hierindex.errors import InputError, ModelError

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatResponse, CompletionResponse

    Response = CompletionResponse | ChatResponse

Tokenizer = Callable[[str], list[int]]
TOKENIZED_FOR = "gpt-3.5-turbo"  # the model whose tokenizer is LlamaIndex's default
TIKTOKEN_FOLDER = "TIKTOKEN_CACHE_DIR"
CUT = frozenset({"length", "max_tokens", "MAX_TOKENS"})  # OpenAI, Anthropic, Google


@dataclass(frozen=True)
class Usage:
    """Cost of summaries or answers.

    Attributes
    ----------
    llm_calls : int
        Requests sent, retries included.
    prompt_tokens, completion_tokens : int
    cached_summaries : int
        Summaries that were taken from the cache.
    fallbacks : int
        Summaries that a model failed to write, replaced by an extract.
    """

    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_summaries: int = 0
    fallbacks: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(sum, zip(astuple(self), astuple(other), strict=True)))


def check_said(model: str, calls: Sequence["Call"]) -> None:
    """Raise ModelError if all answers are empty or repeat their prompts.

    Parameters
    ----------
    model : str
        Subject of the message, for example "The model".
    calls : sequence of Call
    """
    answered = [call for call in calls if call.completion.strip()]
    if calls and not answered:
        raise ModelError(f"{model} answered nothing.")
    if answered and all(call.prompt.strip() in call.completion for call in answered):
        raise ModelError(f"{model} repeated what it was asked and answered nothing.")


def finish_reason(response: "Response") -> str | None:
    """Return the service's reason why the model stopped, or None if it gives none."""
    raw = response.raw
    choices = _get(raw, "choices")
    ends = choices[0] if choices else raw
    if choices and _get(_get(ends, "message"), "refusal"):
        return "refusal"
    reasons = (_get(ends, key) for key in ("finish_reason", "stop_reason", "done_reason"))
    return next((reason for reason in reasons if isinstance(reason, str)), None)


def _get(raw: Any, key: str) -> Any:
    return raw.get(key) if isinstance(raw, dict) else getattr(raw, key, None)


@dataclass(frozen=True)
class Call:
    """A request with its answer or error.

    `prompt` is the contents of its messages, joined by empty lines. `completion` includes the
    model's thoughts, unless they are in a separate field. Tokens are counted by the service if it
    reports them, otherwise by LlamaIndex's global tokenizer; they are 0 without an answer. (OpenAI
    reports them for a stream with `stream_options={"include_usage": True}`.)
    """

    prompt: str
    completion: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: str | None = None
    fault: str | None = None

    @classmethod
    def of(
        cls,
        prompt: str,
        response: "Response | None",
        fault: str | None = None,
        finish: str | None = None,
    ) -> Self:
        """Make the record of a call; for a stream, `response` is the last chunk."""
        if response is None:
            return cls(prompt, "", 0, 0, None, fault)
        completion, counts = text_of(response), _tokens(response)
        if not any(counts):
            counts = len(llm_tokenizer()(prompt)), len(llm_tokenizer()(completion))
        return cls(prompt, completion, *counts, finish_reason(response) or finish, fault)

    @property
    def usage(self) -> Usage:
        """Return the cost of the call."""
        return Usage(1, self.prompt_tokens, self.completion_tokens)


@dataclass
class Request:
    """A request in flight, and its response so far."""

    prompt: str
    response: Any = None
    finish: str | None = None  # of a stream, whose last chunk may be its usage
    goes_on: bool = False  # a stream with more chunks


@dataclass
class Calls:
    """The calls of a model, in the order of completion.

    Parameters
    ----------
    model : str
        Name to write to the file.
    path : Path, optional
        A file to append each call to as a line of JSON; see `start_record`.
    """

    model: str = ""
    path: Path | None = None
    made: list[Call] = field(default_factory=list)

    def add(self, call: Call) -> None:
        """Add a call and append it to the file."""
        self.made.append(call)
        if self.path is not None:
            line = json.dumps({"model": self.model, **asdict(call)}, ensure_ascii=False)
            with self.path.open("ab", buffering=0) as file:  # whole lines, also of several threads
                file.write(f"{line}\n".encode(errors="backslashreplace"))

    @property
    def usage(self) -> Usage:
        """Return the total cost."""
        return sum((call.usage for call in self.made), Usage())


def start_record(path: str | Path) -> Path:
    """Create a file for calls that only its owner may read, or keep an existing one.

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
    """Return the prompt or messages passed to a model's method as one text."""
    asked = args[0] if args else options.get("prompt", options.get("messages"))
    if "chat_history" in options:  # after tools
        asked = [*(options["chat_history"] or ()), *filter(None, [options.get("user_msg")])]
    if isinstance(asked, str):
        return asked
    texts = (said if isinstance(said, str) else said.content for said in asked or ())
    return "\n\n".join(text or "" for text in texts)


def _tokens(response: "Response") -> tuple[int, int]:
    """Return the service's counts of prompt and completion tokens, or zeros."""
    options = response.additional_kwargs
    if "prompt_tokens" in options:
        return options["prompt_tokens"], options.get("completion_tokens", 0)
    if not isinstance(response.raw, dict | BaseModel):
        return 0, 0
    from llama_index.core.callbacks.token_counting import get_tokens_from_response

    n_prompt, n_completion = get_tokens_from_response(response)
    return n_prompt or 0, n_completion or 0


def text_of(response: "Response") -> str:
    """Return the text of a response or, without text, the arguments of its tool calls."""
    from llama_index.core.base.llms.types import CompletionResponse, ToolCallBlock

    if isinstance(response, CompletionResponse):
        return response.text or ""
    called = (b.tool_kwargs for b in response.message.blocks if isinstance(b, ToolCallBlock))
    # As JSON, they are the answer of a structured request.
    given = (x if isinstance(x, str) else json.dumps(x, ensure_ascii=False) for x in called)
    return response.message.content or "\n".join(given)


def llm_tokenizer() -> Tokenizer:
    """Return LlamaIndex's global tokenizer.

    Before LlamaIndex is imported, which takes a second, it can only be the default.
    """
    if "llama_index.core" not in sys.modules and (default := _default_tokenizer()):
        return default
    from llama_index.core.utils import get_tokenizer

    return get_tokenizer()


@cache
def _default_tokenizer() -> Tokenizer | None:
    """Return LlamaIndex's default from its bundled file; None if the file is missing."""
    package = find_spec("llama_index.core")
    file = Path(package.origin if package and package.origin else "")
    folder = file.parent / "_static" / "tiktoken_cache"
    if not folder.is_dir():
        return None
    import tiktoken

    is_set = TIKTOKEN_FOLDER in os.environ
    os.environ.setdefault(TIKTOKEN_FOLDER, str(folder))
    try:
        encoding = tiktoken.encoding_for_model(TOKENIZED_FOR)
    finally:
        if not is_set:
            os.environ.pop(TIKTOKEN_FOLDER, None)
    return partial(encoding.encode, allowed_special="all")
