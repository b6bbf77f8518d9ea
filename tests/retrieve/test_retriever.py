import asyncio
import itertools

import numpy as np
import pytest
from fakes import HashingEmbedding
from indexes import where
from llama_index.core.postprocessor import LongContextReorder
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.utils import get_tokenizer
from llama_index.core.vector_stores.types import FilterCondition
from records import metadata_of
from store.oracle import passing as passing_ids
from store.trees import HIERARCHIES, NOUNS, SIZES, record, tree

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    HierarchyRetriever,
    HierarchyStore,
    HierindexError,
    SemanticHierarchy,
    load_embed_model,
)
from hierindex.errors import InputError, LevelError

QUESTION = "the lantern of b3 met a falcon"
WHOLE = "What is this about?"
ALL = {"top_k": 1000, "token_budget": None}


def retrieved(store, embed_model, question=QUESTION, **options):
    return HierarchyRetriever(store, embed_model, **options).retrieve(question)


def ids(found):
    return [n.node.node_id for n in found]


def cut(nodes, level):
    return [n for n in nodes if record(n).level <= level <= record(n).level_max]


def all_children_in(node, ids):
    children = node.child_nodes
    return bool(children) and all(child.node_id in ids for child in children)


def highest(nodes):
    return max(record(n).level_max for n in nodes)


@pytest.mark.parametrize("nodes", HIERARCHIES, indirect=True)
def test_a_level_is_its_cut(store, nodes, embed_model):
    for level in range(highest(nodes) + 1):
        found = retrieved(store, embed_model, level=level, **ALL)
        assert sorted(ids(found)) == sorted(n.node_id for n in cut(nodes, level))


def test_collapsed_sees_all_levels_best_first(store, nodes, embed_model):
    question = embed_model.get_query_embedding(QUESTION)
    cosine = {n.node_id: np.dot(n.embedding, question) for n in nodes}
    for level in range(highest(nodes) + 1):
        found = retrieved(
            store, embed_model, mode="collapsed", filters=where(hierindex_level=level), **ALL
        )
        assert sorted(ids(found)) == sorted(n.node_id for n in nodes if record(n).level == level)
        scores = [n.score for n in found]
        np.testing.assert_allclose(scores, [cosine[i] for i in ids(found)], atol=1e-5)
        assert (np.diff(scores) <= 0).all()


@pytest.mark.spread
@pytest.mark.parametrize("nodes", HIERARCHIES, indirect=True)
@pytest.mark.parametrize("top_k", [3, 9, 1000])
def test_no_parent_is_found_with_all_its_children(store, nodes, embed_model, top_k):
    found = retrieved(store, embed_model, mode="collapsed", top_k=top_k, token_budget=None)
    assert len(found) == min(top_k, sum(record(n).level == 0 for n in nodes))
    for n in found:
        children = {child.node_id for child in n.node.child_nodes or ()}
        assert not children or children - set(ids(found))


@pytest.mark.parametrize("offset", [-1, -1000, 1, 2**40])
def test_a_level_that_is_not_there(store, nodes, embed_model, offset):
    level = offset if offset < 0 else highest(nodes) + offset
    retriever = HierarchyRetriever(store, embed_model, level=level)
    says = rf"^The index has levels 0 to {highest(nodes)}, got level {level}\.$"
    with pytest.raises(LevelError, match=says):
        retriever.retrieve(QUESTION)
    with pytest.raises(LevelError, match=says):
        asyncio.run(retriever.aretrieve(QUESTION))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"mode": "level"}, "'level' needs a level"),
        ({"mode": "collapsed", "level": 1}, "needs mode level or"),
        ({"mode": "auto", "level": [0, 1]}, "got mode 'auto'"),
        ({"mode": "document", "level": 0}, "got mode 'document'"),
        ({"mode": "traversal", "level": (0, 1)}, "takes one number"),
        ({"mode": "nearest"}, "mode must be one of auto, .*'nearest'"),
        ({"mode": "tree_traversal"}, "; the nearest is traversal.$"),
        ({"by": "sparse"}, "by must be one of dense, hybrid, text, context"),
        ({"by": "context", "mode": "collapsed"}, "'context' cannot search several"),
        ({"by": "context", "level": [0, 1]}, "cannot search several"),
        ({"top_k": 0}, "top_k must be an integer of at least 1, got 0"),
        ({"token_budget": 0}, "token_budget must be .* got 0"),
        ({"beam": 3}, "beam needs mode 'traversal', got mode 'auto'"),
        ({"mode": "traversal", "n_documents": 3}, "n_documents needs mode 'document'"),
        ({"whole_documents": True}, "whole_documents needs mode 'doc"),
        ({"level": "roots"}, "one of top, documents, sections, chunks, .* got 'roots'"),
        ({"level": [0, "x"]}, "one of top"),
        ({"level": [[0]]}, "one of top"),
        ({"level": 1.5}, "a whole number"),
        ({"level": ["documents", 0]}, "cannot be combined with others, got"),
        ({"level": ["documents", "sections"]}, "cannot be combined with others"),
        ({"level": "documents", "mode": "traversal"}, "takes one number, top or chunks as level"),
        ({"level": "top", "mode": "collapsed"}, "level needs mode"),
        ({"level": "sections", "rerank": "m"}, r"chunks, .* levels \['sections'\]"),
        ({"level": [0, 1], "rerank": "m"}, r"levels \[0, 1\]"),
        ({"mode": "collapsed", "rerank": "m"}, "chunks, got mode 'collapsed'"),
        (
            {"mode": "document", "whole_documents": True, "rerank": "m"},
            "whole_documents=True",
        ),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused_at_once(tmp_path, embed_model, options, says):
    with pytest.raises(InputError, match=says) as caught:
        HierarchyRetriever(HierarchyStore(tmp_path), embed_model, **options)
    assert isinstance(caught.value, HierindexError)
    assert caught.value.exit_status == 2


@pytest.mark.spread
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "collapsed"},
        {"level": 1},
        {"level": [0, 2], "top_k": 3},
        {"token_budget": 60},
        {"mode": "traversal", "beam": 2},
        {"by": "hybrid"},
        {"by": "text", "level": 0},
        {"by": "context", "level": 0},
        {"by": "context", "mode": "traversal"},
    ],
    ids=str,
)
def test_async_finds_the_same(store, embed_model, options):
    retriever = HierarchyRetriever(store, embed_model, **options)
    found = retriever.retrieve(QUESTION)
    assert found
    assert asyncio.run(retriever.aretrieve(QUESTION)) == found


@pytest.mark.parametrize("embedding", [[1.0] * 64, [0.1, -0.2] * 32])
def test_an_embedding_that_is_there_is_not_computed_again(store, nodes, embed_model, embedding):
    retriever = HierarchyRetriever(store, embed_model, mode="collapsed", top_k=1)
    query = QueryBundle(QUESTION, embedding=embedding)
    cosines = np.array([n.embedding for n in nodes]) @ embedding / np.linalg.norm(embedding)
    for (found,) in (retriever.retrieve(query), asyncio.run(retriever.aretrieve(query))):
        assert found.score == pytest.approx(cosines.max(), abs=1e-5)
    assert embed_model.queries == []
    assert embed_model.batches == []


def test_a_question_is_embedded_once(store, embed_model):
    retrieved(store, embed_model, mode="level", level=1)
    assert embed_model.queries == [QUESTION]
    asyncio.run(HierarchyRetriever(store, embed_model, level=0).aretrieve(QUESTION))
    assert embed_model.queries == [QUESTION] * 2
    assert embed_model.batches == []


@pytest.mark.parametrize("folder", ["missing", "."])
def test_an_empty_folder_has_nothing_to_find(tmp_path, embed_model, folder):
    retriever = HierarchyRetriever(HierarchyStore(tmp_path / folder), embed_model)
    assert retriever.retrieve(QUESTION) == []
    assert asyncio.run(retriever.aretrieve(QUESTION)) == []
    assert list(tmp_path.iterdir()) == []


def test_several_levels_are_the_union_of_their_cuts(store, nodes, embed_model):
    either = {"hierindex_kind": "extractive", "hierindex_level": 0}
    filters = where(condition=FilterCondition.OR, **either)
    for levels in ([0, 1], [2], (1, 2)):
        found = retrieved(store, embed_model, level=levels, filters=filters, top_k=5)
        expected = {n.node_id for level in levels for n in cut(nodes, level)}
        assert found
        assert set(ids(found)) <= expected


def test_every_result_has_its_path_to_a_root_and_its_places(store, nodes, embed_model):
    by_id = {n.node_id: n for n in nodes}
    for level in range(highest(nodes) + 1):
        for found in retrieved(store, embed_model, level=level):
            node_id, path = found.node.node_id, []
            while record(by_id[node_id]).parents:
                node_id = record(by_id[node_id]).parents[0][0]
                path.append(node_id)
            assert found.path == path
            assert found.citations == record(found.node).citations != []


def test_many_questions_at_once_find_what_each_finds_alone(store, embed_model):
    retriever = HierarchyRetriever(store, embed_model)
    questions = [f"the {noun} of a{i} met a {noun}" for i in range(3) for noun in NOUNS[:2]]
    alone = [retriever.retrieve(question) for question in questions]

    async def at_once():
        return await asyncio.gather(*map(retriever.aretrieve, questions))

    assert asyncio.run(at_once()) == alone


def test_several_wordings_of_a_question_count_as_their_mean(store, embed_model):
    wordings = ["the lantern of b3", "a falcon of b3"]
    mean = np.mean([embed_model.get_query_embedding(w) for w in wordings], axis=0).tolist()
    retriever = HierarchyRetriever(store, embed_model)
    by_mean = retriever.retrieve(QueryBundle(QUESTION, embedding=mean))
    assert retriever.retrieve(QueryBundle(QUESTION, custom_embedding_strs=wordings)) == by_mean


class TestTraversal:
    def test_a_beam_as_wide_as_the_tree_finds_what_a_level_has(self, store, nodes, embed_model):
        for level in range(highest(nodes) + 1):
            there = retrieved(store, embed_model, level=level, top_k=5)
            options = {"mode": "traversal", "beam": 99, "level": level, "top_k": 5}
            assert retrieved(store, embed_model, **options) == there

    @pytest.mark.parametrize("nodes", HIERARCHIES, indirect=True)
    def test_only_what_lies_under_the_best_is_found(self, store, nodes, embed_model):
        question = np.array(embed_model.get_query_embedding(QUESTION))
        by_id = {n.node_id: n for n in nodes}
        there = cut(nodes, highest(nodes))
        while above := [n for n in there if record(n).level > 0]:
            best = sorted(above, key=lambda n: -np.dot(n.embedding, question))[:2]
            below = dict.fromkeys(child.node_id for n in best for child in n.child_nodes)
            there = [n for n in there if record(n).level == 0] + [by_id[i] for i in below]
        found = retrieved(store, embed_model, mode="traversal", beam=2, **ALL)
        assert sorted(ids(found)) == sorted({n.node_id for n in there})


class TestDocuments:
    def test_chunks_of_the_documents_whose_summaries_are_nearest(self, embed_model, tmp_path):
        nodes = tree(DocumentHierarchy)
        (store := HierarchyStore(tmp_path)).add(nodes)
        summaries = [n for n in nodes if record(n).whole_document]
        assert sorted(record(n).documents[0] for n in summaries) == sorted(SIZES)
        question = embed_model.get_query_embedding(QUESTION)
        summaries.sort(key=lambda n: -np.dot(n.embedding, question))
        best = [record(n).documents[0] for n in summaries[:2]]
        options = {"mode": "document", "n_documents": 2, **ALL}
        found = retrieved(store, embed_model, **options)
        expected = [n for n in cut(nodes, 0) if record(n).documents[0] in best]
        assert sorted(ids(found)) == sorted(n.node_id for n in expected)

        read = retrieved(store, embed_model, whole_documents=True, **options)
        assert [record(n.node).documents[0] for n in read] == sorted(
            (record(n.node).documents[0] for n in read), key=best.index
        )
        for document in best:
            starts = [n.citations[0].start for n in read if record(n.node).documents == (document,)]
            assert starts == sorted(starts)
        assert sorted(ids(read)) == sorted(ids(found))

    def test_a_tree_without_summaries_of_documents_says_so(self, embed_model, tmp_path):
        nodes = [n for n in tree() if not record(n).whole_document]
        (store := HierarchyStore(tmp_path)).add(nodes)
        with pytest.raises(InputError, match="mode 'document' needs a tree with a summary of each"):
            retrieved(store, embed_model, mode="document")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """An index whose embedding model knows a question about the whole."""
    model, store = load_embed_model(), HierarchyStore(tmp_path_factory.mktemp("index"))
    chunks = [node for node in tree() if record(node).level == 0]
    own = [
        TextNode(text=n.text, relationships=n.relationships, metadata={"author": author})
        for n, author in zip(chunks, itertools.cycle(["Ada", "Bo"]))
    ]
    for node in own:
        node.relationships = {NodeRelationship.SOURCE: node.source_node}
    store.add(SemanticHierarchy(embed_model=model)(own))
    return HierarchicalIndex(store, model)


class TestAuto:
    def test_a_question_about_a_part_is_answered_by_chunks_in_context(self, store, embed_model):
        found = retrieved(store, embed_model, top_k=3)
        level = HierarchyRetriever(store, embed_model, level=0, by="context", top_k=3)
        assert [(n.node_id, n.score) for n in found] == [
            (n.node_id, n.score) for n in level.retrieve(QUESTION)
        ]
        assert {n.why for n in found} == {found[0].why}
        assert found[0].why.startswith("the chunks by context: the question does not read ")

    @pytest.mark.parametrize("by", ["dense", "hybrid", "text"])
    def test_the_way_to_search_is_obeyed(self, store, embed_model, by):
        found = retrieved(store, embed_model, by=by)
        level = retrieved(store, embed_model, level=0, by=by)
        assert ids(found) == ids(level)
        assert f"the chunks by {by}: " in found[0].why

    @pytest.mark.parametrize("question", [WHOLE, "Give me a summary, please."])
    def test_a_question_about_the_whole_is_answered_by_an_outline(self, index, question):
        found = index.as_retriever(token_budget=150).retrieve(question)
        assert sorted(record(n.node).whole_document for n in found) == sorted(SIZES)
        assert sum(len(get_tokenizer()(n.text)) for n in found) <= 150
        scores = [n.score for n in found]
        assert scores == sorted(scores, reverse=True)
        assert found[0].why.startswith("all levels for an outline: ")
        assert asyncio.run(index.as_retriever(token_budget=150).aretrieve(question)) == found
        part = index.as_retriever().retrieve("Who met a falcon?")
        assert part[0].why.startswith("the chunks by context: ")

    def test_an_outline_keeps_to_filters_and_top_k(self, index):
        everything = index.as_retriever(token_budget=None).retrieve(WHOLE)
        for top_k in range(1, len(everything) + 1):
            few = index.as_retriever(token_budget=None, top_k=top_k).retrieve(WHOLE)
            assert len(few) <= top_k
            assert sum(each.score for each in few) == pytest.approx(1)  # of the text
        one = index.as_retriever(token_budget=None, top_k=1).retrieve(WHOLE)
        assert [each.score for each in one] == [1.0]
        filters = where(author="Bo")
        found = index.as_retriever(filters=filters).retrieve(WHOLE)
        assert found
        assert set(ids(found)) <= passing_ids(filters, index.store.get_nodes())

    def test_the_way_of_ranking_does_not_change_an_outline(self, index):
        plain = index.as_retriever().retrieve(WHOLE)
        assert index.as_retriever(by="dense").retrieve(WHOLE) == plain

    def test_a_model_that_does_not_tell_questions_apart_finds_chunks(self, store, embed_model):
        found = retrieved(store, embed_model, WHOLE)
        assert found[0].why.startswith("the chunks by context: ")

    def test_known_questions_are_embedded_once_for_a_model(self, store):
        retriever = HierarchyRetriever(store, model := HashingEmbedding())
        for question in (QUESTION, WHOLE, QUESTION):
            retriever.retrieve(question)
        assert len(model.batches) == 1


class Reverse(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        assert query_bundle.query_str
        return nodes[::-1]


@pytest.mark.spread
@pytest.mark.parametrize("options", [{"level": 0}, {}], ids=str)
@pytest.mark.parametrize("question", [QUESTION, WHOLE])
def test_postprocessors_get_the_selected_nodes(store, embed_model, question, options):
    options |= {"top_k": 5, "token_budget": 150}
    plain = retrieved(store, embed_model, question, **options)
    assert len(plain) > 1
    retriever = HierarchyRetriever(store, embed_model, postprocessors=[Reverse()], **options)
    assert retriever.retrieve(question) == plain[::-1]
    assert asyncio.run(retriever.aretrieve(question)) == plain[::-1]
    reorder = HierarchyRetriever(
        store, embed_model, postprocessors=[LongContextReorder()], **options
    )
    assert sorted(ids(reorder.retrieve(question))) == sorted(ids(plain))


class Copying(BaseNodePostprocessor):
    """Makes new nodes with scores of its own, as a reranker by a language model does."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return [NodeWithScore(node=node.node, score=0.5) for node in nodes]


@pytest.mark.parametrize("question", [QUESTION, WHOLE])
def test_what_a_postprocessor_makes_keeps_its_place(store, embed_model, question):
    plain = retrieved(store, embed_model, question)
    made = retrieved(store, embed_model, question, postprocessors=[Copying()])
    assert [each.model_copy(update={"score": 0.5}) for each in plain] == made
    assert all(each.snapshot == plain[0].snapshot for each in made)


@pytest.mark.parametrize("by", ["hybrid", "text", "context"])
def test_words_that_a_chunk_alone_has_find_it_first(store, nodes, embed_model, by):
    chunk = next(n for n in nodes if record(n).documents == ("b.txt",) and record(n).level == 0)
    words = "b0 b1 b2"
    assert all(word in chunk.text for word in words.split())
    options = {"by": by, "level": 0, "top_k": 1}
    query = QueryBundle(words, embedding=chunk.embedding)
    assert ids(HierarchyRetriever(store, embed_model, **options).retrieve(query)) == [chunk.node_id]


def linked(node_id, text, *, parent=None, children=(), level=0, top=0, **metadata):
    """A node with its links, as a pipeline would have written it."""
    parents = ((parent, 1.0),) if parent else ()
    documents = (metadata.pop("document", "a.txt"),)
    place = metadata_of(level=level, level_max=top, documents=documents, parents=parents)
    child = [RelatedNodeInfo(node_id=i) for i in children]
    return TextNode(
        id_=node_id,
        text=text,
        metadata=metadata | place,
        embedding=HashingEmbedding()._vector(text),
        relationships={NodeRelationship.CHILD: child} if child else {},
    )


@pytest.fixture
def small(tmp_path):
    """A tree of two levels, and beside it a chunk that no summary stands on."""
    (store := HierarchyStore(tmp_path)).add(
        [
            linked("c0", "kettle of copper", parent="p", tenant="x"),
            linked("c1", "kettle of marble", parent="p", tenant="x"),
            linked("c2", "kettle of granite", parent="p", tenant="y"),
            linked("p", "kettles", children=("c0", "c1", "c2"), level=1, top=1, tenant=["x", "y"]),
            linked("alone", "a falcon", document="b.txt", tenant="y"),
        ]
    )
    return store


def test_a_traversal_begins_at_every_root(small, embed_model):
    retriever = HierarchyRetriever(small, embed_model, mode="traversal", beam=1)
    assert ids(retriever.retrieve("a falcon"))[0] == "alone"
    assert sorted(ids(retriever.retrieve("kettles"))) == ["alone", "c0", "c1", "c2"]


def test_a_traversal_in_context_stays_where_the_beam_went(tmp_path, embed_model):
    (store := HierarchyStore(tmp_path)).add(
        [
            linked("a", "kettle", parent="p"),
            linked("b", "falcon", parent="q"),
            linked("p", "kettle", children=("a",), level=1, top=1),
            linked("q", "falcon", children=("b",), level=1, top=1),
        ]
    )
    options = {"mode": "traversal", "beam": 1, "by": "context"}
    assert ids(HierarchyRetriever(store, embed_model, **options).retrieve("kettle")) == ["a"]


@pytest.mark.filterwarnings("error")
def test_a_zero_vector_is_similar_to_nothing(small, embed_model):
    small.add([TextNode(id_="zero", text="A kettle.", embedding=[0.0] * 64)])
    ways = [{}, {"level": 0, "by": "dense"}, {"level": 0, "by": "context"}, {"mode": "collapsed"}]
    for options in (*ways, {"mode": "traversal", "beam": 1}):
        assert ids(HierarchyRetriever(small, embed_model, **options).retrieve("kettle"))
    assert HierarchicalIndex(small, embed_model).outline(question="kettle")


@pytest.mark.parametrize("mode", ["collapsed", "traversal", "document", "auto"])
def test_a_question_of_another_dimension_is_refused_in_every_mode(store, mode):
    retriever = HierarchyRetriever(store, HashingEmbedding(dim=32), mode=mode)
    with pytest.raises(InputError, match="64 dimensions, the question has 32"):
        retriever.retrieve(QUESTION)


def test_a_filter_on_chunks_alone_still_finds_documents(tmp_path, embed_model):
    nodes = tree(DocumentHierarchy)
    chunk = next(n for n in nodes if record(n).level == 0)
    chunk.metadata["page"] = 5
    (store := HierarchyStore(tmp_path)).add(nodes)
    options = {"mode": "document", "n_documents": 9}
    found = HierarchyRetriever(store, embed_model, filters=where(page=5), **options)
    assert ids(found.retrieve(QUESTION)) == [chunk.node_id]
    nothing = HierarchyRetriever(store, embed_model, filters=where(page=6), **options)
    assert nothing.retrieve(QUESTION) == []


@pytest.mark.parametrize("question", ["", " \n"])
def test_an_empty_question_is_refused(small, embed_model, question):
    retriever = HierarchyRetriever(small, embed_model)
    with pytest.raises(InputError, match="The question is empty"):
        retriever.retrieve(question)
    with pytest.raises(InputError, match="The question is empty"):
        asyncio.run(retriever.aretrieve(question))
