"""What the inside needs of an embedding model."""

from typing import Protocol


class EmbedModel(Protocol):
    """An embedding model; LlamaIndex's are some."""

    model_name: str

    def get_query_embedding(self, query: str) -> list[float]: ...

    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]: ...
