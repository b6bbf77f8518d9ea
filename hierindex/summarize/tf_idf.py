"""TF-IDF vectors of sentences."""

from collections import Counter
from collections.abc import Sequence

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
    column: dict[str, int] = {}
    counts = [Counter(tokens(text.lower()) or [""]) for text in texts]
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
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)  # for k-means
    return csr_array((weights / norm[row], indices, starts), shape=(len(texts), len(column)))
