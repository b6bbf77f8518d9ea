import json
from dataclasses import replace

import pytest
from hierindex.record import user_metadata
from hypothesis import given
from hypothesis import strategies as st

from hierindex.node import Quote, Span, quotes_of, shared_section
from hierindex.text_node import RECORD_KEYS

NUMBERS = st.integers(0, 10**12)
PAGES = st.none() | NUMBERS
SPANS = st.builds(Span, st.text(), NUMBERS, NUMBERS, PAGES, section=..., page_label=..., anchor=...)
BESIDE = st.lists(SPANS, max_size=3).map(tuple)
QUOTES = st.builds(Quote, NUMBERS, NUMBERS, st.none() | SPANS, st.booleans(), BESIDE)
RECORDS = st.builds(
    NodeRecord,
    level=NUMBERS,
    level_max=NUMBERS,
    kind=st.text(),
    documents=st.lists(st.text()).map(tuple),
    parents=st.lists(st.tuples(st.text(), st.floats(0, 1))).map(tuple),
    quotes=st.lists(QUOTES, max_size=5).map(tuple),
    n_tokens=NUMBERS,
    method=st.text(),
    embed_model=st.text(),
    summarizer=st.text(),
    source_similarity=st.none() | st.floats(0, 1),
)


@given(RECORDS)
def test_a_record_survives_metadata_and_json(record):
    metadata = record.to_metadata()
    again = NodeRecord.from_metadata(json.loads(json.dumps(metadata)))
    assert again == record
    assert hash(again) == hash(record)
    assert all(isinstance(span, Span) for span in again.citations)


@given(RECORDS)
def test_metadata_is_scalars_and_has_no_similarity_that_nobody_looked_at(record):
    metadata = record.to_metadata()
    level, level_max, similarity, details = RECORD_KEYS
    assert {*metadata, similarity} == {*RECORD_KEYS}
    assert (similarity in metadata) == (record.source_similarity is not None)
    assert metadata[level] is record.level
    assert metadata[level_max] is record.level_max
    assert metadata.get(similarity) is record.source_similarity
    assert isinstance(metadata[details], str)


@pytest.mark.parametrize("record", [NodeRecord(level=2), NodeRecord(source_similarity=None)])
def test_common_words_are_the_user_s(record):
    own = {"level": "advanced", "level_max": 3, "source_similarity": "earth"}
    metadata = own | record.to_metadata()
    assert NodeRecord.from_metadata(metadata) == record
    assert user_metadata(metadata) == own


@given(RECORDS)
def test_citations_are_the_distinct_known_sources_in_order(record):
    sources = [source for quote in record.quotes for source in quote.sources]
    assert len(set(record.citations)) == len(record.citations)
    assert set(record.citations) == set(sources)
    firsts = [sources.index(span) for span in record.citations]
    assert firsts == sorted(firsts)
    doubled = replace(record, quotes=record.quotes * 2)
    assert doubled.citations == record.citations


@pytest.mark.parametrize("metadata", [{}, {"file_name": "a.txt", "level": 3}])
def test_without_a_record_there_is_the_default(metadata):
    assert NodeRecord.from_metadata(metadata) == NodeRecord()


def test_other_metadata_is_of_no_account():
    record = NodeRecord(level=1, quotes=(Quote(0, 3, None),))
    assert NodeRecord.from_metadata({"kind": "x", **record.to_metadata()}) == record


def test_a_page_is_told_where_there_is_one():
    assert Span("a", 1, 2).to_json() == {"document": "a", "start": 1, "end": 2}
    assert Span("a", 1, 2, 3).to_json() == {"document": "a", "start": 1, "end": 2, "page": 3}


@given(st.text(min_size=1), st.data())
def test_a_part_of_a_verbatim_quote_keeps_its_exact_source(document, data):
    def stretch(most):
        return sorted((data.draw(st.integers(0, most)), data.draw(st.integers(0, most))))

    start, end = stretch(len(document))
    at = data.draw(NUMBERS)
    quote = Quote(at, at + end - start, Span("d", start, end, 4))
    a, b = stretch(end - start)
    part = quote.part(at + a, at + b)
    assert (part.at, part.to) == (at + a, at + b)
    assert document[part.source.start : part.source.end] == document[start:end][a:b]
    assert (part.source.document, part.source.page) == ("d", 4)
    assert quote.part(quote.at, quote.to) == quote


@pytest.mark.parametrize("source", [None, Span("d", 0, 7), Span("d", 0, 30, 2)])
def test_a_part_of_any_other_quote_keeps_the_whole_source(source):
    beside = (Span("d", 40, 50),)
    quote = Quote(10, 20, source, verbatim=False, beside=beside)
    assert quote.part(12, 15) == Quote(12, 15, source, verbatim=False, beside=beside)


def test_a_section_is_told_as_titles_and_kept_by_parts():
    span = Span("a", 0, 7, 3, "Results › Timing")
    assert span.to_json()["section"] == ["Results", "Timing"]
    assert Quote(10, 17, span).part(12, 15).source == Span("a", 2, 5, 3, "Results › Timing")
    record = NodeRecord(quotes=(Quote(10, 17, span), Quote(18, 20, None, False, (span,))))
    assert NodeRecord.from_metadata(record.to_metadata()) == record


def test_spans_of_records_without_sections_are_read():
    assert quotes_of([[0, 3, ["a", 1, 4, None], True, []]]) == (Quote(0, 3, Span("a", 1, 4)),)


@pytest.mark.parametrize(
    ("sections", "shared"),
    [
        (["A › B", "A › B"], "A › B"),
        (["A › B", "A › B › C"], "A › B"),
        (["A › B", "A › Bee"], "A"),
        (["A", "B"], ""),
        (["A", ""], ""),
        ([], ""),
    ],
)
def test_sections_share_titles(sections, shared):
    assert shared_section(sections) == shared
