"""Plain functions embed, summarise and answer wherever a model does."""

import asyncio
from functools import partial

import numpy as np
import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import Document

from hierindex import (
    ExtractiveSynthesizer,
    HierarchicalIndex,
    HierarchyRetriever,
    Node,
    SemanticHierarchy,
    sentence_splitter,
)
from hierindex.errors import FallbackWarning, InputError, ModelError
from hierindex.summarize import LLMRewriter, TwoStageSummarizer

QUESTION = "Why was the bridge over the Aare closed?"
RIVERS = ["Aare", "Birs", "Thur"]
DOCUMENTS = [
    Document(
        id_=river,
        text="\n\n".join(
            f"The bridge over the {river} was closed in {1900 + year} because of ice. "
            f"It opened again in {1901 + year} after {year} weeks of work on its arches."
            for year in range(8)
        ),
    )
    for river in RIVERS
]
embedded, summarized, answered = list[list[str]](), list[tuple[str, int]](), list[str]()


def embed(texts):
    embedded.append(texts)
    return np.array(HashingEmbedding().get_text_embedding_batch(texts))


def other(texts):
    return embed(texts)


def summarize(text, max_tokens):
    summarized.append((text, max_tokens))
    return text.partition(".")[0] + "."


def answer(prompt):
    answered.append(prompt)
    return "It was closed because of ice [1]."


@pytest.fixture(autouse=True)
def nothing_called():
    for calls in (embedded, summarized, answered):
        calls.clear()


def hierarchy_of(**options):
    return SemanticHierarchy(**{"embed_model": embed, "summarizer": summarize, **options})


def built(folder, documents=DOCUMENTS, **options):
    options = {"hierarchy": hierarchy_of(), **options}
    return HierarchicalIndex.build(documents, folder, **options)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """An index that no test changes."""
    return built(tmp_path_factory.mktemp("functions"))


def nodes_of(index):
    return index.table.snapshot().nodes()


class TestSummaries:
    def test_they_are_checked_and_cited(self, tmp_path):
        index = built(tmp_path)
        summaries = [node for node in nodes_of(index) if node.level]
        assert {node.kind for node in summaries} == {"abstractive"}
        assert {budget for _, budget in summarized} == {SemanticHierarchy().summary_tokens}
        assert all(quote.source for node in summaries for quote in node.quotes)
        assert index.info()["summarizer"] == "summarize()"

    def test_what_the_text_does_not_say_is_replaced(self, tmp_path):
        def invent(text, max_tokens):
            return "A dragon of 1234 tonnes burnt the Golden Gate Bridge."

        nodes = nodes_of(built(tmp_path, hierarchy=hierarchy_of(summarizer=invent)))
        assert not [node for node in nodes if "dragon" in node.text]
        assert {node.grounding.replaced for node in nodes if node.level == 1} == {1}

    def test_each_text_is_written_once(self, tmp_path):
        first = nodes_of(built(tmp_path))
        n = len(summarized)
        assert n == len({*summarized}) > len(RIVERS)
        again = built(tmp_path)
        assert len(summarized) == n
        assert [node.id for node in nodes_of(again)] == [node.id for node in first]

    def test_an_update_asks_for_the_function(self, tmp_path):
        index, new = built(tmp_path), Document(id_="Sihl", text="The Sihl has no bridge at all.")
        asks = r"^The summariser is the function summarize\(\); pass it as summarizer=, or to an "
        with pytest.raises(InputError, match=asks):
            index.update(new)
        summarized.clear()
        report = index.update(new, hierarchy=hierarchy_of())
        assert report.added == 1
        assert len(summarized) == 1  # of the root
        with pytest.raises(InputError, match=r"'function': 'summarize\(\)'.*the hierarchy has"):
            index.update(new, hierarchy=hierarchy_of(summarizer=None))

    def test_an_estimate_calls_nothing(self, tmp_path):
        built(tmp_path, dry_run=True)
        assert not summarized

    @pytest.mark.parametrize("error", [RuntimeError, KeyError])
    def test_a_failure_leaves_the_extract(self, tmp_path, error):
        def fail(text, max_tokens):
            if "Birs" in text:
                raise error("busy")
            return summarize(text, max_tokens)

        told = rf"fail\(\) gave no summary for .*it raised {error.__name__}\('busy'\)"
        with pytest.warns(FallbackWarning, match=told):
            index = built(tmp_path / "i", hierarchy=hierarchy_of(summarizer=fail))
        kinds = {node.documents: node.kind for node in nodes_of(index) if node.level == 1}
        assert kinds[("Birs",)] == "extractive_fallback"
        assert kinds[("Aare",)] == "abstractive"

    @pytest.mark.parametrize(
        ("write", "expected"),
        [
            (lambda: 1 / 0, pytest.raises(ZeroDivisionError)),
            (lambda: "\n", pytest.warns(FallbackWarning, match="it wrote nothing")),
            (lambda: 7, pytest.raises(ModelError, match=r"write_it\(\) must return text, got 7")),
        ],
        ids=["error of its code", "nothing", "no text"],
    )
    def test_what_is_no_summary(self, tmp_path, write, expected):
        def write_it(text, max_tokens):
            return write()

        with expected:
            built(tmp_path, hierarchy=hierarchy_of(summarizer=write_it))


class TestVectors:
    def test_a_question_is_embedded_as_a_text(self, index):
        index = HierarchicalIndex.open(index.table.uri, embed)
        embedded.clear()
        sources = index.ask(QUESTION, top_k=2).sources
        assert embedded[0] == [QUESTION]
        assert {source.citations[0].document for source in sources} == {"Aare"}
        assert index.info()["embed_model"] == "embed()"

    def test_no_vector_of_other_code_is_used(self, tmp_path):
        built(tmp_path)
        embedded.clear()
        index = built(tmp_path)
        chunks = {node.embedded_text for node in nodes_of(index) if not node.level}
        assert chunks <= {text for texts in embedded for text in texts}

    def test_another_function_or_none_is_refused(self, index):
        cannot = r"'embed\(\)', which cannot be loaded by name; pass it as embed_model="
        with pytest.raises(ModelError, match=cannot):
            HierarchicalIndex.open(index.table.uri).ask(QUESTION)
        differ = r"embedding model 'embed\(\)', not with 'other\(\)'"
        with pytest.raises(InputError, match=differ):
            HierarchicalIndex.open(index.table.uri, other).ask(QUESTION)
        with pytest.raises(InputError, match=differ):
            HierarchyRetriever(index.store, other).retrieve(QUESTION)

    def test_each_door_takes_one(self, index):
        nodes = HierarchyRetriever(index.store, embed, top_k=2).retrieve(QUESTION)
        found = asyncio.run(HierarchyRetriever(index.store, embed, top_k=2).aretrieve(QUESTION))
        assert [node.node_id for node in found] == [node.node_id for node in nodes]
        assert Node.of(nodes[0].node).documents == ("Aare",)
        assert "ice" in str(ExtractiveSynthesizer(embed).synthesize(QUESTION, nodes))
        assert len(sentence_splitter(embed, chunk_size=64)(DOCUMENTS)) > len(RIVERS)
        assert HierarchicalIndex(index.store, embed).embed_model.model_name == "embed()"
        again = SemanticHierarchy.from_dict(
            hierarchy_of().to_dict(), embed_model=embed, summarizer=summarize
        )
        assert again.settings() == hierarchy_of().settings()

    @pytest.mark.parametrize(
        "vectors",
        [None, 1.0, [], [1.0, 2.0], [[1.0, 2.0]] * 2, [[1.0, 2.0], [3.0]], [["a"]]],
        ids=repr,
    )
    def test_what_is_no_vector_for_each_text_is_refused(self, index, vectors):
        def wrong(texts):
            return vectors

        told = r"wrong\(\) must return one vector of numbers for each of 1 texts, got"
        with pytest.raises(InputError, match=told):
            HierarchicalIndex(index.store, wrong).encoder().get_query_embedding(QUESTION)

    @pytest.mark.parametrize("option", ["embed_model", "summarizer"])
    def test_a_function_without_a_name_is_refused(self, option):
        for nameless in (lambda *given: given, partial(summarize, max_tokens=3)):
            with pytest.raises(InputError, match=r"remembers must be defined with def, got <?func"):
                SemanticHierarchy(**{option: nameless})
        with pytest.raises(InputError, match=f"^{option} must be .* got type"):
            SemanticHierarchy(**{option: dict})


class TestAnswers:
    def test_the_function_reads_passages_and_is_checked(self, index):
        asked = index.ask(QUESTION, llm=answer)
        assert asked.answer_kind == "llm"
        assert asked.answer == "It was closed because of ice [1?]."  # too unlike its passage
        assert [call.prompt for call in asked.calls] == answered
        assert "The bridge over the Aare was closed" in answered[0]
        assert QUESTION in answered[0]

    def test_any_door_takes_one(self, index):
        shown = []
        because = lambda prompt: "Because of ice."  # noqa: E731
        assert str(index.as_query_engine(llm=because).query(QUESTION)) == "Because of ice."
        chat = index.as_chat_engine(llm=because)
        assert str(chat.chat(QUESTION)) == "Because of ice."
        assert "".join(chat.stream_chat("And when?").response_gen) == "Because of ice."
        index.ask(QUESTION, llm=because, show=shown.append)
        assert "".join(shown) == "Because of ice."
        modes = ["compact", "tree_summarize"]
        attempts = index.compare(QUESTION, llm=because, response_modes=modes).attempts
        assert {attempt.answer.answer for attempt in attempts} == {"Because of ice."}

    def test_a_prompt_of_ours_asks_it_for_summaries(self, tmp_path):
        def write(prompt):
            answered.append(prompt)
            return "Title: Bridges\nSummary: The bridge over the Aare was closed because of ice."

        summarizer = TwoStageSummarizer(LLMRewriter(write))
        index = built(tmp_path, DOCUMENTS[:1], hierarchy=hierarchy_of(summarizer=summarizer))
        assert index.last_build.usage.llm_calls == len(answered) > 0
        assert nodes_of(index)[-1].title == "Bridges"
        n = len(answered)
        assert index.update(DOCUMENTS[1], llm=write).added == 1
        assert len(answered) > n

    def test_what_is_no_text_is_refused(self, index):
        with pytest.raises(ModelError, match=r"embed\(\) must return text, got array"):
            index.ask(QUESTION, llm=embed)
