"""Titles of nodes, by documents whose sections and words are known."""

import warnings
from contextlib import nullcontext

import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import Document
from loopback import LoopbackServer
from records import as_plain
from tenacity import wait_none

from hierindex import (
    DocumentHierarchy,
    LLMRewriter,
    RaptorHierarchy,
    SemanticHierarchy,
    TwoStageSummarizer,
)
from hierindex.cache.cache import Cache, open_cache
from hierindex.core.titles import distinctive_phrases
from hierindex.errors import FallbackWarning
from hierindex.models.client import load_llm
from hierindex.node import HEADINGS, TITLE
from hierindex.read.markdown import markdown_headings
from hierindex.read.split import sentence_splitter, split_documents

KINDS = pytest.mark.parametrize("kind", [SemanticHierarchy, RaptorHierarchy, DocumentHierarchy])
SAILS = " ".join(f"The sail of canvas number {i} hangs in the wind." for i in range(8))
STONES = " ".join(f"The stone of granite number {i} grinds the flour." for i in range(8))
MILL = f"# The mill\n\n## Sails\n\n{SAILS}\n\n## Stones\n\n{STONES}"
HARBOUR = " ".join(f"A crane lifted crate number {i} from the ferry." for i in range(8))


def document(name, text, **metadata):
    headings = [list(each) for each in markdown_headings(text)]
    metadata |= {HEADINGS: headings} if headings else {}
    return Document(
        id_=name, text=text, metadata=metadata, excluded_embed_metadata_keys=[*metadata]
    )


def hierarchy_of(kind, summarizer=None, **options):
    options = {"max_children": 3, "summary_tokens": 40, **options}
    return kind(HashingEmbedding(model_name="known"), summarizer, **options)


def grown(kind, *documents, **options):
    hierarchy = hierarchy_of(kind, **options)
    chunks = split_documents(documents, sentence_splitter(hierarchy.embed_model, 30))
    return hierarchy.grow([chunks]).nodes


def section_of(node):
    return node.metadata.get("section")


@KINDS
def test_every_node_has_a_title_of_its_own(kind):
    nodes = grown(kind, document("mill.md", MILL), document("harbour.md", HARBOUR))
    assert all(node.title for node in nodes)
    siblings = {}
    for node in nodes:
        siblings.setdefault(next(iter(node.parents), ("",))[0], []).append(node)
    for group in siblings.values():
        titles = [node.title for node in group]
        if not any(section_of(node) for node in group):
            assert titles == distinctive_phrases([node.text for node in group])


def test_a_node_of_all_chunks_of_a_section_has_its_heading():
    text = f"# The mill\n\n## Stones\n\n{STONES} {STONES}\n\n## Owner\n\nShe is old."
    nodes = grown(SemanticHierarchy, document("mill.md", text), max_children=4)
    leaves = {n.id: {n.id} for n in nodes if n.level == 0}
    for node in nodes:
        for parent, _ in node.parents:
            leaves.setdefault(parent, set()).update(leaves[node.id])
    stones = {n.id for n in nodes if not n.level and "Stones" in section_of(n)}
    named = {n.id for n in nodes if n.title == "Stones"}
    assert named == {i for i, under in leaves.items() if under == stones}
    assert len(stones) > 1
    assert [n.title for n in nodes if "old" in n.text and not n.level] == ["Owner"]


def test_a_heading_that_two_sections_share_names_neither():
    text = f"# Part\n\n{SAILS}\n\n# Part\n\n{STONES}"
    nodes = grown(SemanticHierarchy, document("a", text), max_children=12)
    assert [n.level for n in nodes if n.title == "Part"] == [nodes[-1].level]


@pytest.mark.spread
@pytest.mark.parametrize(
    ("metadata", "title"),
    [
        ({TITLE: " The old\n mill ", "file_name": "mill.md"}, "The old mill"),
        ({TITLE: " ", "file_name": "mill.md"}, "mill"),
        ({TITLE: ["a", "list"], "file_name": "mill.tar.gz"}, "mill.tar"),
        ({TITLE: "word " * 99}, ("word " * 20).strip()),
    ],
)
@KINDS
def test_a_whole_document_has_its_title_or_the_name_of_its_file(kind, metadata, title):
    """Also where one heading stands above all."""
    options = {"scope": "document"} if kind is RaptorHierarchy else {}
    nodes = grown(kind, document("a", MILL, **metadata), document("b", HARBOUR), **options)
    assert [n.title for n in nodes if n.whole_document == "a"] == [title]
    (other,) = [n for n in nodes if n.whole_document == "b"]
    assert other.title in other.text or ", " in other.title


def test_a_title_is_neither_in_ids_nor_in_what_is_embedded():
    text = document("a", HARBOUR, title="One"), document("a", HARBOUR, title="Another")
    one, other = (grown(DocumentHierarchy, each) for each in text)
    assert [n.id for n in one] == [n.id for n in other]
    assert [n.embedded_text for n in one] == [n.embedded_text for n in other]
    assert [one[-1].title, other[-1].title] == ["One", "Another"]
    assert "One" not in one[-1].llm_text.replace("title: One", "")


class TestByAModel:
    """Titles come with the summaries, in one call."""

    @pytest.fixture
    def documents(self):
        return [document(name, SAILS.replace("sail", f"{name} sail")) for name in "abcd"]

    @staticmethod
    def grown(reply, documents, cache=None, **options):
        """The summaries, the usage and the number of requests."""
        with LoopbackServer(reply=reply) as server, warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            prompt = {"prompt": options.pop("prompt")} if "prompt" in options else {}
            llm = load_llm("tiny", server.base_url)
            rewriter = LLMRewriter(llm, wait=wait_none(), **prompt)
            hierarchy = hierarchy_of(DocumentHierarchy, TwoStageSummarizer(rewriter, **options))
            chunks = split_documents(documents, sentence_splitter(hierarchy.embed_model, 30))
            with open_cache(str(cache)) if cache else nullcontext(Cache()) as memory:
                tree = hierarchy.grow([chunks], memory)
        return [n for n in tree.nodes if n.level], tree.usage, len(server.requests)

    def test_in_the_call_of_the_summary_and_from_the_cache(self, documents, tmp_path):
        def reply(prompt):
            return f"**Title:** “Sails {len(prompt)}”\n\nSummary: The sails hang in the wind."

        first, usage, n_asked = self.grown(reply, documents, tmp_path)
        assert n_asked == usage.llm_calls == len(first) - usage.cached_summaries
        for node in first:
            assert node.title.startswith("Sails ")
            assert node.text == "The sails hang in the wind."
            assert node.kind == "abstractive"
        again, usage, n_asked = self.grown(reply, documents, tmp_path)
        assert (n_asked, usage.cached_summaries) == (0, len(first))
        assert as_plain(again) == as_plain(first)

    def test_headings_and_documents_come_first(self):
        documents = [document("a", MILL, title="Mill"), document("b", HARBOUR, title="Harbour")]
        nodes, *_ = self.grown(lambda _: "Title: Written\n\nThe sails hang.", documents)
        assert sorted(n.title for n in nodes) == ["Harbour", "Mill", "Written"]

    def test_of_a_prompt_of_ones_own_no_title_is_expected(self, documents):
        reply = "Title: A song of the sea\nThe sails hang in the wind."
        nodes, *_ = self.grown(lambda _: reply, documents, prompt="Summarise: {text}")
        assert {n.text for n in nodes} == {reply}
        assert "A song of the sea" not in {n.title for n in nodes}

    def test_a_fallback_gets_a_phrase(self, documents):
        reply = "Title: Bananas\nPlanets circle distant suns forever."
        nodes, *_ = self.grown(lambda _: reply, documents, min_grounding=0.9)
        assert {n.kind for n in nodes} == {"extractive_fallback"}
        assert all(n.title not in ("", "Bananas") for n in nodes)

    def test_a_title_alone_is_no_summary(self, documents):
        nodes, *_ = self.grown(lambda _: "Title: Bananas", documents)
        assert {n.kind for n in nodes} == {"extractive_fallback"}
