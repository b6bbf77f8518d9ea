"""An index after any history equals a fresh build of what it holds, node for node."""

import asyncio
import random
import re
import warnings
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from zlib import crc32

import pytest
import records
from fakes import HashingEmbedding, Replying
from histories import documents, history
from indexes import Hierarchy
from llama_index.core.schema import Document
from loopback import names_words

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    Node,
    RaptorHierarchy,
    SemanticHierarchy,
    sentence_splitter,
)
from hierindex.cache import Cache, cache_file, open_cache
from hierindex.errors import FallbackWarning
from hierindex.store import table
from hierindex.summarize import LLMRewriter, TwoStageSummarizer

KINDS = pytest.mark.parametrize("kind", [SemanticHierarchy, RaptorHierarchy, DocumentHierarchy])
RAPTOR_OR_ALL = pytest.mark.parametrize(
    "kind",
    [
        RaptorHierarchy,  # whose groups depend most on vectors
        pytest.param(SemanticHierarchy, marks=pytest.mark.slow),
        pytest.param(DocumentHierarchy, marks=pytest.mark.slow),
    ],
)
CHUNK_SIZE = 30  # tokens, so that few sentences make a tree
WORDS = "harbour sail mast anchor keel rudder tide wind deck crew flour yeast oven dough".split()


def hierarchy_of(kind, summarizer=None, dim=64, **options) -> Hierarchy:
    model = HashingEmbedding(model_name="known", dim=dim)
    return kind(model, summarizer, **{"max_children": 3, "summary_tokens": 40, **options})


def built(sources, uri: Path, hierarchy: Hierarchy, **options) -> HierarchicalIndex:
    options = {"hierarchy": hierarchy, "chunk_size": CHUNK_SIZE, **options}
    return HierarchicalIndex.build(sources, uri, **options)


def chunks_of(texts: dict[str, str], hierarchy: Hierarchy) -> list[Node]:
    splitter = sentence_splitter(hierarchy.embed_model, CHUNK_SIZE)
    return records.as_chunks(splitter(documents(texts)))


def held(index: HierarchicalIndex) -> list[Node]:
    return index.store.snapshot().nodes()


def grown(hierarchy: Hierarchy, texts: dict[str, str], *cache: Cache) -> list[Node]:
    return hierarchy.grow([chunks_of(texts, hierarchy)], *cache).nodes


def as_plain(nodes: list[Node]) -> list[dict]:
    """All that is known of each node, by id, but the origin of its document in an index."""
    return records.as_plain(replace(node, document_hash="", read_from="") for node in nodes)


def wrong_citations(nodes: list[Node], texts: dict[str, str]) -> tuple[int, int]:
    """How many sources the nodes cite, and how many of them are not what or where they should."""
    n_sources = n_wrong = 0
    for node in nodes:
        for quote in node.quotes:
            for document, start, end, *_ in quote.sources:
                text = texts[document]
                inside = 0 <= start < end <= len(text)
                verbatim = text[start:end] == node.text[quote.at : quote.to]
                n_sources += 1
                n_wrong += not inside or (quote.verbatim and not verbatim)
    return n_sources, n_wrong


def check_history(folder: Path, seed: int, *hierarchies: Hierarchy, n_edits: int = 4) -> None:
    """One index through all states of a set of documents, beside the tree of each state alone.

    Of several hierarchies, each state is built by each in turn.
    """
    states = [(t, h) for t in history(seed, n_edits) for h in hierarchies]
    for i, (texts, hierarchy) in enumerate(states):
        nodes = held(built(documents(texts), folder / "index", hierarchy, replace=True))
        fresh = grown(hierarchy, texts)
        assert as_plain(nodes) == as_plain(fresh), f"seed {seed}, state {i}"
        assert wrong_citations(nodes, texts)[1] == 0, f"seed {seed}, state {i}"
    apart = held(built(documents(texts), folder / "apart", hierarchy))
    assert as_plain(nodes) == as_plain(apart)


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("seed", range(100, 400))
def test_three_hundred_histories(tmp_path, kind, seed):
    check_history(tmp_path, seed, hierarchy_of(kind))


def text_of(name: str, n_sentences: int = 30) -> str:
    draw = random.Random(name)
    return "\n\n".join(
        f"In {name} the {draw.choice(WORDS)} of day {i} met the {draw.choice(WORDS)} at the gate."
        for i in range(n_sentences)
    )


@RAPTOR_OR_ALL
def test_a_line_on_top_of_a_file_moves_all_citations(tmp_path, kind):
    texts = {name: text_of(name) for name in "ab"}
    hierarchy = hierarchy_of(kind, max_children=6)
    built(documents(texts), tmp_path, hierarchy)
    texts["a"] = f"Bergen, in the winter of that year\n\n{texts['a']}"
    for _ in range(2):
        index = built(documents(texts), tmp_path, hierarchy)
        n_sources, n_wrong = wrong_citations(held(index), texts)
        assert (n_sources > 60, n_wrong) == (True, 0)
    assert index.last_build.usage.cached_summaries > 0


def half_verbatim(prompt: str) -> str:
    """A title, the first sentence of the passages, and the last one with its words turned."""
    passages = prompt.split(" ===\n")[-2].rpartition("\n")[0]
    sentence = passages.partition(". ")[0].rstrip(".")
    first, *words = re.findall(r"[^.\n]+", passages)[-1].split()
    turned = " ".join([*words, first.lower()]).capitalize()
    return f"Title: {' '.join(sentence.split()[-3:])}\n\n{sentence}. {turned}."


@pytest.fixture
def llm():
    return Replying(reply=half_verbatim)


def by_llm(llm: Replying, **options) -> TwoStageSummarizer:
    return TwoStageSummarizer(LLMRewriter(llm), **options)


@pytest.mark.spread
@KINDS
@pytest.mark.parametrize("is_rewritten", [True, False])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_any_history(tmp_path, llm, kind, is_rewritten, seed):
    summarizer = by_llm(llm) if is_rewritten else None
    check_history(tmp_path, seed, hierarchy_of(kind, summarizer), n_edits=2)


@RAPTOR_OR_ALL
def test_any_history_in_an_event_loop_on_one_cache(tmp_path, llm, kind):
    hierarchy = hierarchy_of(kind, by_llm(llm))

    with open_cache(str(tmp_path)) as cache:
        for texts in history(7, 1):
            nodes = grown(hierarchy, texts, cache)
            chunks = records.as_text_nodes(chunks_of(texts, hierarchy))
            fresh = map(Node.of, asyncio.run(hierarchy.acall(chunks)))
            assert as_plain(nodes) == as_plain(fresh)
            assert wrong_citations(nodes, texts)[1] == 0


def half_invented(prompt: str) -> str:
    """Of every other prompt, also for a correction, sentences that nothing supports."""
    invented = "Bananas ripen in 777 days. Planets circle 888 distant suns."
    return invented if crc32(prompt.encode()) % 2 else half_verbatim(prompt)


@pytest.mark.parametrize(
    "unsupported", ["drop", *(pytest.param(w, marks=pytest.mark.slow) for w in ("extract", "keep"))]
)
@RAPTOR_OR_ALL
def test_any_history_with_another_model_of_that_name(tmp_path, kind, unsupported):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        summarizer = by_llm(Replying(reply=half_invented), unsupported=unsupported)
        hierarchies = [hierarchy_of(kind, summarizer, dim) for dim in (64, 16)]
        check_history(tmp_path, 1, *hierarchies, n_edits=0)


@pytest.mark.parametrize("remembered", [True, False])
def test_a_model_that_does_not_tell_what_it_is_judges_each_summary_again(tmp_path, llm, remembered):
    """Of other weights under one name; an extract depends on no vector."""
    texts = {name: text_of(name, 12) for name in "ab"}
    for dim in 64, 16:
        hierarchy = hierarchy_of(DocumentHierarchy, None if remembered else by_llm(llm), dim)
        hierarchy.embed_model.model_name = "unknown"
        index = built(documents(texts), tmp_path, hierarchy)
        fresh = grown(hierarchy, texts)
        assert as_plain(held(index)) == as_plain(fresh)
    assert index.last_build.usage.cached_summaries > 0


@pytest.mark.parametrize(
    ("unsupported", "group_documents"),
    [
        ("drop", True),
        pytest.param("keep", False, marks=pytest.mark.slow),
        pytest.param("extract", True, marks=pytest.mark.slow),
    ],
)
def test_twelve_documents_at_once_or_one_by_one(tmp_path, unsupported, group_documents):
    texts = {f"{i:02}": text_of(f"place {i}", 12) for i in range(12)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        hierarchy = hierarchy_of(
            DocumentHierarchy,
            by_llm(Replying(reply=half_invented), unsupported=unsupported),
            group_documents=group_documents,
        )
        for n in (1, 8, 12):
            some = dict(list(texts.items())[:n])
            index = built(documents(some), tmp_path / "one by one", hierarchy)
        at_once = built(documents(texts), tmp_path / "at once", hierarchy)
    nodes = held(at_once)
    assert as_plain(held(index)) == as_plain(nodes)
    summaries = [node for node in nodes if node.level]
    kinds = {"abstractive", "extractive_fallback"} if unsupported == "drop" else {"abstractive"}
    assert {node.kind for node in summaries} == kinds
    assert len({node.grounding for node in summaries}) > 1


class TestWhatIsPaidFor:
    """Once, wherever the documents move; and what is deleted leaves nothing behind."""

    @pytest.fixture
    def texts(self) -> dict[str, str]:
        return {name: text_of(name, 12) for name in ("Aberdeen", "Bergen", "Cuxhaven", "Dover")}

    @RAPTOR_OR_ALL
    def test_a_renamed_document_is_asked_about_no_more(self, tmp_path, llm, texts, kind):
        hierarchy = hierarchy_of(kind, by_llm(llm))
        plain = [Document(text=text, id_=name) for name, text in texts.items()]
        before = held(built(plain, tmp_path, hierarchy))
        n_asked, n_embedded = len(llm.prompts), len(hierarchy.embed_model.batches)
        texts = {name.replace("Bergen", "Bergen 2"): text for name, text in texts.items()}
        renamed = [Document(text=text, id_=name) for name, text in texts.items()]
        index = built(renamed, tmp_path, hierarchy)
        nodes = held(index)
        assert len(llm.prompts) == n_asked
        assert len(hierarchy.embed_model.batches) == n_embedded
        n_summaries = sum(node.level > 0 for node in nodes)
        assert index.last_build.usage.cached_summaries == n_summaries
        assert {node.id for node in nodes} != {node.id for node in before}
        assert wrong_citations(nodes, texts)[1] == 0

    @RAPTOR_OR_ALL
    def test_after_a_deletion_only_changed_ancestors_are_asked_for(
        self, tmp_path, llm, texts, kind
    ):
        hierarchy = hierarchy_of(kind, by_llm(llm))
        index = built(documents(texts), tmp_path, hierarchy)
        assert b"Bergen" in cache_file(str(tmp_path)).read_bytes()
        index.store.delete("Bergen")
        assert b"Bergen" not in cache_file(str(tmp_path)).read_bytes()
        staying = {node.id for node in held(index) if node.level}
        n_asked, texts = len(llm.prompts), {k: v for k, v in texts.items() if k != "Bergen"}
        index = built(documents(texts), tmp_path, hierarchy)
        nodes = [node for node in held(index) if node.level]
        new = {node.id for node in nodes} - staying
        assert index.last_build.usage.cached_summaries == len(nodes) - len(new) > 0
        assert len(llm.prompts) - n_asked == index.last_build.usage.llm_calls == len(new)

    @pytest.mark.filterwarnings("ignore::hierindex.errors.FallbackWarning")
    @pytest.mark.parametrize("reply", [half_verbatim, half_invented])
    def test_a_build_without_a_document_forgets_it(self, tmp_path, texts, reply):
        """And what the model wrote to correct sentences, also where that did not help."""
        llm = Replying(reply=reply)
        hierarchy = hierarchy_of(DocumentHierarchy, by_llm(llm))
        built(documents(texts), tmp_path, hierarchy)
        del texts["Bergen"]
        for _ in range(2):  # the generation before the last one is kept
            built(documents(texts), tmp_path, hierarchy)
        assert b"Dover" in cache_file(str(tmp_path)).read_bytes()
        assert b"Bergen" not in cache_file(str(tmp_path)).read_bytes()

    @pytest.mark.parametrize(
        "dies", ["before it publishes", pytest.param("before it forgets", marks=pytest.mark.slow)]
    )
    def test_a_text_of_a_build_that_died_does_not_outlive_its_document(
        self, tmp_path, llm, texts, monkeypatch, dies
    ):
        def die(*args, **kwargs):
            raise KeyboardInterrupt

        def whole() -> bytes:
            files = cache_file(str(tmp_path)).parent.glob(".cache.sqlite*")
            return b"".join(file.read_bytes() for file in files)

        hierarchy = hierarchy_of(DocumentHierarchy, by_llm(llm), group_documents=False)
        owner, method, states = table.Table, "replace", [[*"AC"], [*"ABC"], [*"AC"]]
        if dies == "before it forgets":
            owner, method, states = table, "sweep", [[*"ABC"], [*"AC"], [*"AC"]]
        for i, initials in enumerate(states):
            some = {name: text for name, text in texts.items() if name[0] in initials}
            with monkeypatch.context() as patch:
                if i == 1:
                    patch.setattr(owner, method, die)
                with pytest.raises(KeyboardInterrupt) if i == 1 else nullcontext():
                    built(documents(some), tmp_path, hierarchy)
            if i == 1:
                assert b"Bergen" in whole()
        assert b"Cuxhaven" in whole()
        assert b"Bergen" not in whole()
        n_asked = len(llm.prompts)
        built(documents(some), tmp_path, hierarchy)
        assert len(llm.prompts) == n_asked

    def test_an_estimate_keeps_no_text(self, tmp_path, llm, texts):
        hierarchy = hierarchy_of(SemanticHierarchy, by_llm(llm))
        built(documents(texts), tmp_path, hierarchy, dry_run=True)
        index = built(documents(texts), tmp_path, hierarchy)
        assert index.last_build.usage.cached_summaries == 0
        fresh = grown(hierarchy, texts)
        assert as_plain(held(index)) == as_plain(fresh)

    def test_a_fallback_is_tried_again(self, tmp_path, texts):
        hierarchy_by = partial(hierarchy_of, DocumentHierarchy)
        silent, answering = Replying(reply=lambda prompt: ""), Replying(reply=names_words)
        with pytest.warns(FallbackWarning):
            first = built(documents(texts), tmp_path, hierarchy_by(by_llm(silent)))
        second = built(documents(texts), tmp_path, hierarchy_by(by_llm(answering)))
        assert first.last_build.usage.fallbacks > 0
        assert second.last_build.usage.fallbacks == second.last_build.usage.cached_summaries == 0
