"""TF-IDF vectors of sentences."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from scipy.sparse import csr_array

from hierindex.summarize.sentences import tokens


def tf_idf(texts: Sequence[str]) -> csr_array:
    """Compute TF-IDF weights, with the texts themselves as corpus.

    The weights are (1 + log tf) * (1 + log((1 + n_texts) / (1 + df))), as in scikit-learn's
    TfidfVectorizer with `sublinear_tf`, which is much slower for a few dozen texts.

    Returns
    -------
    (n_texts, n_words) csr_array
        Rows have length 1. Texts without words have equal rows.

    Examples
    --------
    >>> S = tf_idf(["A letter.", "a LETTER!", "? ?"])
    >>> (S @ S.T).toarray().round(3).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    n_texts = len(texts)
    tokens_of = [tokens(text.lower()) or [""] for text in texts]
    words = [*chain.from_iterable(tokens_of)]
    column = {word: i for i, word in enumerate(dict.fromkeys(words))}
    n_words = max(1, len(column))
    row = np.repeat(np.arange(n_texts), [*map(len, tokens_of)])
    indices = np.fromiter(map(column.__getitem__, words), np.int64, len(words))
    cells, tf = np.unique(row * n_words + indices, return_counts=True)
    row, indices = np.divmod(cells, n_words)
    idf = 1 + np.log((1 + n_texts) / (1 + np.bincount(indices, minlength=n_words)))
    weights = (1 + np.log(tf)) * idf[indices]
    norm = np.sqrt(np.bincount(row, weights=weights**2, minlength=n_texts))
    starts = np.searchsorted(row, np.arange(n_texts + 1)).astype(np.int32)  # for k-means
    indices = indices.astype(np.int32)
    return csr_array((weights / norm[row], indices, starts), shape=(n_texts, len(column)))
