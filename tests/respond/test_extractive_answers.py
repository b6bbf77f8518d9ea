import asyncio
import re

import llama_index.core
import pytest
from fakes import HashingEmbedding
from hypothesis import given
from hypothesis import strategies as st
from indexes import documents_of
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from records import metadata_of
from store.trees import HIERARCHIES, NOUNS, documents, record, tree

from hierindex import ExtractiveSynthesizer, HierarchicalIndex, Quote, Span, load_embed_model
from hierindex.errors import InputError

TEXT_OF = {document.doc_id: document.text for document in documents()}
FOREST = [node for hierarchy in HIERARCHIES for node in tree(hierarchy)]
NO_ANSWER = "Nothing in the index answers this."
QUOTED = {"supported": True, "by": "hierindex"}
QUESTION = "Did the lantern meet a falcon?"


def found(*nodes):
    return [NodeWithScore(node=node, score=1.0) for node in nodes]


def texts(*texts):
    return found(*(TextNode(text=text) for text in texts))


@pytest.fixture
def embed_model():
    return HashingEmbedding()


@pytest.fixture
def synthesizer(embed_model):
    return ExtractiveSynthesizer(embed_model)


def numbered(passages):
    return "\n\n".join(f"{passage} [{i}]" for i, passage in enumerate(passages, start=1))


def words(text):
    return " ".join(text.split())


questions = st.lists(st.sampled_from([*NOUNS, "a1", "b2", "met"]), min_size=1, max_size=5)


@given(questions, st.lists(st.sampled_from(FOREST), min_size=1, max_size=6))
def test_an_answer_is_what_its_citations_say(words_asked, nodes):
    synthesizer = ExtractiveSynthesizer(HashingEmbedding(), min_score=None)
    response = synthesizer.synthesize(" ".join(words_asked), found(*nodes))
    cited = response.metadata["citations"]
    passages = [TEXT_OF[c["document"]][c["start"] : c["end"]] for c in cited]
    assert passages == [c["quote"] for c in cited]
    assert 1 <= len(passages) <= 5
    said = re.sub(r"author: \w+\n", "", str(response))  # what the metadata tell
    assert words(said) == words(numbered(passages))
    assert len(set(passages)) == len(passages)
    assert response.metadata["best"] in str(response)
    for passage, citation in zip(passages, cited, strict=True):
        within = [node for node in nodes if citation["document"] in record(node).documents]
        told = words(" ".join(node.text for node in within))
        assert all(sentence in told for sentence in re.split(r"(?<=\.)\s+", words(passage)))


@given(questions, st.lists(st.sampled_from(FOREST), min_size=1, max_size=6), st.integers(20, 80))
def test_an_answer_is_within_its_budget(words, nodes, answer_tokens):
    synthesizer = ExtractiveSynthesizer(
        HashingEmbedding(), answer_tokens=answer_tokens, min_score=None
    )
    response = synthesizer.synthesize(" ".join(words), found(*nodes))
    tokens = llama_index.core.utils.get_tokenizer()
    passages = [part for part in re.split(r" \[\d+\]\s*", str(response)) if part]
    assert 0 < len(tokens("\n\n".join(passages))) <= answer_tokens


@given(questions, st.lists(st.sampled_from(FOREST), max_size=4), st.floats(0, 1), st.floats(0, 1))
def test_it_refuses_below_a_score_and_never_less_with_a_higher_one(words, nodes, a, b):
    low, high = (
        ExtractiveSynthesizer(HashingEmbedding(), min_score=score)
        .synthesize(" ".join(words), found(*nodes))
        .metadata
        for score in sorted([a, b])
    )
    assert low["score"] == high["score"]
    assert 0 <= low["score"] <= 1
    assert low["refused"] <= high["refused"]
    for told, least in zip((low, high), sorted([a, b]), strict=True):
        assert told["refused"] == (not told["citations"]) == (not nodes or told["score"] < least)


def test_what_nothing_answers_is_refused_and_its_sources_stay():
    nodes = texts("Barley grew in every meadow.", "The anchor met the yeast at dawn.")
    synthesizer = ExtractiveSynthesizer(HashingEmbedding(dim=4096))
    response = synthesizer.synthesize("Who wrote sonnets?", nodes)
    assert str(response) == NO_ANSWER
    assert response.metadata["refused"]
    assert response.source_nodes == nodes
    assert synthesizer.get_response("Who wrote sonnets?", [n.node.text for n in nodes]) == NO_ANSWER


class Alike(HashingEmbedding):
    """All texts are the same to it."""

    def _vector(self, text):
        return [0.6, 0.8]


def test_a_model_that_cannot_tell_refuses_nothing():
    response = ExtractiveSynthesizer(Alike()).synthesize(
        "Why anchors?", texts("The anchor met the yeast.")
    )
    assert "The anchor met the yeast." in str(response)
    assert response.metadata["score"] > 0.9  # 1 if rounding makes it a question about the whole
    assert not response.metadata["refused"]


@pytest.mark.parametrize(
    "sentence",
    ["昨天下雨桥被关闭了。", "مرحبا بك هنا يا صديقي.", "\U0001f600 was all she wrote.", "Yes."],
    ids=["Chinese", "Arabic", "emoji", "a stub alone"],
)
def test_any_script_is_quoted(synthesizer, sentence):
    assert str(synthesizer.synthesize(sentence, texts(sentence))) == f"{sentence} [1]"


@pytest.mark.parametrize("options", [{"min_score": 1.1}, {"min_score": -0.1}, {"min_score": "0"}])
def test_a_score_is_between_0_and_1(embed_model, options):
    with pytest.raises(InputError, match=r"^min_score must be a number in \[0, 1\], got "):
        ExtractiveSynthesizer(embed_model, **options)


@pytest.mark.parametrize("node", FOREST[::5], ids=lambda node: f"level {record(node).level}")
def test_the_sentence_asked_for_is_quoted(synthesizer, node):
    sentence = re.split(r"(?<=\.)\s+", node.text)[-1]
    response = synthesizer.synthesize(sentence, found(*FOREST[:4], node))
    assert re.search(re.escape(sentence) + r" \[\d+\]", str(response))


def test_the_document_of_the_best_sentence_comes_first(synthesizer):
    good, best = "One lantern met one falcon and 2 owls.", "One lantern met one falcon."
    response = synthesizer.synthesize("one lantern met one falcon", texts(good, best))
    assert str(response) == numbered([best, good])


TICKETS = [
    f"Ticket {n + 40}. Station {n} was dark. The pump at station {n} failed because of {cause}."
    for n, cause in ((12, "weed"), (15, "ice"), (23, "a fuse"))
]
WHY = "Why did the pump at station {} fail?"


@pytest.mark.spread
@pytest.mark.parametrize("joined", [False, True], ids=["one of each", "one of all"])
@pytest.mark.parametrize(("n", "ticket"), [(12, 0), (15, 1), (23, 2)])
def test_a_number_of_the_question_decides_between_paragraphs(joined, n, ticket):
    nodes = texts("\n\n".join(TICKETS)) if joined else texts(*TICKETS)
    response = ExtractiveSynthesizer(load_embed_model()).synthesize(WHY.format(n), nodes)
    assert response.metadata["best"] in TICKETS[ticket]
    assert response.metadata["missing"] == []


def test_a_number_counts_wherever_the_best_passage_stands():
    others = [f"The pump at station {n} failed because of weed." for n in range(20, 26)]
    text = "The pump at station 12 failed because of ice."
    nodes = [NodeWithScore(node=TextNode(text=t), score=-i) for i, t in enumerate([*others, text])]
    response = ExtractiveSynthesizer(load_embed_model()).synthesize(WHY.format(12), nodes)
    assert str(response).startswith(f"{text} [1]")


def test_a_number_in_a_title_counts():
    text = "The pump failed because of weed."
    other, metadata = {"title": "Station 15"}, {"title": "Station 12"}
    nodes = found(
        TextNode(text=text.replace("weed", "ice"), metadata=other),
        TextNode(text=text, metadata=metadata),
    )
    response = ExtractiveSynthesizer(HashingEmbedding(), min_score=0).synthesize(
        WHY.format(12), nodes
    )
    assert str(response).startswith(f"{text} [1]")
    assert response.metadata["missing"] == []


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        (WHY.format(77), ["77"]),
        ("Why did Ada close pump 12 in Dover?", ["Ada", "Dover"]),
        ('Did "Weed" fail?', []),
        ("Why did the anchor fail?", ["anchor"]),
        ("Why did a pump fail?", []),
    ],
)
@pytest.mark.parametrize("min_score", [0, 1])
def test_an_answer_tells_which_numbers_and_names_it_has_not(question, missing, min_score):
    synthesizer = ExtractiveSynthesizer(HashingEmbedding(), min_score=min_score)
    response = synthesizer.synthesize(question, texts(*TICKETS))
    assert response.metadata["missing"] == missing


LANTERN = "Lantern met falcon here."
N = len(LANTERN)


@pytest.mark.parametrize(
    ("quotes", "cited"),
    [
        (
            [Quote(0, N, Span("d.pdf", 5, 5 + N, page=3))],
            {"document": "d.pdf", "start": 5, "end": 5 + N, "page": 3, "quote": LANTERN} | QUOTED,
        ),
        ([], {"quote": LANTERN} | QUOTED),
        (
            [Quote(0, N, Span("d", 3, 40), verbatim=False)],  # rewritten by a model
            {"document": "d", "start": 3, "end": 40, "by": "hierindex"},
        ),
    ],
    ids=["a page", "no place", "rewritten"],
)
def test_a_citation_is_the_place_of_what_is_quoted(synthesizer, quotes, cited):
    node = TextNode(text=LANTERN, metadata=metadata_of(quotes=tuple(quotes)) if quotes else {})
    assert synthesizer.synthesize("lantern", found(node)).metadata["citations"] == [cited]


def test_a_copy_that_lacks_a_part_of_the_passage_is_not_its_place(synthesizer):
    one, two = "Lantern met falcon here.", "It met the lantern again."
    text, n = f"{one} {two}", len(one)
    copies = Span("copy", 0, n), Span("copy", 90, 90 + len(two))
    quotes = (
        Quote(0, n, Span("d", 0, n), also=copies[:1]),
        Quote(n + 1, len(text), Span("d", n + 1, len(text)), also=copies[1:]),
    )
    node = TextNode(text=text, metadata=metadata_of(quotes=quotes))
    response = synthesizer.synthesize("Which lantern met falcon again?", found(node))
    assert response.metadata["citations"] == [
        {"document": "d", "start": 0, "end": len(text), "quote": text} | QUOTED
    ]


@pytest.mark.parametrize("level", [0, 1])
def test_a_sentence_of_a_summary_is_last_if_what_it_depends_on_is_left_out(synthesizer, level):
    depends, alone = "It was this lantern that met a falcon.", "The lantern met a falcon."
    at = len(depends) + 1
    quotes = (
        Quote(0, at - 1, Span("d", 900, 900 + at - 1)),
        Quote(at, at + len(alone), Span("d", 0, len(alone))),
    )
    metadata = metadata_of(quotes=quotes, level=level, level_max=level)
    node = TextNode(text=f"{depends} {alone}", metadata=metadata)
    response = synthesizer.synthesize("Which lantern met this falcon?", found(node))
    assert response.metadata["best"] == (alone if level else depends)


def test_a_record_is_quoted_beside_prose(synthesizer):
    record = "name: Dora Lind; office: Works; salary: 52000"
    nodes = texts(record, "The register is kept by the office of works. It is old.")
    assert f"{record} [" in str(synthesizer.synthesize("What is the salary of Dora Lind?", nodes))


def test_a_file_name_alone_is_answered_from_the_file(synthesizer):
    other = TextNode(text="The staff met here. It was late that day.")
    own = TextNode(text="A lantern was bought by them.", metadata={"file_name": "staff.csv"})
    response = synthesizer.synthesize("staff.csv", found(other, own))
    assert str(response).startswith("A lantern was bought by them. [1]")
    assert not response.metadata["refused"]


@pytest.mark.parametrize(
    "nodes", [[], texts(""), texts(" \n", "")], ids=["no node", "no text", "blanks"]
)
def test_where_nothing_was_found_it_says_so(synthesizer, embed_model, nodes):
    response = synthesizer.synthesize(QUESTION, nodes)
    assert str(response) == NO_ANSWER
    nothing = {"citations": [], "passages": [], "best": "", "missing": []}
    assert response.metadata == {**nothing, "score": 0.0, "refused": True}
    assert response.source_nodes == nodes
    assert embed_model.batches == embed_model.queries == []


def test_sources_are_the_nodes_and_those_beside(synthesizer):
    nodes, more = found(FOREST[0]), found(FOREST[1])
    response = synthesizer.synthesize(QUESTION, nodes, additional_source_nodes=more)
    assert response.source_nodes == [*nodes, *more]
    assert asyncio.run(
        synthesizer.asynthesize(QUESTION, nodes, additional_source_nodes=more)
    ).source_nodes == [*nodes, *more]


@pytest.mark.parametrize("nodes", [FOREST[:5], FOREST[-3:], []], ids=["leaves", "roots", "none"])
def test_async_answers_the_same(synthesizer, nodes):
    response = synthesizer.synthesize(QUESTION, found(*nodes))
    assert asyncio.run(synthesizer.asynthesize(QUESTION, found(*nodes))) == response
    assert synthesizer.synthesize(QueryBundle(QUESTION), found(*nodes)) == response


def test_sentences_are_embedded_in_one_batch_and_the_question_once(synthesizer, embed_model):
    synthesizer.synthesize(QUESTION, found(*FOREST[:4]))
    assert len(embed_model.batches) == 2  # the known answers are the other, once
    assert embed_model.queries == [QUESTION]
    synthesizer.synthesize(QUESTION, found(*FOREST[:4]))
    assert len(embed_model.batches) == 3


def test_a_question_that_is_embedded_is_not_embedded_again(synthesizer, embed_model):
    query = QueryBundle(QUESTION, embedding=HashingEmbedding().get_query_embedding(QUESTION))
    response = synthesizer.synthesize(query, found(*FOREST[:4]))
    assert embed_model.queries == []
    assert response == synthesizer.synthesize(QUESTION, found(*FOREST[:4]))


@pytest.mark.parametrize("chunks", [[FOREST[0].text, FOREST[1].text], [""], []], ids=len)
def test_texts_alone_are_answered_by_their_sentences(synthesizer, chunks):
    answer = synthesizer.get_response(QUESTION, chunks)
    sentences = [] if answer == NO_ANSWER else re.split(r"(?<=\.)\s+", answer)
    assert bool(sentences) == any(chunks)
    assert all(any(sentence in chunk for chunk in chunks) for sentence in sentences)
    assert asyncio.run(synthesizer.aget_response(QUESTION, chunks)) == answer


def test_input_nodes_are_not_modified(synthesizer):
    nodes = found(*FOREST[:4])
    before = [node.model_copy(deep=True) for node in nodes]
    synthesizer.synthesize(QUESTION, nodes)
    assert nodes == before


@pytest.mark.parametrize(
    ("question", "is_whole"),
    [
        ("What is this about?", True),
        ("Summarize it.", True),
        ("Who met the yeast?", False),
        ("Why?", False),
    ],
)
def test_an_answer_about_the_whole_has_a_line_for_each_node(question, is_whole):
    model = load_embed_model()
    told = [
        {"text": "The anchor met the yeast.", "title": "One"},
        {"text": "It sank.", "title": "Two"},
    ]
    nodes = found(*(TextNode(text=t["text"], metadata=metadata_of(title=t["title"])) for t in told))
    response = ExtractiveSynthesizer(model, min_score=0).synthesize(question, nodes)
    assert str(response).startswith("One: ") == is_whole
    assert not is_whole or response.metadata["score"] == 1


NOTES = {
    "wifi": "wifi guest network: fjord-guest, password herring7\nprinter: in the hall",
    "stores": "# Stores\n\n- tinned herring under the bench\n- oatmeal in the blue tin",
    "crew": "| name | role |\n|---|---|\n| Ada Lunde | skipper |\n| Cato Rist | cook |",
    "fees": "FEES\n\nDinghy, per night ..... 90\nCrane lift ..... 1,200\nStorage ..... 650",
    "phones": "Harbour office\nKai 4\nTel. 12 34 56 78\n\nFerry desk\nBrygge 1\nTel. 87 65 43 21",
    "log": "02:11 gate: badge 4471 refused\n06:30 boiler: limit reached, burner off",
    "pier": "The pier was built in 1900 by a man from Vik. Nobody knows who paid for it.",
}


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("What is the password of the guest wifi?", "herring7"),
        ("Where is the oatmeal?", "- oatmeal in the blue tin"),
        ("tinned herring under the bench", "- tinned herring under the bench"),
        ("Who is the cook?", "| Cato Rist | cook |"),
        ("What does a crane lift cost?", "Crane lift ..... 1,200"),
        (
            "What is the telephone number of the ferry desk?",
            "Ferry desk\nBrygge 1\nTel. 87 65 43 21",
        ),
        ("Which badge was refused at the gate?", "badge 4471 refused"),
        ("Who built the pier?", "a man from Vik"),
    ],
)
def test_lines_of_notes_answer_although_they_are_no_sentences(notes, question, line):
    answer = notes.ask(question)
    assert line in answer.answer
    assert not answer.refused


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    documents = documents_of({f"{name}.md": text for name, text in NOTES.items()})
    return HierarchicalIndex.build(documents, tmp_path_factory.mktemp("notes"))
