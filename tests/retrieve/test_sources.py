"""The passages that a node cites, opened in the text that an index holds."""

from pathlib import Path

import pytest
from fakes import HashingEmbedding
from histories import documents, history
from hypothesis import given
from hypothesis import strategies as st
from indexes import built as built_of
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter
from llama_index.core.schema import Document, TextNode
from pdfs import Typed, typed

from hierindex import (
    HierarchicalIndex,
    HierarchyStore,
    Node,
    Quote,
    SemanticHierarchy,
    Span,
    read_documents,
)
from hierindex.errors import InputError
from hierindex.retrieve.sources import SourcePassage, Stretch, source_passages, stretches_of

SENTENCES = [f"The keeper of the lighthouse wrote letter {i} to the harbour." for i in range(12)]
TEXT = "\n\n".join([" ".join(SENTENCES[:6]), " ".join(SENTENCES[6:])])


def built(sources, uri: Path, **options) -> HierarchicalIndex:
    options = {"chunk_size": 30, "max_children": 3, "summary_tokens": 40, **options}
    return built_of(sources, uri, model=HashingEmbedding(model_name="known"), **options)


def passage_at(snapshot, span: Span, context: int) -> SourcePassage:
    stretches = stretches_of(snapshot, span.document)
    stretch = next(each for each in stretches if each.start <= span.start <= span.end <= each.end)
    return stretch.around(stretch.span(*span[1:3]), context)


def blank(text: str) -> str:
    """The text with any white space as blanks, as that between chunks is not known."""
    return "".join(" " if character.isspace() else character for character in text)


def check(index: HierarchicalIndex, texts: dict[str, str], context: int = 60) -> list[Span]:
    """Every node's passages are in the documents where they say, and cover its citations."""
    opened = list[Span]()
    for node in index.store.get_nodes():
        passages = index.sources(node.node_id, context=context)
        cited = Node.of(node).citations
        for passage in passages:
            document, start, end = passage.citation[:3]
            shown = passage.before + passage.text + passage.after
            first = start - len(passage.before)
            text = texts[document]
            assert blank(shown) == blank(text[first : first + len(shown)])
            assert blank(passage.text) == blank(text[start:end])
            assert max(len(passage.before), len(passage.after)) <= context
        for span in cited:
            assert any(
                p.citation.document == span.document
                and p.citation.start <= span.start
                and span.end <= p.citation.end
                for p in passages
            )
        opened += [passage.citation for passage in passages]
    return opened


@pytest.mark.parametrize("seed", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 1))])
def test_passages_are_those_of_the_documents_after_any_history(tmp_path, seed):
    for texts in history(seed, 1):
        check(built(documents(texts), tmp_path), texts)


def test_a_chunk_is_shown_between_whole_sentences(tmp_path):
    index = built({"a": TEXT}, tmp_path, chunk_size=45)
    node = next(n for n in index.store.get_nodes() if SENTENCES[4] in n.text)
    (passage,) = index.sources(node.node_id, context=100)
    assert passage.text == node.text
    before, after = (TEXT.index(node.text), TEXT.index(node.text) + len(node.text))
    assert blank(TEXT[:before]).endswith(blank(passage.before))
    assert passage.before.strip() in SENTENCES
    assert passage.after.strip() in SENTENCES
    assert blank(TEXT[after:]).startswith(blank(passage.after))
    (alone,) = index.sources(node.node_id, context=0)
    assert (alone.before, alone.after) == ("", "")
    (whole,) = index.sources(node.node_id, context=10_000)
    assert blank(whole.before + whole.text + whole.after) == blank(TEXT)


def test_adjoining_citations_are_one_passage_with_the_place_of_its_start(tmp_path):
    index = built({"a": TEXT}, tmp_path)
    starts = [TEXT.index(sentence) for sentence in SENTENCES]
    spans = [
        Span("a", starts[i], starts[i] + len(SENTENCES[i]), page=i, section=f"{i}")
        for i in (8, 2, 3, 6)  # of several chunks
    ]
    quotes = tuple(Quote(0, 1, span, verbatim=False) for span in spans)
    node = Node("n", "They wrote.", level=1, documents=("a",), quotes=quotes)
    found = source_passages(index.store.snapshot(), node, 20)
    assert [passage.citation for passage in found] == [
        spans[1]._replace(end=spans[2].end),
        spans[3],
        spans[0],
    ]
    assert blank(found[0].text) == " ".join(SENTENCES[2:4])
    data = found[0].to_json()
    assert (data["page"], data["section"]) == (2, ["2"])
    assert data["before_start"] == data["start"] - len(data["before"])
    assert data["after_end"] == data["end"] + len(data["after"])


def test_after_an_edit_the_new_text_is_shown(tmp_path):
    texts = {"a": TEXT}
    built(documents(texts), tmp_path)
    texts["a"] = TEXT.replace("letter 5", "a postcard")
    index = built(documents(texts), tmp_path)
    shown = [p for n in index.store.get_nodes() for p in index.sources(n.node_id, context=500)]
    assert any("postcard" in passage.before + passage.after for passage in shown)
    assert not any("letter 5" in p.before + p.text + p.after for p in shown)


def test_nothing_of_a_deleted_document_is_shown(tmp_path):
    texts = {"a": TEXT, "b": TEXT.replace("keeper", "baker")}
    index = built(documents(texts), tmp_path)
    index.store.delete("b")
    assert {span.document for span in check(index, texts)} == {"a"}


def test_no_text_is_shown_across_a_deleted_chunk(tmp_path):
    index = built({"a": TEXT}, tmp_path)
    leaves = [n for n in index.store.get_nodes() if not Node.of(n).level]
    leaves.sort(key=lambda node: node.start_char_idx)
    index.store.delete_nodes([leaves[2].node_id])
    (before,) = index.sources(leaves[1].node_id, context=10_000)
    (after,) = index.sources(leaves[3].node_id, context=10_000)
    assert (before.after, after.before) == ("", "")
    assert before.before.strip() == leaves[0].text
    assert after.after.strip().endswith(SENTENCES[-1])


FILES = {
    "wide.txt": ("夜の灯台は静かでした。" * 5 + "👩\u200d🚀 e\u0301 " * 5).encode(),
    "lines.md": b"\xef\xbb\xbf" + b"# Log\r\n\r\nIt blew.\r\n\r\n## Day\r\n\r\nIt was.\r\n" * 4,
    "page.html": b"<h1 id=log>Log</h1>" + b"<p>It blew all day and all night.</p>" * 5,
    "report.pdf": typed(
        *[[Typed(f"Page {i} was written by the keeper of the tower.", 700)] for i in range(5)],
        labels=True,
    ),
    "table.csv": b"name,born\n" + b"".join(b"Ada%d,18%02d\n" % (i, i) for i in range(9)),
}


def test_files_of_any_kind_are_opened_as_read(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    texts = {document.id_: document.text for document in read_documents(folder)[0]}
    index = built(folder, tmp_path / "index")
    for path in folder.iterdir():
        path.unlink()  # they are not read again
    of_pdf = [span for span in check(index, texts) if span.document == "report.pdf"]
    assert {(1, "i"), (3, "1"), (5, "3")} <= {(span.page, span.page_label) for span in of_pdf}


@pytest.mark.parametrize(
    "splitter",
    [SentenceSplitter(chunk_size=40, chunk_overlap=20), MarkdownNodeParser()],
)
def test_chunks_of_other_splitters_are_opened_too(tmp_path, splitter):
    """Those that overlap, and those that leave something out."""
    texts = {"a": f"# Log\n\n{TEXT}\n\n# Day\n\n{SENTENCES[0]}"}
    check(built(texts, tmp_path, splitter=splitter), texts)


def test_a_chunk_without_a_place_cannot_be_opened(tmp_path):
    store = HierarchyStore(tmp_path)
    store.add(SemanticHierarchy(HashingEmbedding())([TextNode(text="It was calm.")]))
    index = HierarchicalIndex(store, HashingEmbedding())
    (node,) = index.store.get_nodes()
    with pytest.raises(InputError, match="cannot be shown: its chunks have no known position"):
        index.sources(node.node_id)


def test_an_edited_chunk_is_not_shown_as_its_source(tmp_path):
    edited = TextNode(text="IT WAS.", start_char_idx=0, end_char_idx=12)
    store = HierarchyStore(tmp_path)
    store.add(SemanticHierarchy(HashingEmbedding())([edited]))
    index = HierarchicalIndex(store, HashingEmbedding())
    with pytest.raises(InputError, match="cannot be shown"):
        index.sources(store.get_nodes()[0].node_id)


def test_context_is_a_number_of_characters(tmp_path):
    index = built({"a": TEXT}, tmp_path)
    for context in (-1, "9", 1.5, None):
        with pytest.raises(InputError, match="context must be an integer of at least 0"):
            index.sources(index.info()["roots"][0], context=context)


@given(st.text(st.sampled_from("ab. \n。"), max_size=30), st.integers(0, 9), st.data())
def test_context_is_bounded_and_beside_the_passage(text, context, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    passage = Stretch(7, text).around(Span("a", 7 + start, 7 + end), context)
    assert isinstance(passage, SourcePassage)
    assert passage.text == text[start:end]
    assert text[:start].endswith(passage.before)
    assert text[end:].startswith(passage.after)
    assert max(len(passage.before), len(passage.after)) <= context


def test_a_long_run_of_blanks_is_read_once():
    """Read from each of its characters, it takes minutes."""
    blanks = " " * 100_000
    text = f"{blanks}x. The mill. It ran dry{blanks}x"
    start = text.index("mill")
    passage = Stretch(0, text).around(Span("a", start, start + 5), start - 1)
    assert (passage.before, passage.text, passage.after) == ("The ", "mill.", " It ran dry")


@pytest.mark.parametrize("overlap", [0, 12])
def test_a_passage_is_shown_as_in_the_whole_text(tmp_path, overlap):
    splitter = SentenceSplitter(chunk_size=30, chunk_overlap=overlap)
    document = Document(text="\n\n".join([TEXT] * 2), id_="a")
    snapshot = built([document], tmp_path, splitter=splitter).store.snapshot()
    whole = passage_at(snapshot, Span("a", 0, len(document.text)), 0).text
    assert blank(whole) == blank(document.text)
    for start in range(0, len(whole), 397):
        for length, context in ((0, 0), (30, 40), (400, 7), (5, 300), (9, 10**6)):
            span = Span("a", start, min(start + length, len(whole)))
            passage = passage_at(snapshot, span, context)
            assert passage == Stretch(0, whole).around(span, context)


def test_a_passage_has_the_page_that_it_begins_on(tmp_path):
    """Also if its chunk begins on the page before."""
    lines = [["The lamp burned."], ["The keeper slept."], ["A storm came.", "It passed."]]
    pages = [[Typed(text, 700 - 20 * i) for i, text in enumerate(page)] for page in lines]
    (tmp_path / "a.pdf").write_bytes(typed(*pages))
    index = built(tmp_path / "a.pdf", tmp_path / "index", chunk_size=200)
    snapshot = index.store.snapshot()
    (chunk,) = (node for node in index.store.get_nodes() if "lamp" in node.text)
    for number, page in enumerate(lines, start=1):
        for text in page:
            start = chunk.text.index(text)
            span = Span("a.pdf", start, start + len(text))
            assert passage_at(snapshot, span, 0).citation == span._replace(page=number)
