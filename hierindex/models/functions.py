"""LlamaIndex models that call plain functions, to embed texts or to answer prompts."""

from collections.abc import Callable
from inspect import ismethod
from typing import Any, ClassVar

import numpy as np
from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms import LLM, CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback

from hierindex.core.arguments import require
from hierindex.errors import InputError, ModelError
from hierindex.models.model import is_function
from hierindex.models.openvino_embedding import BatchEmbedding

LLMLike = LLM | Callable[[str], str]


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
    embed_batch_size: int = Field(default=256, gt=0, le=2048)
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
