import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from summarize.groups import WORDS

from hierindex.summarize.sentences import MIN_WORDS, TOKEN, is_telling, tokens
from hierindex.summarize.tf_idf import tf_idf

TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=12)


@given(TEXTS)
def test_tf_idf_is_scikit_learn_s(texts):
    S = tf_idf(texts)
    assert S.shape[0] == len(texts)
    vectorizer = TfidfVectorizer(token_pattern=TOKEN, sublinear_tf=True)
    words = [bool(vectorizer.build_analyzer()(text)) for text in texts]
    if any(words):
        expected = vectorizer.fit_transform(texts)
        found = (S @ S.T).toarray()[np.ix_(words, words)]
        assert found == pytest.approx((expected @ expected.T).toarray()[np.ix_(words, words)])


@given(st.text() | st.text(alphabet="aB1_ .'-\n\x1c\u201c\u2014\u00e9\u96ea\u30fb"))
def test_tokens_are_those_of_the_pattern(text):
    assert tokens(text) == re.findall(TOKEN, text)
    assert is_telling(text) == (len(tokens(text)) >= MIN_WORDS)


def test_the_order_of_words_does_not_matter():
    S = tf_idf(["rain fell and rain rose", "x", "rose and rain rain fell"]).toarray()
    assert np.array_equal(S[0], S[2])


def test_rows_are_unit_vectors():
    S = tf_idf(["a storm", "a storm", "", "? !", "x"])
    assert S.multiply(S).sum(axis=1) == pytest.approx(np.ones(5))
    assert tf_idf([]).shape == (0, 0)
