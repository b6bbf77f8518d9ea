"""Titles, names, people and dates count among the words that a question is matched with."""

import pytest
from fakes import HashingEmbedding
from indexes import built

MINUTES = "Minutes\n\n" + "The group compared prices and chose a case for the remote.\n\n" * 20


def build(folder, uri):
    return built(folder, uri, chunk_size=40, max_children=4)


def found(index, question, **options):
    retriever = index.as_retriever(**{"by": "text", "level": 0, "top_k": 3} | options)
    return [node.metadata["file_name"] for node in retriever.retrieve(question)]


@pytest.fixture
def folder(tmp_path):
    source = tmp_path / "meetings"
    source.mkdir()
    for name in ("ES2009a", "ES2009b", "IS1001c"):
        (source / f"{name}.txt").write_text(MINUTES)
    return source


def test_of_equal_texts_that_of_the_named_file_is_found(folder, tmp_path):
    """And a renamed file by its new name alone."""
    index = build(folder, tmp_path / "index")
    for name in ("ES2009a", "ES2009b", "IS1001c"):
        assert found(index, f"what did they choose in meeting {name}?")[0] == f"{name}.txt"
    (folder / "ES2009a.txt").rename(folder / "budget.txt")
    index = build(folder, tmp_path / "index")
    assert found(index, "budget")[0] == "budget.txt"
    assert found(index, "ES2009a") == []


def test_titles_and_sections_are_found(tmp_path):
    source = tmp_path / "guide.md"
    source.write_text(
        "# Bridges\n\nThey span rivers.\n\n"
        f"## Corrosion\n\n{'Salt water harms it. ' * 12}\n\n## Paint\n\n{'Use two coats. ' * 12}"
    )
    index = build(source, tmp_path / "index")
    chunks = index.as_retriever(by="text", level=0).retrieve("corrosion")
    assert chunks[-1].metadata["section"] == "Bridges › Corrosion"
    assert "Salt" in chunks[-1].text
    assert "orrosion" not in chunks[-1].text
    assert not any("paint" in node.text.lower() for node in chunks)
    top = index.info()["levels"][-1]["level"]
    (root,) = index.as_retriever(by="text", level=top).retrieve("guide.md")
    assert root.metadata["title"] == "Bridges"


MAIL = """From: Petra Lindqvist <petra@rook.example>
To: Tessa Hollis <tessa@rook.example>
Cc: Len Farrow <len@rook.example>
Subject: Receipts
Date: Tue, 3 Mar 2026 20:41:12 +0000

"""
TEXT = " ".join(f"Please send a photo of receipt number {i} of last autumn." for i in range(12))


@pytest.mark.parametrize(
    ("name", "head", "questions"),
    [
        (
            "a.eml",
            MAIL,
            [
                "Which mail came from Petra?",
                "What did Hollis get?",
                "Who wrote to Farrow?",
                "What came on 3 March?",
                "mails of 2026-03-03",
            ],
        ),
        (
            "a.md",
            "---\nauthors: [Ida, Len Farrow]\ndate: 2025-08-30\n---\n",
            ["Farrow", "Notes of August 2025"],
        ),
        ("a.md", "---\nauthor: Len Farrow\n---\n", ["Farrow"]),
        ("a.html", "<meta name=author content='Len Farrow'><p>", ["Farrow"]),
    ],
)
def test_the_people_and_the_date_of_a_document_are_found_in_all_its_chunks(
    tmp_path, name, head, questions
):
    source = tmp_path / "notes"
    source.mkdir()
    (source / name).write_text(head + TEXT)
    (source / "b.txt").write_text(TEXT)
    index = build(source, tmp_path / "index")
    for question in questions:
        files = found(index, question, top_k=9)
        assert files == [name] * len(files)
        assert len(files) > 1


def test_a_new_author_is_found_after_an_update(tmp_path):
    source = tmp_path / "notes"
    source.mkdir()
    (source / "a.html").write_text(f"<meta name=author content=Ida><p>{TEXT}")
    (source / "b.html").write_text(f"<meta name=author content=Ida><p>{TEXT.upper()}")
    index = build(source, tmp_path / "index")
    assert {*found(index, "Ida", top_k=99)} == {"a.html", "b.html"}
    (source / "a.html").write_text(f"<meta name=author content=Suki><p>{TEXT}")
    index.update()
    assert {*found(index, "Ida", top_k=99)} == {"b.html"}
    assert {*found(index, "Suki", top_k=99)} == {"a.html"}
    assert index.verify().ok


class Unmoved(HashingEmbedding):
    """Every text has the same vector, so that only words tell texts apart."""

    def _vector(self, text):
        return super()._vector("")


@pytest.fixture(scope="module")
def unmoved(tmp_path_factory):
    texts = {
        "asking": "What, what, what? Where, where?",
        "ferry": "Two coins are enough for a ticket to cross the river by the ferry.",
        "health": "Rest, fresh air and a long walk every day: so the WHO advises.",
    }
    folder = tmp_path_factory.mktemp("unmoved")
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return built(folder, tmp_path_factory.mktemp("index"), model=Unmoved())


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("What is the ferry?", "ferry.txt"),
        ("the ferry goes where?", "ferry.txt"),
        ("What is the WHO?", "health.txt"),
        ("WHO", "health.txt"),
        ('is the word "what"', "asking.txt"),
        ("what", "asking.txt"),
        ("Where is it?", "asking.txt"),
    ],
)
def test_words_that_ask_count_only_if_there_are_no_others(unmoved, question, best):
    """BM25 would rank the text that says "what" and "where" first."""
    assert found(unmoved, question, by="context", top_k=1) == [best]
