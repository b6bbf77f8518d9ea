import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.core.identity import (
    N_HEX,
    digest,
    document_key,
    file_of,
    leaf_ids,
    name_of,
    parent_id,
    wholes,
)

texts = st.text(st.characters(), max_size=4)  # lone surrogates too: text as read may have them
chunks = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), max_size=12)


def ids_of(chunks, namespace=""):
    return leaf_ids(namespace, [document for document, _ in chunks], [text for _, text in chunks])


@given(st.lists(texts, max_size=3), st.lists(texts, max_size=3))
def test_digests_are_equal_only_if_the_fields_are(fields, others):
    assert (digest(*fields) == digest(*others)) == (fields == others)


@given(st.lists(texts, min_size=2, max_size=4), st.data())
def test_fields_that_are_joined_alike_have_other_digests(fields, data):
    i = data.draw(st.integers(0, len(fields) - 2))
    joined = [*fields[:i], fields[i] + fields[i + 1], *fields[i + 2 :]]
    assert digest(*joined) != digest(*fields)


def test_a_digest_is_hexadecimal():
    assert len(digest("a")) == len(f"{int(digest('a'), 16):x}") == N_HEX


@given(chunks)
def test_every_chunk_has_an_id_of_its_own_also_if_its_text_is_repeated(chunks):
    assert len(set(ids_of(chunks))) == len(chunks)


@given(chunks, st.data())
def test_an_insertion_renames_nothing_else(chunks, data):
    at = data.draw(st.integers(0, len(chunks)))
    before = ids_of(chunks)
    inserted = ids_of([*chunks[:at], ("a", "new"), *chunks[at:]])
    repeated = ids_of([*chunks[:at], ("a", "x"), *chunks[at:]])
    assert inserted[:at] + inserted[at + 1 :] == before
    assert set(before) < set(repeated)


@given(chunks)
def test_a_document_s_ids_do_not_depend_on_the_other_documents(chunks):
    alone = [chunk for chunk in chunks if chunk[0] == "a"]
    together = [id_ for chunk, id_ in zip(chunks, ids_of(chunks), strict=True) if chunk[0] == "a"]
    assert ids_of(alone) == together


def test_a_namespace_has_ids_of_its_own():
    assert ids_of([("a", "x")], namespace="one") != ids_of([("a", "x")], namespace="two")


@pytest.mark.parametrize(
    ("children", "text_key"),
    [
        pytest.param(["1", "3"], "text", id="child"),
        pytest.param(["2", "1"], "text", id="order of children"),
        pytest.param(["1"], "text", id="number of children"),
        pytest.param(["1", "2"], "other", id="what shapes it"),
    ],
)
def test_all_that_shapes_a_summary_is_in_its_id(children, text_key):
    assert parent_id(["1", "2"], "text") == parent_id(["1", "2"], "text")
    assert parent_id(children, text_key) != parent_id(["1", "2"], "text")


@pytest.mark.parametrize(
    ("document", "parts"),
    [
        ("a.txt#b.txt", []),
        ("C#/a.txt", []),
        ("a.eml", []),
        ("a.eml#", []),
        ("a.eml#b/c.txt", []),
        ("/x/A.EML#b", ["b"]),
        ("x#1/a.Mbox#line\nbreak.eml#c.pdf", ["line\nbreak.eml", "c.pdf"]),
        ("a.eml#x/b.msg#c.eml#d.eml", ["c.eml", "d.eml"]),
    ],
)
def test_parts_are_those_after_a_mail_or_a_mailbox(document, parts):
    every = wholes(document)
    assert every[0] == document
    assert "#".join([file_of(document), *parts]) == document
    assert len(every) == 1 + len(parts)
    assert [name_of(each) for each in every[-2::-1]] == parts


def test_the_key_of_a_document_tells_it_from_others():
    assert document_key("a") == document_key("a") != document_key("b")
    assert document_key("a") != parent_id([], "a")
