"""What a language model is asked, and what it answers, written down."""

import json
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    ToolCallBlock,
)
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.callbacks.token_counting import get_tokens_from_response
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.utils import get_tokenizer

from hierindex.llm import service_errors
from hierindex.summarize.summary import Usage


@dataclass(frozen=True)
class Call:
    """A request and its answer.

    `prompt` joins the contents of its messages by an empty line. Tokens are the service's own
    counts where it gives them, else those of LlamaIndex's global tokenizer. (Of a stream it gives
    them if it is asked to: OpenAI's `stream_options={"include_usage": True}`.)
    """

    prompt: str
    completion: str
    prompt_tokens: int
    completion_tokens: int


@dataclass
class Calls:
    """The calls for one question, in the order of their ends."""

    made: list[Call] = field(default_factory=list)

    @property
    def usage(self) -> Usage:
        """What they cost together."""
        return Usage(
            llm_calls=len(self.made),
            prompt_tokens=sum(call.prompt_tokens for call in self.made),
            completion_tokens=sum(call.completion_tokens for call in self.made),
        )

    def of(self, llm: LLM) -> LLM:
        """The model, as a copy whose calls are written down here; handlers of its own stay."""
        if isinstance(llm, StructuredLLM):  # what is sent and paid is what is asked within
            return llm.model_copy(update={"llm": self.of(llm.llm)})
        make_client(llm, "_get_client")
        manager = CallbackManager()  # which adds LlamaIndex's global handler, as the model's has
        manager.handlers = [*llm.callback_manager.handlers, _Recorder(self.made)]
        return llm.model_copy(update={"callback_manager": manager})


def make_client(llm: LLM, how: Literal["_get_client", "_get_aclient"]) -> None:
    """Make the HTTP client that OpenAI's models make when they are first asked.

    Copies made before would each make their own: a tenth of a second, and a new connection. Why
    there can be none is said when the model is asked.
    """
    if getattr(llm, "reuse_client", False) and hasattr(llm, how):
        with suppress(*service_errors()):
            getattr(llm, how)()


_going: ContextVar[str] = ContextVar("going", default="")  # the LLM event that began last


class _Recorder(BaseCallbackHandler):
    """Appends each call that ends, its failure as an empty completion."""

    def __init__(self, made: list[Call]) -> None:
        super().__init__([], [])
        self._made = made
        self._asked: dict[str, dict[str, Any]] = {}  # payloads: the end of a failure has none

    def on_event_start(
        self,
        event_type: CBEventType,
        payload: dict[str, Any] | None = None,
        event_id: str = "",
        *_: Any,
        **__: Any,
    ) -> str:
        if event_type is CBEventType.LLM:
            self._asked.pop(_going.get(), None)  # a chat that is a completion is one call
            self._asked[event_id] = payload or {}
            _going.set(event_id)
        return event_id

    def on_event_end(
        self,
        event_type: CBEventType,
        payload: dict[str, Any] | None = None,
        event_id: str = "",
        *_: Any,
        **__: Any,
    ) -> None:
        asked = self._asked.pop(event_id, None)
        if asked is not None:
            self._made.append(_call({**asked, **(payload or {})}))

    def start_trace(self, trace_id: str | None = None) -> None:
        """Nothing is traced."""

    def end_trace(self, trace_id: str | None = None, trace_map: Any = None) -> None:
        """Nothing is traced."""


def _call(payload: dict[str, Any]) -> Call:
    messages: list[ChatMessage] = payload.get(EventPayload.MESSAGES, [])
    contents = [message.content or "" for message in messages]
    prompt = "\n\n".join(contents) if messages else str(payload.get(EventPayload.PROMPT, ""))
    response = payload.get(EventPayload.RESPONSE) or payload.get(EventPayload.COMPLETION)
    completion = _text(response)
    told = get_tokens_from_response(response) if response is not None else (0, 0)
    known = any(told)  # an empty answer has no tokens, and says so
    return Call(
        prompt,
        completion,
        told[0] if known else len(get_tokenizer()(prompt)),
        told[1] if known else len(get_tokenizer()(completion)),
    )


def _text(response: Any) -> str:
    match response:
        case ChatResponse():
            called = (b for b in response.message.blocks if isinstance(b, ToolCallBlock))
            return response.message.content or "\n".join(map(_arguments, called))
        case CompletionResponse():
            return response.text or ""
    return ""


def _arguments(call: ToolCallBlock) -> str:
    """What a tool is called with, as JSON: the answer of a model that fills in a form."""
    given = call.tool_kwargs
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
