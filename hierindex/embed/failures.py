"""Errors of an embedding model's service."""

from collections.abc import Iterator
from contextlib import contextmanager

from llama_index.core.base.embeddings.base import BaseEmbedding

from hierindex.llm.failures import error_of, failure_of, service_errors


@contextmanager
def named_errors(embed_model: BaseEmbedding) -> Iterator[None]:
    """Convert errors of an embedding model's service into one sentence with the model's name.

    Raises
    ------
    ModelError
        If the service cannot be used.
    RequestError
        If it fails otherwise.
    """
    try:
        yield
    except service_errors() as error:
        named = error_of(f"The embedding model {embed_model.model_name!r}", failure_of(error))
        raise named from error
