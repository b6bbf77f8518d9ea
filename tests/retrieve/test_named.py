"""Documents that a question names: an overview of them alone."""

import asyncio
from functools import cache

import pytest
from indexes import built, where
from llama_index.core.llms import MockLLM

from hierindex import HierarchicalIndex, RaptorHierarchy, SemanticHierarchy, load_embed_model
from hierindex.retrieve.named import named_in, names_of_documents

THINGS = {"ES2009a.txt": "remote", "north/chapter-03.md": "pump", "south/chapter-03.md": "valve"}
NAMES = {
    "es2009a": ["ES2009a.txt"],
    "es2009a txt": ["ES2009a.txt"],
    "chapter 3": ["north/chapter-03.md", "south/chapter-03.md"],
    "black death": ["Black_death"],
    "north": ["north/chapter-03.md", "north/chapter-04.md"],
    "kenya": ["Kenya"],
    "kenya md": ["Kenya"],
    "overview": ["overview.md"],
    "main points": ["main-points.md"],
    "2023": ["2023.txt"],
    "报 告": ["报告.txt"],
    "报 告 txt": ["报告.txt"],
}


@pytest.mark.parametrize(
    ("question", "documents", "rest"),
    [
        ("Summarise ES2009a.", ["ES2009a.txt"], "Summarise it."),
        ("What is es2009a.txt about?", ["ES2009a.txt"], "What is it about?"),
        ("Sum up chapter 3.", NAMES["chapter 3"], "Sum up it."),
        ("On Chapter-03 and ES2009a", [*NAMES["chapter 3"], "ES2009a.txt"], "On it and it"),
        ("What is the black death about?", ["Black_death"], "What is it about?"),
        ("Where is kenya in the atlas?", ["Kenya"], "Where is it in the atlas?"),
        ("Sum up chapter 3 in the north.", ["north/chapter-03.md"], "Sum up it in it."),
        (
            "Compare kenya, chapter 3 and 3 again.",
            ["Kenya", *NAMES["chapter 3"]],
            "Compare it, it and 3 again.",
        ),
        ("What is Kenya about?", ["Kenya"], "What is it about?"),
        ("总结报告.txt", ["报告.txt"], "总结it"),
    ],
)
def test_names_are_found_in_questions(question, documents, rest):
    assert named_in(question, NAMES)[:3] == (tuple(documents), rest, ())


@pytest.mark.parametrize(
    "question",
    [
        "Summarise ES2010a.",
        "Give an overview of the main points in 2023.",
        "What is Kenya's capital?",
        "Kenya or not?",
        "这是报告",
        "",
    ],
)
def test_other_words_are_no_names(question):
    assert named_in(question, NAMES) == ((), question, (), ())


@pytest.mark.parametrize(
    ("question", "unknown"),
    [
        ("Summarise ES2010a.txt.", ["ES2010a.txt"]),
        ("Sum up ES2009a.txt and south/ES2010a.txt!", ["south/ES2010a.txt"]),
        ("Compare ./a.md, /home/b-c.md and a.md, ./a.md.", ["./a.md", "/home/b-c.md", "a.md"]),
        ("What does kenya.md's first page say?", []),  # it is a document
        ("What, e.g., is version 2.0b1 of U.S. law at 3 p.m.?", []),
        ("Who is ada@example.com of https://example.com/index.html?", []),
        ("Sum up chapter-03.pdf", []),  # as "chapter 3" names documents
        ("总结 报告.pdf", ["报告.pdf"]),
    ],
)
def test_files_that_are_no_documents_are_found_in_questions(question, unknown):
    assert named_in(question, NAMES).unknown == tuple(unknown)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    for name, thing in THINGS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(
            "\n\n".join(f"On day {i} the keeper of the harbour saw the {thing}." for i in range(8))
        )
    return folder


model = cache(load_embed_model)


def build(folder, uri, hierarchy=SemanticHierarchy):
    options = {"model": model(), "max_children": 4, "summary_tokens": 40}
    return built(folder, uri, hierarchy, chunk_size=60, **options)


@pytest.fixture(scope="module")
def index(folder, tmp_path_factory):
    return build(folder, tmp_path_factory.mktemp("index"))


def told(answer):
    """The documents that an answer cites; none but these are among its sources."""
    documents = {place.document for place in answer.citations}
    assert {c.document for source in answer.sources for c in source.citations} == documents
    return documents


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Summarise ES2009a", "ES2009a.txt"),
        ("What is north/chapter-03.md about?", "north/chapter-03.md"),
        ("main conclusions of chapter-03.md", "chapter-03.md"),
        ("main conclusions of chapter 3 in south", "south/chapter-03.md"),
        ("What is the north about?", "north/chapter-03.md"),
    ],
)
def test_an_overview_is_of_the_document_that_is_named(index, question, name):
    answer = index.ask(question)
    documents = [each for each in THINGS if each.endswith(name)]
    assert told(answer) == {*documents}
    assert answer.why.startswith(f"all levels for an outline of {', '.join(documents)}, which ")
    assert sum(source.score for source in answer.sources) == pytest.approx(1, abs=1e-4)
    # Parts of one document have no name of their own.
    assert ("%): On day " in answer.answer) == (len(documents) > 1)
    assert not answer.refused


def test_questions_about_a_part_of_a_named_document_are_answered_by_chunks(index):
    answer = index.ask("Who saw the remote on day 3 in ES2009a?")
    assert answer.why.startswith(
        "the chunks of ES2009a.txt, which the question names, by context: "
    )


def test_what_names_no_document_is_about_all(index):
    answer = index.ask("Summarize everything.")
    assert answer.why.startswith("all levels for an outline: ")


@pytest.mark.parametrize("level", ["top", "documents", 1])
def test_a_level_that_the_document_lacks_is_not_missed(index, level):
    answer = index.ask("Summarise ES2009a", level=level)
    assert told(answer) == {"ES2009a.txt"}


def test_filters_hold_for_documents_that_are_named(index):
    answer = index.ask("Summarise ES2009a", filters=where(file_name="chapter-03.md"))
    assert answer.refused
    assert not answer.sources


@pytest.mark.parametrize(
    ("question", "file"),
    [
        ("What are the main points of chapter-04.md?", "chapter-04.md"),
        ("Summarise ES2010a.txt", "ES2010a.txt"),
        ("What does other.pdf say about submarines?", "other.pdf"),
    ],
)
def test_what_only_names_files_that_are_no_documents_is_refused(index, question, file):
    answer = index.ask(question)
    assert answer.refused
    similar = {"chapter-04.md": [*THINGS][1:], "ES2010a.txt": [*THINGS][:1]}
    assert answer.unknown == {file: similar.get(file, [])}


def test_names_are_those_of_today(folder, tmp_path):
    source = tmp_path / "documents"
    source.mkdir()
    for name in ("ES2009a.txt", "ES2009b.txt"):
        (source / name).write_text((folder / "ES2009a.txt").read_text() + f"\n\nBy {name}.")
    build(source, tmp_path / "index")
    (source / "ES2009a.txt").rename(source / "ES2010a.txt")
    (source / "ES2009b.txt").unlink()
    index = build(source, tmp_path / "index")
    assert told(index.ask("Summarise ES2010a")) == {"ES2010a.txt"}
    assert not {"es2009a", "es2009b"} & {*names_of(index)}


def names_of(index):
    names = names_of_documents(index.store.snapshot())
    return {name: documents[-1] for name, documents in names.items()}


def test_titles_are_names(tmp_path):
    (tmp_path / "03-locks.md").write_text("# The Old Lock\n\nIt was closed in May.\n\nWhy?")
    (tmp_path / "index.html").write_text("<title>Gates of today</title><p>They are open.</p>")
    (tmp_path / "007-报告_2.txt").write_text("It rained.")
    names = names_of(build(tmp_path, tmp_path / "index"))
    assert names["the old lock"] == names["3 locks"] == names["3 locks md"] == "03-locks.md"
    assert names["gates of today"] == "index.html"
    assert names["7 报 告 2 txt"] == names["报 告 2"] == "007-报告_2.txt"


def test_people_are_no_names(tmp_path):
    """So that what is asked about a person is asked of all documents."""
    text = "It was closed in May. " * 9
    (tmp_path / "a.md").write_text(f"---\nauthor: Ferdinand Ochs\ndate: 2025-08-30\n---\n{text}")
    (tmp_path / "b.md").write_text("Ferdinand Ochs owes twelve pounds.")
    names = names_of(build(tmp_path, tmp_path / "index"))
    assert {*names} == {"a", "a md", "b", "b md"}


def test_a_tree_without_summaries_of_documents_has_their_names(folder, tmp_path):
    index = build(folder, tmp_path / "index", RaptorHierarchy)
    assert told(index.ask("What is ES2009a.txt about?")) == {"ES2009a.txt"}


STATION = {
    "tm-tm.pdf.txt": "The lamp of the station burns oil. The keeper fills it at seven.",
    "manual.md": "The lamp of the station burns gas, and this lamp has burned gas since 1910.",
    "quay.md": "The ferry leaves at eight from the northern quay. The fare is forty crowns.",
    "INV_7.md": "The invoice of the glazier is forty crowns for a pane of glass.",
}


@pytest.fixture(scope="module")
def station(tmp_path_factory):
    folder = tmp_path_factory.mktemp("station")
    for name, text in STATION.items():
        (folder / name).write_text(text)
    return HierarchicalIndex.build(folder, tmp_path_factory.mktemp("index"))


def searched(answer):
    return {c.document for source in answer.sources for c in source.citations}


@pytest.mark.parametrize(
    ("question", "documents", "said"),
    [
        ("According to tm-tm.pdf.txt, what does the lamp burn?", ["tm-tm.pdf.txt"], "burns oil"),
        ("What does the lamp burn by manual.md?", ["manual.md"], "burns gas"),
        (
            "What do quay.md and manual.md say about the fare of the ferry?",
            ["manual.md", "quay.md"],
            "The fare is forty crowns.",
        ),
    ],
)
def test_a_question_that_names_files_is_answered_from_them_alone(
    station, question, documents, said
):
    answer = station.ask(question)
    assert searched(answer) == {*documents}
    assert said in answer.answer
    assert answer.why.startswith("the chunks of ")
    assert ", which the question names, " in answer.why


@pytest.mark.parametrize("ask", ["ask", "query", "aquery"])
def test_a_named_document_without_an_answer_is_said_to_have_none_before_others(station, ask):
    question = "According to quay.md, what does the lamp of the station burn?"
    if ask == "ask":
        answer = station.ask(question)
        assert answer.why == "the chunks of other documents: Nothing in quay.md answers this"
        assert all(0 <= source.score <= 1 for source in answer.sources)
        assert not answer.refused
        text, found = answer.answer, searched(answer)
    else:
        engine = station.as_query_engine()
        response = getattr(engine, ask)(question)
        response = asyncio.run(response) if ask == "aquery" else response
        text = str(response)
        found = {node.citations[0].document for node in response.source_nodes}
    assert text.startswith("Nothing in quay.md answers this; other documents have:\n\nThe lamp ")
    assert found == {*STATION} - {"quay.md"}


def test_filters_may_leave_out_the_document_that_is_named(station):
    question = "What does the lamp of the station burn in quay.md?"
    answer = station.ask(question, filters=where(file_name="manual.md"))
    assert searched(answer) == {"manual.md"}
    said = "Nothing in quay.md that passes the filters answers this; other documents have:"
    assert answer.answer.startswith(said)


def test_what_no_document_answers_is_refused_although_one_is_named(station):
    answer = station.ask("According to quay.md, who won the chess cup of Oslo?")
    assert answer.refused
    assert answer.answer == "Nothing in the index answers this."


@pytest.mark.parametrize(
    "question",
    [
        "What does the manual say about what the lamp burns?",
        "What does the lamp burn by other.pdf?",
        "What does the lamp at the quay burn?",
    ],
)
def test_words_of_a_title_and_names_of_no_document_restrict_nothing(station, question):
    answer = station.ask(question)
    assert {"tm-tm.pdf.txt", "manual.md"} <= searched(answer)
    assert answer.why.startswith("the chunks by context: ")


def test_a_level_has_the_named_document_if_it_has_a_summary_of_it_alone(station):
    question = "According to tm-tm.pdf.txt, what does the lamp burn?"
    answer, top = station.ask(question, level="documents"), station.ask(question, level="top")
    assert searched(answer) == {"tm-tm.pdf.txt"}
    assert answer.why.startswith("level documents of tm-tm.pdf.txt, which the question names, ")
    assert searched(top) == {*STATION}
    assert top.why is None


def test_another_mode_searches_all(station):
    found = station.as_retriever(level=0).retrieve("What does the lamp burn by manual.md?")
    assert len(found) == len(STATION)


def test_a_model_reads_the_document_that_is_named(station):
    llm = MockLLM(max_tokens=5)
    answer = station.ask("According to tm-tm.pdf.txt, what does the lamp burn?", llm=llm)
    assert searched(answer) == {"tm-tm.pdf.txt"}
    [call] = answer.calls
    assert "burns oil" in call.prompt
    assert "burns gas" not in call.prompt


def test_ids_are_names_unless_they_are_words():
    documents = {"inv 7": ["INV-7"], "kenya": ["Kenya"], "black death": ["Black death"]}
    question = "What do INV-7, Kenya and Black death say?"
    assert named_in(question, documents).files == ("INV-7",)
    assert len(named_in(question, documents).documents) == 3


def test_a_file_is_named_by_its_name_and_not_by_what_looks_like_one():
    documents = {"node js": ["guide/node-js.md"], "tm tm pdf": ["a/tm-tm.pdf"]}
    assert named_in("How do I install Node.js?", documents).files == ()
    for name in ("tm-tm.pdf", "a/tm-tm.pdf", "TM-TM.pdf", "tm-tm.pdf's table"):
        found = named_in(f"What does {name} say?", documents | {"a tm tm pdf": ["a/tm-tm.pdf"]})
        assert found.files == ("a/tm-tm.pdf",)
