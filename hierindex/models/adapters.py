"""Models in the form that LlamaIndex takes.

Embedding models run on OpenVINO or call a function. Language models call a function, or send their
requests through a `LanguageModel`.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial, partialmethod
from inspect import ismethod
from math import inf
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms import LLM, CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.structured_llm import StructuredLLM

from hierindex.core.arguments import is_number, require
from hierindex.errors import InputError, ModelError
from hierindex.models.embedder import EmbedModel, is_function
from hierindex.models.llm import CONCURRENCY, LanguageModel
from hierindex.models.openvino import OpenVinoEncoder, Precision
from hierindex.models.record import Call, Calls, prompt_of
from hierindex.threads import in_daemon_thread

T = TypeVar("T")
LLMLike = LLM | Callable[[str], str]


class BatchEmbedding(BaseEmbedding):
    """Base class of embedding models that embed many texts at once; async methods use threads."""

    embed_batch_size: int = Field(default=256, gt=0, le=2048)  # texts between progress reports

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)


class OpenVinoEmbedding(BatchEmbedding):
    """An exported sentence-transformers model, as `load_embed_model` returns it on a CPU.

    Equal texts get bit-identical vectors at the same precision.

    Parameters
    ----------
    folder : str
        Contains the exported graph, the tokenizer, and their settings.
    model_name : str
        Name under which the model was loaded.
    precision : {"bfloat16", "float32"}
    """

    folder: str
    precision: Precision = "float32"

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises the class."""
        return "OpenVinoEmbedding"

    @cached_property
    def encoder(self) -> OpenVinoEncoder:
        """The wrapped model."""
        return OpenVinoEncoder(Path(self.folder), self.precision, self.model_name)

    @property
    def max_length(self) -> int:
        """Maximum number of tokens that the model reads, special ones included."""
        return self.encoder.max_length

    @property
    def fingerprint(self) -> str:
        """Digest of everything that determines the vectors, followed by the precision."""
        return self.encoder.fingerprint

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self.encoder.get_text_embedding_batch(texts)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.encoder.get_query_embedding(query)


def as_llama_index(model: EmbedModel) -> BaseEmbedding:
    """Wrap a model returned by `load_encoder` for LlamaIndex; the graph is shared."""
    if not isinstance(model, OpenVinoEncoder):
        return cast(BaseEmbedding, model)
    form = OpenVinoEmbedding(
        folder=str(model.folder), model_name=model.model_name, precision=model.precision
    )
    vars(form)["encoder"] = model
    return form


def name_of(function: Callable[..., Any]) -> str:
    """Return the name under which an index stores a function.

    It ends with parentheses, unlike the name of a model that could be loaded.

    Raises
    ------
    InputError
        If it has no name of its own: a lambda, or the method of an object.

    Examples
    --------
    >>> name_of(name_of)
    'name_of()'
    """
    name = getattr(function, "__qualname__", "<lambda>")
    named = not name.endswith("<lambda>") and not ismethod(function)
    require(named, "A function that an index remembers", "defined with def", function)
    return f"{name}()"


def checked_text(written: object, name: str) -> str:
    """Return the text that a function returned; raise ModelError if it is not a string."""
    if not isinstance(written, str):
        raise ModelError(f"{name} must return text, got {written!r:.100}.")
    return written


class FunctionEmbedding(BatchEmbedding):
    """An embedding model that calls a function, for texts and for questions.

    The name of a function does not identify what it computes, so no vector is cached.
    """

    function: Callable[..., Any] = Field(exclude=True, repr=False)
    fingerprint: ClassVar[None] = None

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors = self.function(texts)
        try:
            X = np.asarray(vectors, dtype=np.float64)
        except (TypeError, ValueError):  # as of vectors of several lengths
            X = np.zeros(0)
        if X.ndim != 2 or len(X) != len(texts):
            must = f"must return one vector of numbers for each of {len(texts)} texts"
            raise InputError(f"{self.model_name} {must}, got {vectors!r:.100}.")
        return [x.tolist() for x in X]


class FunctionLLM(CustomLLM):
    """A language model that calls a function of the prompt; its window is LlamaIndex's default."""

    function: Callable[..., Any] = Field(exclude=True, repr=False)

    @property
    def metadata(self) -> LLMMetadata:
        """Metadata with the name of the function as the model's name."""
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return LLMMetadata(model_name=f"{name}()")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Return the function's answer to a prompt."""
        written = self.function(prompt)
        return CompletionResponse(text=checked_text(written, self.metadata.model_name))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        """Stream the whole answer as one piece."""
        text = self.complete(prompt, formatted).text
        return iter([CompletionResponse(text=text, delta=text)])


def as_llm(given: LLMLike | None) -> LLM | None:
    """Convert an `llm` argument to a LlamaIndex language model.

    Raises
    ------
    InputError
        If it is neither a LlamaIndex LLM nor a function.
    """
    if given is None or isinstance(given, LLM):
        return given
    require(is_function(given), "llm", "one of LlamaIndex's models or a function", given)
    return FunctionLLM(function=given)


async def read_in_threads(pieces: Iterator[T]) -> AsyncGenerator[T, None]:
    """Yield what an iterator yields, without blocking the event loop."""
    while (piece := await in_daemon_thread(partial(next, pieces, None))) is not None:
        yield piece


class ServedLLM(FunctionCallingLLM):
    """The user's LlamaIndex model, with the limits and retries of a `LanguageModel`.

    It has the metadata, prompts and callbacks of the user's model, and none of its other settings.
    Async methods run the sync ones in threads. Structured answers are requested by tool calls if
    the model supports them, otherwise in the prompt.
    """

    language_model: LanguageModel = Field(exclude=True, repr=False)
    records: tuple[Calls, ...] = Field(default=(), exclude=True, repr=False)

    @classmethod
    def class_name(cls) -> str:
        """Return the name for events."""
        return "served_llm"

    @property
    def metadata(self) -> LLMMetadata:
        """Metadata of the user's model."""
        return self.language_model.llm.metadata

    def _through(self, way: Callable[..., T], method: str, /, *args: Any, **options: Any) -> T:
        send = partial(getattr(self.language_model.llm, method), *args, **options)
        return way(self.language_model, prompt_of(*args, **options), send, self._note)

    async def _ain_thread(self, method: str, /, *args: Any, **options: Any) -> Any:
        return await in_daemon_thread(
            partial(self._through, LanguageModel.ask, method, *args, **options)
        )

    async def _astream(self, method: str, /, *args: Any, **options: Any) -> AsyncIterator[Any]:
        return read_in_threads(self._through(LanguageModel.stream, method, *args, **options))

    complete: ClassVar[Any] = partialmethod(_through, LanguageModel.ask, "complete")
    chat: ClassVar[Any] = partialmethod(_through, LanguageModel.ask, "chat")
    chat_with_tools: ClassVar[Any] = partialmethod(_through, LanguageModel.ask, "chat_with_tools")
    stream_complete: ClassVar[Any] = partialmethod(
        _through, LanguageModel.stream, "stream_complete"
    )
    stream_chat: ClassVar[Any] = partialmethod(_through, LanguageModel.stream, "stream_chat")
    stream_chat_with_tools: ClassVar[Any] = partialmethod(
        _through, LanguageModel.stream, "stream_chat_with_tools"
    )
    acomplete: ClassVar[Any] = partialmethod(_ain_thread, "complete")
    achat: ClassVar[Any] = partialmethod(_ain_thread, "chat")
    achat_with_tools: ClassVar[Any] = partialmethod(_ain_thread, "chat_with_tools")
    astream_complete: ClassVar[Any] = partialmethod(_astream, "stream_complete")
    astream_chat: ClassVar[Any] = partialmethod(_astream, "stream_chat")
    astream_chat_with_tools: ClassVar[Any] = partialmethod(_astream, "stream_chat_with_tools")

    def get_tool_calls_from_response(self, *args: Any, **options: Any) -> Any:
        """Return the tool calls in a response, as the user's model does."""
        llm: Any = self.language_model.llm
        return llm.get_tool_calls_from_response(*args, **options)

    def _prepare_chat_with_tools(self, *args: Any, **options: Any) -> dict[str, Any]:
        raise NotImplementedError  # the user's model does

    def _note(self, call: Call) -> None:
        for record in self.records:
            record.add(call)


def with_retries(llm: LLM, calls: Calls | None = None, *, concurrency: int | None = None) -> LLM:
    """Return a model whose requests go through a `LanguageModel`, without client retries.

    Parameters
    ----------
    llm : LLM
        If it is a `ServedLLM`, the new model shares its limits.
    calls : Calls, optional
        An additional record of its calls.
    concurrency : int, optional
        Maximum requests in flight; 4 by default.

    Returns
    -------
    LLM
        A `ServedLLM`, or a `StructuredLLM` of one. A request that fails for good raises
        `RequestError`, or `ModelError` if no other request would succeed.
    """
    if isinstance(llm, StructuredLLM):  # the model inside it sends the requests
        return llm.model_copy(update={"llm": with_retries(llm.llm, calls, concurrency=concurrency)})
    records = () if calls is None else (calls,)
    if isinstance(llm, ServedLLM):
        model, records = llm.language_model, (*llm.records, *records)
    else:
        model = LanguageModel(without_retries(llm), concurrency or CONCURRENCY, _timeout(llm))
    if concurrency not in (None, model.concurrency):
        model = replace(model, concurrency=concurrency)
    own = {name: getattr(llm, name) for name in LLM.model_fields}
    return ServedLLM(**own, language_model=model, records=records)


def language_model_of(llm: LLM) -> LanguageModel:
    """Return the `LanguageModel` of a served model."""
    return cast(ServedLLM, llm.llm if isinstance(llm, StructuredLLM) else llm).language_model


def without_retries(llm: LLM) -> LLM:
    """Return a model, or a copy of it, that does not retry.

    The model's own retries would not be counted as requests. A client that is already created keeps
    its settings.
    """
    return llm.model_copy(update={"max_retries": 0}) if getattr(llm, "max_retries", 0) else llm


def _timeout(llm: LLM) -> float:
    """Return the timeout in a model's settings; local models have none."""
    named = (getattr(llm, name, None) for name in ("timeout", "request_timeout"))
    return next((seconds for seconds in named if seconds and is_number(seconds)), inf)
