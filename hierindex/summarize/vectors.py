"""Kinds of sentence vectors: pools of sentences in, one matrix of unit rows a pool out."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from scipy.sparse import csr_array

from hierindex.core.arguments import is_whole, require
from hierindex.core.membership import Floats2d
from hierindex.core.threads import one_thread
from hierindex.errors import InputError
from hierindex.summarize.sentences import TOKEN

Pool = Sequence[str]
"""The sentences of a group, from which its summary is chosen."""

NOTHING = 1e-6  # length of what is left of a sentence that shares no direction

_WORD = re.compile(TOKEN)


@runtime_checkable
class SentenceVectors(Protocol):
    """Unit vectors of the sentences of each pool; like sentences have a large product.

    A pool's vectors depend on nothing but the pool. `name` holds what shapes them.
    """

    @property
    def name(self) -> str:
        """Name of the kind, with its settings."""

    def of(self, pools: Sequence[Pool]) -> Sequence[Floats2d | csr_array]:
        """(n_sentences, n_dims) unit rows of each pool; a row of zeros is like nothing."""

    def keep(self, sentences: Collection[str]) -> None:
        """Told what was chosen: the only sentences that the next level can have again."""


class TfIdf:
    """Words, weighted by how few of the pool's sentences have them. Next to free."""

    name = "tf-idf"

    def of(self, pools: Sequence[Pool]) -> list[csr_array]:
        """(n_sentences, n_words) unit rows of each pool."""
        return [tf_idf(pool) for pool in pools]

    def keep(self, sentences: Collection[str]) -> None:
        """Nothing is kept."""


class Lsa:
    """TF-IDF turned to its main directions, so that words that go together count as alike.

    Parameters
    ----------
    rank : int
        Directions at most. A group of fewer sentences is not changed: fewer directions would
        take different sentences for duplicates.
    seed : int

    Notes
    -----
    Some four times the cost of TF-IDF. Deerwester et al., Indexing by Latent Semantic Analysis
    (1990).
    """

    def __init__(self, rank: int = 100, *, seed: int = 0) -> None:
        require(is_whole(rank, 1), "rank", "an integer of at least 1", rank)
        self.rank, self.seed = rank, seed
        self.name = f"lsa, rank {rank}, seed {seed}"

    def of(self, pools: Sequence[Pool]) -> list[Floats2d]:
        """(n_sentences, at most `rank`) unit rows of each pool."""
        with one_thread():
            return [self._turned(tf_idf(pool)) for pool in pools]

    def keep(self, sentences: Collection[str]) -> None:
        """Nothing is kept."""

    def _turned(self, S: csr_array) -> Floats2d:
        from sklearn.utils.extmath import randomized_svd

        rank = min(self.rank, *S.shape)
        if not rank:
            return np.zeros((0, 1))
        U, s, _ = randomized_svd(S, rank, random_state=self.seed)
        V = U * s
        V[np.linalg.norm(V, axis=1) < NOTHING] = 0
        return unit(V)


class InputEmbeddings:
    """Mean of the vectors of a sentence's word pieces, from the model's first layer: no pass.

    Parameters
    ----------
    embed_model : BaseEmbedding
        A Hugging Face one, for its tokenizer and its table of word pieces.

    Notes
    -----
    A word piece counts log(1 + its place in the vocabulary), which is sorted by frequency in
    BERT-like models: by Zipf's law about its information. Weights by the pool's own document
    frequencies chose no better sentences.

    Raises
    ------
    InputError
        If the model has no such table.
    """

    def __init__(self, embed_model: BaseEmbedding) -> None:
        model: Any = getattr(embed_model, "_model", None)
        if not hasattr(model, "tokenizer") or not hasattr(model[0], "auto_model"):
            raise InputError(
                "Input embeddings need a model on torch, LlamaIndex's HuggingFaceEmbedding, got "
                f"{type(embed_model).__name__}."
            )
        table = model[0].auto_model.get_input_embeddings().weight.detach().cpu().numpy()
        self.name = f"input embeddings of {embed_model.model_name}"
        self._tokenizer = model.tokenizer
        self._weighted = table * np.log(1 + np.arange(len(table), dtype=np.float32))[:, None]

    def of(self, pools: Sequence[Pool]) -> list[Floats2d]:
        """(n_sentences, n_dims) unit rows of each pool."""
        return [self._means(list(pool)) for pool in pools]

    def keep(self, sentences: Collection[str]) -> None:
        """Nothing is kept."""

    def _means(self, pool: list[str]) -> Floats2d:
        if not pool:
            return np.zeros((0, self._weighted.shape[1]))
        pieces = self._tokenizer(pool, add_special_tokens=False, truncation=False, verbose=False)
        return unit(np.array([self._weighted[ids].sum(axis=0) for ids in pieces["input_ids"]]))


class Embeddings:
    """Vectors of an embedding model, all of a level in one pass.

    It costs about as much again as embedding the chunks. Chosen sentences are not embedded
    again on the next level.

    Parameters
    ----------
    embed_model : BaseEmbedding
    """

    def __init__(self, embed_model: BaseEmbedding) -> None:
        self.embed_model = embed_model
        self._kept: dict[str, list[float]] = {}

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.embed_model.model_name

    def of(self, pools: Sequence[Pool]) -> list[Floats2d]:
        """(n_sentences, n_dims) unit rows of each pool."""
        new = list(dict.fromkeys(s for pool in pools for s in pool if s not in self._kept))
        new.sort(key=len)  # batches of like length waste no padding
        vectors = self.embed_model.get_text_embedding_batch(new) if new else []
        known = {**self._kept, **dict(zip(new, vectors, strict=True))}
        self._kept = known
        rows = [[known[sentence] for sentence in pool] for pool in pools]
        return [unit(np.array(found)) if found else np.zeros((0, 1)) for found in rows]

    def keep(self, sentences: Collection[str]) -> None:
        """Forget the vectors of all others."""
        kept = self._kept
        self._kept = {s: kept[s] for s in sentences if s in kept}


KINDS: dict[str, Callable[[], SentenceVectors]] = {"tf-idf": TfIdf, "lsa": Lsa}


def as_vectors(given: SentenceVectors | BaseEmbedding | str) -> SentenceVectors:
    """A kind of sentence vectors from itself, its name, or an embedding model.

    Raises
    ------
    InputError
        If it is none of these.
    """
    if isinstance(given, str) and given in KINDS:
        return KINDS[given]()
    if isinstance(given, SentenceVectors) and not isinstance(given, type):
        return given
    if isinstance(given, BaseEmbedding):
        return Embeddings(given)
    got = repr(given) if isinstance(given, str) else type(given).__name__
    names = ", ".join(map(repr, KINDS))
    raise InputError(
        f"vectors must be one of {names}, an embedding model or SentenceVectors, got {got}."
    )


def tf_idf(texts: Pool) -> csr_array:
    """TF-IDF weights with the texts themselves as corpus.

    Those of scikit-learn's TfidfVectorizer with `sublinear_tf`, at a fraction of its cost for
    a few dozen texts: (1 + log tf) * (1 + log((1 + n_texts) / (1 + df))), rows of length 1.

    Returns
    -------
    (n_texts, n_words) csr_array
        Texts without a word are all alike.

    Examples
    --------
    >>> S = tf_idf(["A letter.", "a LETTER!", "? ?"])
    >>> (S @ S.T).toarray().round(3).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    column: dict[str, int] = {}
    counts = [Counter(_WORD.findall(text.lower()) or [""]) for text in texts]
    indices = np.array(
        [column.setdefault(word, len(column)) for count in counts for word in count], dtype=np.int32
    )
    tf = np.array([n for count in counts for n in count.values()], dtype=np.float64)
    lengths = np.array([*map(len, counts)], dtype=np.int64)
    df = np.bincount(indices, minlength=len(column))
    idf = 1 + np.log((1 + len(texts)) / (1 + df))
    weights = (1 + np.log(tf)) * idf[indices]
    row = np.repeat(np.arange(len(texts)), lengths)
    norm = np.sqrt(np.bincount(row, weights=weights**2, minlength=len(texts)))
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)  # as k-means wants them
    return csr_array((weights / norm[row], indices, starts), shape=(len(texts), len(column)))


def unit(V: Floats2d) -> Floats2d:
    """Rows of length 1; zeros stay zeros."""
    return np.asarray(V / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-12))
