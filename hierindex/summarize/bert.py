"""An extractor on bert-extractive-summarizer: the sentences nearest to k-means centroids.

D. Miller, Leveraging BERT for Extractive Text Summarization on Lectures (2019).
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding

from hierindex.core.arguments import Floats2d
from hierindex.errors import ModelError
from hierindex.models.load import load_transformer
from hierindex.summarize.extractive import beginning, informative
from hierindex.summarize.summary import Budget, Group, names_of
from hierindex.text.sentences import Sentence


class BertExtractor:
    """An extractor that uses bert-extractive-summarizer; needs `pip install 'hierindex[bert]'`.

    Parameters
    ----------
    model : str or BaseEmbedding
        Name or folder of a BERT-like model ("bert-base-uncased" by default), which embeds sentences
        one by one, as the mean of the second-to-last layer; or an embedding model, which embeds
        them in batches.

    Raises
    ------
    ModelError
        If the library is not installed, or the model cannot be loaded.
    """

    def __init__(self, model: str | BaseEmbedding = "bert-base-uncased") -> None:
        self.model_name: str = model if isinstance(model, str) else model.model_name
        library = _import_summarizer()
        vectors = (
            _second_last_layer(model, library)
            if isinstance(model, str)
            else lambda sentences: np.array(model.get_text_embedding_batch(sentences))
        )
        self._processor = library.summary_processor.SummaryProcessor(
            model=vectors,
            sentence_handler=None,  # sentences are already split
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine which sentences are chosen."""
        return {"bert": self.model_name}

    def extract(self, groups: Sequence[Group], budget: Budget) -> list[list[Sentence]]:
        """Return at least one sentence of each group, within the budget and in reading order."""
        return [
            self._extract(informative(group)[0], budget.without(names_of(group)))
            for group in groups
        ]

    def _extract(self, pool: list[Sentence], budget: Budget) -> list[Sentence]:
        n_tokens = budget.costs(pool)
        if n_tokens.sum() <= budget.max_tokens:
            return pool
        n_sentences = max(1, int(budget.max_tokens / n_tokens.mean()))
        position = {s.text: i for i, s in enumerate(pool)}
        texts, _ = self._processor.cluster_runner(
            list(position), num_sentences=n_sentences, use_first=n_sentences > 1
        )
        extract, room = [], budget.max_tokens
        for i in sorted(position[text] for text in texts):
            if n_tokens[i] <= room:
                extract.append(pool[i])
                room -= int(n_tokens[i])
        return extract or [beginning(each, budget) for each in pool[:1]]


def _import_summarizer() -> ModuleType:
    """Import the library, with stubs for two unused classes that transformers 5 removed."""
    importlib.import_module("transformers")  # replaces itself in sys.modules
    transformers = sys.modules["transformers"]
    missing = [
        name for name in ("TransfoXLModel", "TransfoXLTokenizer") if not hasattr(transformers, name)
    ]
    for name in missing:
        setattr(transformers, name, type(name, (), {}))
    try:
        return importlib.import_module("summarizer")
    except ModuleNotFoundError as error:
        raise ModelError(
            "bert-extractive-summarizer is not installed; install it with "
            "`pip install 'hierindex[bert]'`."
        ) from error
    finally:
        for name in missing:
            delattr(transformers, name)


def _second_last_layer(name: str, library: ModuleType) -> Callable[[list[str]], Floats2d]:
    message = f"Model {name!r} cannot be loaded: give a BERT-like model's name or its folder."
    model, tokenizer = load_transformer("AutoModel", name, message, output_hidden_states=True)
    embedding = library.bert.BertEmbedding(name, custom_model=model, custom_tokenizer=tokenizer)
    window = model.config.max_position_embeddings

    def within_window(text: str) -> str:  # as the library does not truncate
        return str(tokenizer.convert_tokens_to_string(tokenizer.tokenize(text)[:window]))

    return lambda sentences: np.asarray(embedding([within_window(text) for text in sentences]))
