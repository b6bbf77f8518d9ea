import numpy as np
import pytest
from indexes import where
from llama_index.core.schema import MetadataMode
from store.trees import record, tree

from hierindex import HierarchyRetriever
from hierindex.core.ranking import blended
from hierindex.errors import InputError
from hierindex.retrieve.retrieval import CANDIDATES, SHARE, Choice

QUESTION = "the lantern of b3 met a falcon"


class Longest:
    """Prefers long texts; records what it is asked."""

    def __init__(self):
        self.asked = []

    def rank(self, question, texts):
        self.asked.append((question, texts))
        return [100.0 * len(text) for text in texts]


def found(store, embed_model, rerank=None, **options):
    options = {"token_budget": None, **options}
    return HierarchyRetriever(store, embed_model, rerank=rerank, **options).retrieve(QUESTION)


@pytest.mark.parametrize(
    "options",
    [{}, {"level": 0}, {"mode": "traversal"}, {"mode": "document"}, {"level": 0, "by": "context"}],
    ids=str,
)
def test_chunks_are_in_the_order_of_both_scores(store, embed_model, options):
    reranker = Longest()
    without = found(store, embed_model, top_k=CANDIDATES, **options)
    best = found(store, embed_model, reranker, top_k=3, **options)
    ((question, texts),) = reranker.asked
    assert question == QUESTION
    assert texts == [node.get_content(MetadataMode.EMBED) for node in without]
    lengths = np.array([len(text) for text in texts])
    scores = blended(lengths, np.array([node.score for node in without]), SHARE)
    order = np.argsort(-scores, kind="stable")[:3]
    assert [node.node_id for node in best] == [without[i].node_id for i in order]
    assert [node.score for node in best] == pytest.approx([scores[i] for i in order])
    assert {record(node.node).level for node in best} == {0}


def test_more_results_than_candidates_are_all_reranked(store, embed_model):
    reranker = Longest()
    found(store, embed_model, reranker, level=0, top_k=CANDIDATES + 5)
    assert len(reranker.asked[0][1]) == min(
        CANDIDATES + 5, sum(record(node).level == 0 for node in tree())
    )


def test_filters_hold_and_nothing_found_asks_no_model(store, embed_model):
    reranker = Longest()
    document = record(tree()[0]).documents[0]
    best = found(store, embed_model, reranker, filters=where(documents=document))
    assert {node.citations[0].document for node in best} == {document}
    assert found(store, embed_model, reranker, filters=where(documents="nowhere")) == []
    assert len(reranker.asked) == 1


def test_an_outline_is_not_reranked(store, embed_model, monkeypatch):
    def outline(*_):
        return Choice(True, "all levels for an outline")

    monkeypatch.setattr("hierindex.retrieve.retrieval.choose", outline)
    reranker = Longest()
    assert found(store, embed_model, reranker) == found(store, embed_model)
    assert reranker.asked == []


@pytest.mark.parametrize("scores", [[1.0], [np.nan] * CANDIDATES, None], ids=str)
def test_scores_that_cannot_be_used(store, embed_model, scores):
    reranker = Longest()
    reranker.rank = lambda *_: scores
    with pytest.raises(InputError, match=r"rerank must be a function that returns \d+ finite"):
        found(store, embed_model, reranker, level=0)
