"""Levels by words, beside what they mean said plainly: of the chunks under each node."""

import asyncio
from functools import partial
from itertools import cycle

import numpy as np
import pytest
from fakes import HashingEmbedding
from histories import documents, history
from indexes import built as built_of
from indexes import where
from llama_index.core.schema import Document
from store.trees import record, tree

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    HierarchyStore,
    RaptorHierarchy,
    SemanticHierarchy,
)
from hierindex.errors import LevelError
from hierindex.export import to_langchain_documents
from hierindex.node import shared_section

WORDS = ("top", "documents", "sections", "chunks")
QUESTION = "the lamp of the harbour met the gate"
ALL = {"top_k": 1000, "token_budget": None}


def guide(name: str, topics: str, n: int = 6, title: str = "# The guide of {}\n\n") -> Document:
    """A text of a title and sections of some paragraphs, in which the section is named."""
    parts = [
        f"## On {topic}\n\n"
        + "\n\n".join(f"The {topic} of {name} met the gate on day {i} of it." for i in range(n))
        for topic in topics.split()
    ]
    return Document(id_=name, text=title.format(name) + "\n\n".join(parts), metadata={"by": name})


def built(sources: list[Document], uri, kind=SemanticHierarchy):
    """An index of Markdown, each document with its headings."""
    return built_of(sources, uri, kind, chunk_size=30, max_children=3, summary_tokens=40)


def with_headings(*sources: Document) -> list[Document]:
    for each in sources:
        lines = each.text.splitlines(keepends=True)
        starts = [sum(map(len, lines[:i])) for i in range(len(lines))]
        each.metadata["headings"] = [
            [line.count("#"), line.strip("# \n"), start]
            for line, start in zip(lines, starts, strict=True)
            if line.startswith("#")
        ]
        each.excluded_embed_metadata_keys = each.excluded_llm_metadata_keys = ["headings"]
    return list(sources)


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> HierarchicalIndex:
    """Two guides with headings, and a note without."""
    note = Document(id_="note", text="The keeper of the note slept.", metadata={"by": "note"})
    sources = with_headings(guide("a", "lamp oil wick"), guide("b", "harbour keel", 9), note)
    return built(sources, tmp_path_factory.mktemp("index"))


class Meant:
    """The nodes that a word means, from links and the metadata of chunks alone."""

    def __init__(self, nodes):
        self.by_id = {node.node_id: node for node in nodes}
        self.chunks = {i: self._under(i) for i in self.by_id}
        self.is_chunk = {i: chunks == [i] for i, chunks in self.chunks.items()}

    def _under(self, node_id):
        children = [c.node_id for c in self.by_id[node_id].child_nodes or ()]
        return [c for child in children for c in self._under(child)] if children else [node_id]

    def _values(self, chunks):
        documents = {record(self.by_id[c]).documents for c in chunks}
        return documents, [self.by_id[c].metadata.get("section", "") for c in chunks]

    def _is_of_a_section(self, node_id):
        named, sections = self._values(self.chunks[node_id])
        if len(named) > 1 or not all(sections):
            return False
        chunks = [i for i in self.by_id if self.is_chunk[i] and self._values([i])[0] == named]
        everywhere = filter(None, self._values(chunks)[1])
        return len({*sections}) == 1 or shared_section(sections) != shared_section(everywhere)

    def _without_a_parent_in(self, ids, there):
        return {i for i in there if ids.isdisjoint(p for p, _ in record(self.by_id[i]).parents)}

    def sections(self):
        parts = {i for i in self.by_id if not self.is_chunk[i] and self._is_of_a_section(i)}
        chunks = {i for i in self.by_id if self.is_chunk[i]}
        return self._without_a_parent_in(parts, parts | chunks)

    def documents(self):
        there = set()
        for name in {name for i in self.by_id for name in self.of(i)}:
            chunks = {i for i in self.by_id if self.is_chunk[i] and self.of(i) == {name}}
            whole = {i for i in self.by_id if {*self.chunks[i]} == chunks}
            there |= self._without_a_parent_in(whole, whole)
        return there

    def of(self, node_id):
        return {*record(self.by_id[node_id]).documents}

    def top(self):
        return {i for i, node in self.by_id.items() if not record(node).parents}


def at(index, level, **options):
    found = index.as_retriever(level=level, **ALL | options).retrieve(QUESTION)
    return [node.node_id for node in found]


def test_words_mean_what_they_say(index) -> None:
    meant = Meant(index.store.get_nodes())
    for word in ("top", "documents", "sections"):
        assert set(at(index, word)) == getattr(meant, word)(), word
    assert set(at(index, "chunks")) == set(at(index, 0))
    highest = index.store.snapshot().highest_level()
    assert at(index, "top") == at(index, highest)


def test_a_section_is_one_node_and_what_is_in_none_is_found(index) -> None:
    found = index.as_retriever(level="sections", **ALL).retrieve(QUESTION)
    sections = [node.metadata.get("section") for node in found]
    assert max(record(node.node).level for node in found) > 0
    assert sections.count(None) == 1  # the note
    assert {s.split(" › ")[1] for s in sections if s and " › " in s} == {
        f"On {topic}" for topic in ("lamp", "oil", "wick", "harbour", "keel")
    }
    meant = Meant(index.store.get_nodes())
    for word in ("documents", "sections"):
        under = [chunk for i in at(index, word) for chunk in meant.chunks[i]]
        assert sorted(under) == sorted(i for i in meant.by_id if meant.is_chunk[i]), word


@pytest.mark.spread
@pytest.mark.parametrize("by", ["dense", "hybrid", "text", "context"])
@pytest.mark.parametrize("word", WORDS)
def test_the_first_are_the_best_of_all(index, word, by) -> None:
    ask = partial(index.as_retriever, level=word, by=by, token_budget=None)
    everything = {n.node_id: n.score for n in ask(top_k=1000).retrieve(QUESTION)}
    assert everything
    for top_k in (1, 2, 5):
        found = ask(top_k=top_k).retrieve(QUESTION)
        assert {n.node_id for n in found} <= everything.keys()
        if by != "context":  # whose scores depend on the candidates
            np.testing.assert_allclose([n.score for n in found], [*everything.values()][:top_k])


@pytest.mark.parametrize("word", WORDS)
def test_filters_are_evaluated_on_the_chunks_of_the_same_nodes(index, word) -> None:
    of_a = where(by="a")
    meant = Meant(index.store.get_nodes())
    own = {i for i in at(index, word) if {*meant.of(i)} == {"a"}}
    assert set(at(index, word, filters=of_a)) == own
    some = {i for i in at(index, word) if "a" in meant.of(i)}
    assert set(at(index, word, filters=of_a, partial_summaries=True)) == some
    text = where("text_match", by="a")  # not exact in LanceDB
    assert set(at(index, word, filters=text)) == own


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        (SemanticHierarchy, 3),
        (DocumentHierarchy, 0),
        pytest.param(RaptorHierarchy, 0, marks=pytest.mark.slow),
    ],
)
def test_words_mean_the_tree_of_today(tmp_path, kind, seed) -> None:
    """Through edits of documents with and without headings."""
    for texts in history(seed, 1):
        check(built(documents(texts), tmp_path, kind))


def check(index) -> None:
    meant = Meant(index.store.get_nodes())
    for word in ("documents", "sections"):
        there = getattr(meant, word)()
        named = {name for i in there for name in meant.of(i)}
        lacking = {name for i in meant.by_id for name in meant.of(i)} - named
        headings = any(node.metadata.get("section") for node in meant.by_id.values())
        if (lacking and word == "documents") or (not headings and word == "sections"):
            with pytest.raises(LevelError, match=f"level '{word}' needs"):
                at(index, word)
        else:
            found = {*at(index, word)}
            assert found <= there, word
            texts = ({meant.by_id[i].text for i in ids} for ids in (found, there))
            assert len({*map(frozenset, texts)}) == 1, word  # copies are one


def test_words_mean_what_a_deletion_left(tmp_path) -> None:
    sources = with_headings(*(guide(name, "lamp oil wick") for name in "abc"))
    index = built(sources, tmp_path)
    before = {word: set(at(index, word)) for word in WORDS}
    index.store.delete("b")
    after = {word: set(at(index, word)) for word in WORDS}
    meant = Meant(index.store.get_nodes())
    assert after["top"] == meant.top()
    assert after["sections"] == meant.sections() < before["sections"]
    assert after["documents"] == meant.documents() < before["documents"]
    assert len(after["documents"]) == 2
    section = next(i for i in after["sections"] if not meant.is_chunk[i])
    index.store.delete_nodes([section])
    children = {child.node_id for child in meant.by_id[section].child_nodes}
    assert set(at(index, "sections")) == after["sections"] - {section} | children
    index.store.delete_nodes(list(after["documents"])[:1])
    with pytest.raises(LevelError, match="each document, which 1 of 2 lack"):
        at(index, "documents")


def test_a_word_for_which_there_is_nothing_is_one_sentence(tmp_path) -> None:
    store = HierarchyStore(tmp_path)
    store.add(tree(RaptorHierarchy))
    index = HierarchicalIndex(store, HashingEmbedding())
    asks = [
        lambda word: at(index, word),
        lambda word: asyncio.run(index.as_retriever(level=word).aretrieve(QUESTION)),
        lambda word: index.ask(QUESTION, level=word),
        lambda word: index.as_query_engine(level=word),
        lambda word: to_langchain_documents(index, word),
    ]
    for ask, word in zip(asks, cycle(["documents", "sections"]), strict=False):
        with pytest.raises(LevelError, match=rf"^level '{word}' needs .*; [^.]*0 to \d+\.$"):
            ask(word)


@pytest.mark.parametrize("word", WORDS)
def test_every_place_that_takes_a_level_takes_words(index, word) -> None:
    there = set(at(index, word))
    assert {d.id for d in to_langchain_documents(index, word)} == there
    answer = index.ask(QUESTION, level=word, **ALL)
    assert {source.id for source in answer.sources} == there
    engine = index.as_query_engine(level=word, **ALL)
    assert {node.node_id for node in engine.query(QUESTION).source_nodes} == there
    sources = index.compare(QUESTION, level=word, **ALL).sources
    assert {source.id for source in sources} == there


def test_top_and_chunks_are_numbers(index) -> None:
    highest = index.store.snapshot().highest_level()
    assert set(at(index, ["top", "chunks"])) == set(at(index, [0, highest]))
    for word, number in (("top", highest), ("chunks", 0)):
        assert at(index, word, mode="traversal") == at(index, number, mode="traversal")
