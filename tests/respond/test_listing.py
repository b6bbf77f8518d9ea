"""Questions that count or list get all documents that have their words."""

import re
from collections import Counter
from itertools import combinations

import pytest
from clients import llm_of
from indexes import built, where
from llama_index.core.schema import Document
from respond.asking import query, serve

from hierindex import HierarchicalIndex

TEXTS = {
    "march.md": "Invoice no. 1 of the joiner is overdue since Monday. Invoice no. 2 is settled.",
    "april.md": "The invoices of the smith are overdue. He wrote a letter about the gate.",
    "contract-1.md": "The ferry carries sheep on Sundays. The fare is 20 pounds.",
    "contract-2.md": "The bridge belongs to the town, which mends it.",
    "letters/anna.txt": "Dear Anna, the ferry was late again, and Bert was cold.",
    "letters/copy.txt": "Dear Anna, the ferry was late again, and Bert was cold.",
    "rechnung-7.txt": "Die Rechnung der Schmiede ist noch offen. Der Betrag wird angemahnt.",
}
LETTERS = {"letters/anna.txt": 1, "letters/copy.txt": 1}
FERRY = {"contract-1.md": 1, **LETTERS}
OVERDUE = {"april.md": 1, "march.md": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folder")
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def index(folder, tmp_path_factory):
    """An index that no test changes."""
    return built([folder], tmp_path_factory.mktemp("built") / "index")


@pytest.mark.parametrize(
    ("question", "words", "documents"),
    [
        ("How many invoices are overdue?", ["invoices", "overdue"], OVERDUE),
        ("Which invoices are overdue?", ["invoices", "overdue"], OVERDUE),
        ("Give me a list of overdue invoices.", ["overdue", "invoices"], OVERDUE),
        ("list all notes about the ferry", ["ferry"], FERRY),
        ("In which documents is the ferry mentioned?", ["ferry"], FERRY),
        ("Wie viele Rechnungen sind offen?", ["offen"], {"rechnung-7.txt": 1}),
        ("Welche Dateien erwähnen die Schmiede?", ["Schmiede"], {"rechnung-7.txt": 1}),
        ("Liste alle Briefe an Anna", ["Anna"], LETTERS),
        ("Which contracts mention the ferry?", ["contracts", "ferry"], {"contract-1.md": 1}),
        ("Which memos mention the ferry?", ["ferry"], FERRY),
        ("Which e-mails mention the ferry?", ["ferry"], FERRY),
        ("How many invoices are in march.md?", ["invoices", "march.md"], {"march.md": 1}),
    ],
)
def test_all_documents_with_the_words_are_listed(index, question, words, documents):
    listing = index.ask(question).listing
    assert (listing.words, listing.documents) == (words, documents)
    assert listing.chunks == sum(documents.values())


@pytest.mark.parametrize(
    "question",
    [
        "How many documents are there?",
        "Which documents are in the index?",
        "list all files",
        "Welche Dokumente gibt es hier?",
        "\u00bfCu\u00e1ntos documentos hay?",
    ],
)
def test_all_documents_are_listed_and_nothing_else(index, question):
    answer = index.ask(question)
    assert answer.answer.splitlines() == ["7 documents:", *(f"- {name}" for name in sorted(TEXTS))]
    assert {*answer.listing.documents} == {*TEXTS}
    assert (answer.refused, answer.citations, answer.passages) == (False, [], [])
    engine = index.as_query_engine(response_mode="extractive")
    assert str(engine.query(question)).strip() == answer.answer


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    for name, subject in (("a", "Tiles"), ("b", "Gutters")):
        mail = f"From: ada@roof.example\nSubject: {subject}\n\nThe {subject.lower()} leak again.\n"
        (folder / f"{name}.eml").write_text(mail)
    (folder / "c.csv").write_text("item,leaks\nTiles,3\nGutters,1\nChimney,2\n")
    (folder / "d.txt").write_text("The chimney of the school leaks in every storm.\n")
    return HierarchicalIndex.build(folder, folder / "index")


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How many e-mails are there?", "2 e-mails:\n- Tiles (a.eml)\n- Gutters (b.eml)"),
        ("List all mails", "2 e-mails:\n- Tiles (a.eml)\n- Gutters (b.eml)"),
        ("Which spreadsheets are there?", "1 spreadsheet:\n- c.csv"),
        ("Which PDFs are there?", "0 PDFs by file name."),
        ("How many email messages are there?", "2 e-mails:\n- Tiles (a.eml)\n- Gutters (b.eml)"),
        ("List all PDF files", "0 PDFs by file name."),
        ("Wie viele PDF-Dateien gibt es?", "0 PDFs by file name."),
        ("Which e-mails do not mention tiles?", '1 of 2 e-mails has no chunk with "tiles": b.eml.'),
    ],
)
def test_documents_of_a_kind_are_listed(kinds, question, text):
    answer = kinds.ask(question)
    assert (answer.answer, answer.refused, answer.passages) == (text, False, [])


@pytest.mark.parametrize(
    ("question", "documents", "start"),
    [
        ("Which e-mails mention gutters?", {"b.eml": 1}, "1 e-mail (1 chunk,"),
        ("Which e-mails mention the school?", {}, 'No chunk of the e-mails has "school"'),
        ("Which PDFs mention the school?", {"d.txt": 1}, "1 document (1 chunk,"),
    ],
)
def test_documents_of_a_kind_with_the_words_are_listed(kinds, question, documents, start):
    listing = kinds.ask(question).listing
    assert listing.documents == documents
    assert listing.text.startswith(start)


@pytest.mark.parametrize(
    ("question", "documents"),
    [
        ("Summarise the spreadsheet.", {"c.csv"}),
        ("Summarise the e-mails", {"a.eml", "b.eml"}),
        ("Summarise all e-mails", {"a.eml", "b.eml"}),
    ],
)
def test_an_overview_of_documents_of_a_kind(kinds, question, documents):
    answer = kinds.ask(question)
    assert answer.why is not None
    assert "for an outline of" in answer.why
    assert {each.document for each in answer.citations} == documents


@pytest.mark.parametrize(
    "question", ["Which mail client is used?", "What PDF reader shows the leaks?"]
)
def test_a_kind_that_only_describes_another_thing_lists_nothing(kinds, question):
    assert kinds.ask(question).listing is None


def test_a_kind_is_told_by_the_file_name_of_a_document_of_llama_index(tmp_path):
    made = [Document(id_=i, text="Rye.", metadata={"file_name": f"{i}.pdf"}) for i in "ab"]
    index = built([*made, Document(id_="c", text="Oats.")], tmp_path / "index")
    assert [*index.ask("Which PDFs are there?").listing.documents] == ["a", "b"]


@pytest.mark.parametrize("question", ["list all documents", "How many documents are there?"])
def test_a_list_of_documents_asks_no_language_model(index, question):
    with serve(lambda prompt: "Many. [1]") as server:
        shown = list[str]()
        for show in (None, shown.append):
            answer = index.ask(question, llm=llm_of(server), show=show)
            assert (answer.answer_kind, answer.usage.llm_calls) == ("extractive", 0)
            assert answer.answer.startswith("7 documents:")
        assert "".join(shown) == answer.answer
        assert server.requests == []


def test_a_list_of_documents_has_titles_and_passes_filters(tmp_path):
    many = [Document(id_=f"{i:02}", text=f"Note {i}.", metadata={"n": i}) for i in range(50)]
    titled = Document(id_="a.md", text="Sheep.", metadata={"title": "On sheep", "n": 99})
    index = built([*many, titled], tmp_path / "index")
    *_, last = index.ask("How many documents are there?").answer.splitlines()
    assert last == "- and 11 more"
    answer = index.ask("Which documents are there?", filters=where(n=99))
    assert answer.answer == "1 document with the filters:\n- On sheep (a.md)"


@pytest.mark.parametrize(
    ("question", "words", "those"),
    [
        ("Which documents do not mention the ferry?", ["ferry"], FERRY),
        ("List all files that don't contain overdue invoices.", ["overdue", "invoices"], OVERDUE),
        ("Which files do not name Anna or a joiner?", ["Anna", "joiner"], {*LETTERS, "march.md"}),
        ("Which documents mention neither Anna nor sheep?", ["Anna", "sheep"], FERRY),
        ("Welche Dateien erwähnen die Schmiede nicht?", ["Schmiede"], {"rechnung-7.txt"}),
    ],
)
def test_documents_without_the_words_are_listed(index, question, words, those):
    answer = index.ask(question)
    assert answer.listing.words == words
    assert answer.listing.documents == dict.fromkeys(sorted(TEXTS.keys() - those), 1)
    assert (answer.answer, answer.passages) == (answer.listing.text, [])
    alone = index.ask(question, filters=where(file_name="contract-2.md")).listing
    assert alone.documents == {"contract-2.md": 1}


@pytest.mark.parametrize(
    "question",
    [
        "Which letters do not apply to sheep on Sundays?",
        "Which document does not mention the ferry?",
        "Which files do not mention the ferry but mention Anna?",
        "How many letters without a fare are there?",
    ],
)
def test_other_negations_are_no_such_list(index, question):
    answer = index.ask(question)
    assert answer.passages or answer.refused
    assert answer.answer != (answer.listing and answer.listing.text)


@pytest.mark.parametrize(
    "question",
    [
        "When does the ferry run?",
        "Which town owns the bridge?",
        "What is this about?",
        "Is there a list of the fares?",
        "Welche Farbe hat die Brücke?",
        "Which documents should I have?",
        "Welche Dokumente muss ich haben?",
        "How many are there?",
        "How many pages are there?",
        f"How many {' '.join(f'ferry{i}' for i in range(500))}?",
    ],
)
def test_other_questions_have_no_listing(index, question):
    answer = index.ask(question)
    assert answer.listing is None
    assert "listing" not in answer.to_json()
    assert "complete" not in answer.answer


def test_the_answer_says_that_it_may_not_be_complete(index):
    answer = index.ask("How many invoices are overdue?")
    passages, _, said = answer.answer.rpartition("\n\n")
    assert "overdue" in passages
    assert said == (
        "This answer may not be complete. 2 documents (2 chunks, titles and authors included) have "
        '"invoices" and "overdue" in one chunk: april.md (1), march.md (1).'
    )
    assert answer.to_json()["listing"] == {
        "text": said.removeprefix("This answer may not be complete. "),
        "words": ["invoices", "overdue"],
        "lacking": [],
        "chunks": 2,
        "documents": OVERDUE,
    }


@pytest.mark.parametrize(
    "question", ["How many letters mention the ferry?", "Which documents mention the ferry?"]
)
def test_documents_that_are_asked_for_come_first(index, question):
    said = '3 documents (3 chunks, titles and authors included) have "ferry": '
    answer = index.ask(question)
    assert answer.answer.startswith(f"{said}contract-1.md (1), letters/anna.txt (1), ")
    assert "complete" not in answer.answer
    assert str(index.as_query_engine().query(question)).startswith(answer.listing.text)
    one = index.ask("Which document mentions the ferry?").answer
    assert one.endswith(answer.listing.text)


@pytest.mark.parametrize("streaming", [False, True])
def test_they_come_first_with_a_model_too(index, streaming):
    with serve(lambda prompt: "Three. [1]") as server:
        shown = list[str]()
        answer = index.ask(
            "How many letters mention the ferry?",
            llm=llm_of(server),
            show=shown.append if streaming else None,
        )
        assert answer.answer.startswith(f"{answer.listing.text}\n\nThree.")
        assert not streaming or shown[0] == f"{answer.listing.text}\n\n"


def test_words_that_no_chunk_has_together_are_named(index):
    answer = index.ask("How many letters mention zebras, Anna, ferries or invoices?")
    assert (answer.listing.words, answer.listing.lacking) == (
        ["Anna", "ferries"],
        ["zebras", "invoices"],
    )
    assert answer.listing.text == (
        'No chunk has "zebras"; 2 documents (2 chunks, titles and authors included) have '
        '"Anna" and "ferries" in one chunk, but not '
        '"invoices": letters/anna.txt (1), letters/copy.txt (1).'
    )


def test_words_that_no_chunk_has_are_named(index):
    answer = index.ask("How many zebras are striped?", synthesizer={"min_score": 1})
    assert answer.refused
    assert answer.answer.endswith('answers this.\n\nNo chunk has "zebras" or "striped".')
    assert (answer.listing.words, answer.listing.chunks, answer.listing.documents) == ([], 0, {})


@pytest.mark.spread
@pytest.mark.parametrize("options", [{"level": 0}, {"level": "top"}, {"mode": "collapsed"}])
@pytest.mark.parametrize("response_mode", ["extractive", "context_only"])
def test_chunks_are_counted_whatever_is_searched(index, options, response_mode):
    asked = index.ask("How many letters mention the ferry?", response_mode=response_mode, **options)
    assert asked.listing.documents == FERRY


@pytest.mark.parametrize("level", [0, "top"])
def test_nothing_that_a_filter_excludes_is_counted(index, level):
    def listed(operator="==", **values):
        options = {"filters": where(operator, **values), "partial_summaries": True, "level": level}
        return index.ask("How many letters mention the ferry?", **options).listing

    of_two = listed("any", hierindex_documents=["letters/anna.txt", "rechnung-7.txt"])
    assert of_two.documents == {"letters/anna.txt": 1}
    in_part = listed("text_match_insensitive", file_name="CONTRACT")  # not by LanceDB alone
    assert in_part.documents == {"contract-1.md": 1}
    none = listed(file_name="march.md")
    assert none.text == 'With the filters, no chunk has "ferry".'


def test_the_list_is_that_of_the_newest_generation(folder, tmp_path):
    own = built([folder], tmp_path / "index")
    asked = "How many letters mention the ferry?"
    own.delete("letters/copy.txt")
    assert own.ask(asked).listing.documents == {"contract-1.md": 1, "letters/anna.txt": 1}
    own.update(Document(doc_id="new.txt", text="No ferry left. " * 200))
    (name, n), *_ = own.ask(asked).listing.documents.items()
    assert name == "new.txt"
    assert n > 1


def test_ten_documents_are_named_and_the_others_counted(tmp_path):
    texts = {f"{i:02}": f"Pump {i} failed." for i in range(13)}
    answer = built(texts, tmp_path / "index").ask("How many pumps failed?")
    named = ", ".join(f"{i:02} (1)" for i in range(10))
    assert answer.answer.endswith(f'"failed" in one chunk: {named} and 3 more.')
    assert len(answer.listing.documents) == 13


def test_every_chunk_with_the_words_is_counted(tmp_path):
    """As by reading all chunks."""
    nouns = "harbour sail mast anchor".split()
    texts = {
        f"{d}": " ".join(
            f"On day {i} the {nouns[i * d % 4]} met a {nouns[(i + d) % 3]}." for i in range(12)
        )
        for d in range(1, 5)
    }
    index = built(texts, tmp_path / "index", chunk_size=40)
    chunks = [node for node in index.table.snapshot().nodes() if node.level == 0]
    for pair in combinations(nouns, 2):
        having = [c for c in chunks if {*pair} <= {*c.text.replace(".", "").split()}]
        listing = index.ask(f"How many {pair[0]}s have a {pair[1]}?").listing
        if having:
            assert listing.documents == Counter(d for c in having for d in c.documents)
            assert not listing.lacking
        else:
            assert listing.lacking


def test_an_overview_has_no_listing(folder, tmp_path):
    index = HierarchicalIndex.build([folder], tmp_path / "index")
    assert index.ask("Which topics are covered?").listing is None
    assert index.ask("Which topics are overdue?").listing is not None
    of_documents = index.ask("Which documents are about the ferry?")
    assert "outline" not in of_documents.why
    assert of_documents.listing.documents == FERRY


def test_the_answer_of_a_model_has_it_below(index):
    asked = "How many invoices are overdue?"
    with serve(lambda prompt: "Two. [1]") as server:
        shown = list[str]()
        for show in (None, shown.append):
            answer = index.ask(asked, llm=llm_of(server), show=show)
            assert answer.answer_kind == "llm"
            assert answer.listing.documents == OVERDUE
            assert answer.answer.startswith("Two.")
            assert answer.answer.endswith("april.md (1), march.md (1).")
        assert "".join(shown) == re.sub(r"\[(\d)\?\]", r"[\1]", answer.answer)
        assert all("may not be complete" not in request.prompt for request in server.requests)


@pytest.mark.parametrize("streaming", [False, True])
def test_query_engines_have_it(index, streaming):
    asked = "How many invoices are overdue?"

    def engine_of(llm):
        return index.as_query_engine(llm=llm, streaming=streaming)

    with serve(lambda prompt: "Two.") as server:
        for way in ("plain", "async"):
            text, answer = query(server, engine_of, way, asked)
            assert text.endswith("april.md (1), march.md (1).")
            assert answer.metadata["listing"]["documents"] == OVERDUE
    quoted = index.as_query_engine().query(asked)
    assert str(quoted) == index.ask(asked).answer


def test_documents_with_a_name_are_asked_for_by_the_name(tmp_path):
    filler = "The documents on meetings mention other documents that meetings mention."
    texts = {
        "a": filler,
        "b": f"{filler} It rained.",
        "c": "Robert carried the anchor to the pier.",
    }
    answer = built(texts, tmp_path / "index").ask("Which documents mention Robert?")
    assert answer.passages[0].text == texts["c"]
    assert [*answer.listing.documents] == ["c"]
    assert "Robert" not in answer.missing
