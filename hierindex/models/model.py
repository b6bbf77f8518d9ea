"""What is needed of an embedding model."""

from typing import Protocol


class EmbedModel(Protocol):
    """An embedding model: one of LlamaIndex's, or an `OpenVinoEncoder`.

    A model may also have a window (`max_length`), a `fingerprint` of its vectors, and the settings
    of `model_identity.DISTINCTIVE`.
    """

    @property
    def model_name(self) -> str:
        """Its name, or "unknown"."""
        ...

    def get_query_embedding(self, query: str) -> list[float]:
        """Return the vector of a question."""
        ...

    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts."""
        ...
