"""What the explorer's endpoints return is what the index holds, in bounded parts."""

from typing import Any

import pytest
from fakes import HashingEmbedding
from indexes import built
from llama_index.core.schema import Document, TextNode
from records import metadata_of, replace_all
from serve.conftest import client_of
from store.trees import columns_of, documents, tree

from hierindex import DocumentHierarchy, HierarchicalIndex, HierarchyStore, Quote, Span
from hierindex.serve.explorer.endpoints import PART
from hierindex.text.display import Mark, displayed, marks_of

TEXTS = {document.doc_id: document.text for document in documents()}


def listed(client, of=None, path=()):
    """Each node under one, with the path to it."""
    found = client.json("nodes", **({"of": of} if of else {}))
    assert found["total"] == len(found["nodes"])
    for node in found["nodes"]:
        yield node, [*path]
        yield from listed(client, node["id"], (*path, node["id"]))


@pytest.fixture(scope="module")
def nodes(client):
    """All nodes of the index, each with the path to it."""
    return [*listed(client)]


def test_the_outline_is_the_table_of_contents(index, nodes) -> None:
    def entries(nodes):
        for node in nodes:
            below = node.pop("nodes")
            yield {**node, "children": len(below)}
            yield from entries(below)

    contents = [*entries(index.tree(depth=99)["nodes"])]
    outline = [node for node, _ in nodes]
    assert [{k: v for k, v in node.items() if k != "text"} for node in outline] == contents
    for node in outline:
        assert node["text"] == index.describe(node["id"])["text"][:300]


def test_children_come_in_parts(index, client) -> None:
    (root, *_) = client.json("nodes")["nodes"]
    whole = client.json("nodes", of=root["id"])
    parts = [
        client.json("nodes", of=root["id"], start=start, n=1) for start in range(whole["total"] + 1)
    ]
    assert [node for part in parts for node in part["nodes"]] == whole["nodes"]
    assert {part["total"] for part in parts} == {whole["total"]}


def test_children_come_around_one_of_them(client) -> None:
    (root, *_) = client.json("nodes")["nodes"]
    whole = client.json("nodes", of=root["id"])["nodes"]
    for n in (1, 2, len(whole) + 1):
        for i, child in enumerate(whole):
            part = client.json("nodes", of=root["id"], around=child["id"], n=n)
            assert part["start"] == i - i % n
            assert part["nodes"] == whole[part["start"] : part["start"] + n]
            assert part["total"] == len(whole)
    said = f"Node '{root['id']}' is not a child of '{root['id']}'."
    assert client.sentence("nodes", of=root["id"], around=root["id"]) == said
    assert "is not a root" in client.sentence("nodes", around=whole[0]["id"])


def test_a_node_is_shown_with_its_place(index, client, nodes) -> None:
    for node, path in nodes[::2]:
        shown = client.json("node", id=node["id"])
        described = index.describe(node["id"])
        assert shown.items() >= described.items()
        assert shown["chunks"] == node["chunks"]
        assert not {"n_documents", "n_children"} & shown.keys()
        assert [each["id"] for each in shown["path"]] == path
        for quote in shown["quotes"]:
            source = TEXTS[quote["document"]][quote["start"] : quote["end"]]
            assert (shown["text"][quote["at"] : quote["to"]] == source) == quote["verbatim"]


def test_the_parts_of_a_document_are_its_text(client) -> None:
    for document, text in TEXTS.items():
        found = client.json("document", document=document)
        assert (found["part"], found["parts"], found["place"]["start"]) == (0, 1, 0)
        said = "".join(each["text"] for each in found["paragraphs"])
        assert said.split() == text.split()
        for paragraph in found["paragraphs"]:
            assert text[paragraph["start"] :].split()[:3] == paragraph["text"].split()[:3]


def test_a_character_is_in_its_part(tmp_path) -> None:
    texts = ["one\n\n" * 1500, "two " * 2000, "three\n" * 1500, "🧪" * 10_000]
    text = "\n\n".join(texts)
    index = built({"long": text, "short": "short"}, tmp_path, DocumentHierarchy, chunk_size=3000)
    for client in client_of(index):
        first = client.json("document", document="long")
        assert first["length"] == len(text)
        parts = [client.json("document", document="long", part=i) for i in range(first["parts"])]
        assert len(parts) == len(text) // PART + 1
        each = [paragraph for part in parts for paragraph in part["paragraphs"]]
        assert "".join(paragraph["text"] for paragraph in each).split() == text.split()
        assert max(len(paragraph["text"].strip()) for paragraph in each) <= 4000
        for paragraph in each[::400]:
            found = client.json("document", document="long", at=paragraph["start"] + 1)
            assert paragraph in found["paragraphs"]
        assert client.json("document", document="long", part=99)["paragraphs"] == []


def test_notes_are_the_summaries_above_a_document(index, client, nodes) -> None:
    n_quotes = 0
    below = {
        node["id"]: index.describe(node["id"])["documents"] for node, _ in nodes if node["level"]
    }
    for document, text in TEXTS.items():
        notes = client.json("notes", document=document)["notes"]
        assert {note["id"] for note in notes} == {i for i in below if document in below[i]}
        for note in notes:
            shown = client.json("node", id=note["id"])
            quotes = [each for each in shown["quotes"] if each["document"] == document]
            said = [shown["text"][each["at"] : each["to"]] for each in quotes]
            assert [quote["text"] for quote in note["quotes"]] == said
            n_quotes += len(said)
            for quote in note["quotes"]:
                assert note["start"] <= quote["start"] < quote["end"] <= note["end"] <= len(text)
    assert n_quotes
    assert client.json("notes", document="none")["notes"] == []


def test_the_blocks_of_an_overview_stand_for_all_text(index, client, nodes) -> None:
    overview = client.json("overview")
    assert 1 <= len(overview["columns"]) <= 3
    order = [node["id"] for node, _ in nodes]
    for column in overview["columns"]:
        assert sum(block["share"] for block in column) == pytest.approx(1, abs=1e-4)
        places = [order.index(block["id"]) for block in column]
        assert places == sorted(places)
        for block in column:
            described = index.describe(block["id"])
            assert block["title"] == described["title"]
            assert block["documents"] == len(described["documents"])
    assert [*map(len, overview["columns"])] == sorted(map(len, overview["columns"]))
    assert overview["documents"] == len(TEXTS)
    assert overview["tokens"] == next(
        level["tokens"] for level in index.info()["levels"] if not level["level"]
    )


def test_an_overview_quotes_the_largest_parts(index, client) -> None:
    overview = client.json("overview")
    shares = [quote["share"] for quote in overview["quotes"]]
    assert shares == sorted(shares, reverse=True)
    assert 0 < len(shares) <= overview["parts"]
    for quote in overview["quotes"]:
        text = TEXTS[quote["document"]][quote["start"] : quote["end"]]
        assert quote["text"].split() == text.split()
        title = index.describe(quote["node"])["title"]
        assert quote["name"] in (title, quote["title"] or quote["document"])
        assert quote["document"] in index.describe(quote["node"])["documents"]
    assert 1 <= len(overview["questions"]) <= 3


def test_an_overview_quotes_a_large_document_first(tmp_path) -> None:
    texts = {
        name: " ".join(f"The {name} has {i} doors of oak." for i in range(n))
        for name, n in {"mill": 60, "barn": 10, "cart": 10}.items()
    }
    for client in client_of(built(texts, tmp_path, chunk_size=60)):
        first, *others = client.json("overview")["quotes"]
    assert (first["document"], len(others)) == ("mill", 2)
    assert first["share"] == pytest.approx(0.75, abs=0.05)


def test_an_overview_tells_documents_apart(tmp_path) -> None:
    texts = ("The mill is old.", "The barn is new.", "The cart is red.", "How is hay cut? By hand.")
    names = ("farm/mill.md", "farm/barn.txt", "work/cart.md", "work/hay.md")
    documents = [
        Document(text=text, id_=name, metadata={"title": text.partition(".")[0], "by": by, "n": n})
        for n, (text, name, by) in enumerate(
            zip(texts, names, ("Ada", "Bo", "Bo", "Ada"), strict=True)
        )
    ]
    index = built(documents, tmp_path, DocumentHierarchy)
    for client in client_of(index):
        overview = client.json("overview")
    keys = {each["key"]: each["values"] for each in overview["keys"]}
    assert keys.keys() == {"folder", "file type", "by"}  # titles and numbers divide nothing
    assert (sorted(keys["folder"]), sorted(keys["by"])) == (["farm", "work"], ["Ada", "Bo"])
    assert keys["file type"] == ["md", "txt"]
    for block in overview["columns"][-1]:
        if block["documents"] == 1:
            (name,) = index.describe(block["id"])["documents"]
            said = [
                of["values"][i] for of, i in zip(overview["keys"], block["values"], strict=True)
            ]
            assert said[:2] == [name.partition("/")[0], name.partition(".")[2]]
    assert len(overview["questions"]) == 3


def test_words_are_found_in_titles_and_chunks(index, client) -> None:
    reply = client.json("search", q="violin", n=500)
    found = reply["nodes"]
    assert reply["total"] == len(found)
    for node in found:
        described = index.describe(node["id"])
        assert node["text"] in described["text"]
        assert "violin" in (node["title"] if node["level"] else described["text"])
        documents = described["documents"]
        assert node["of"] == (documents[0] if len(documents) == 1 else None)
    levels = [node["level"] for node in found]
    assert levels == sorted(levels, reverse=True)
    assert 0 in levels
    few = [client.json("search", q="harbour", n=n) for n in (1, 2)]
    assert [(len(each["nodes"]), each["total"]) for each in few] == [(1, None), (2, 5)]
    for words in ("", "  ", "'\"); --", "zzz", "AND OR NOT *", "\u202e\0"):
        assert client.json("search", q=words)["nodes"] == []


def test_a_found_node_has_the_sentence_with_the_words_and_its_place(tmp_path) -> None:
    text = "The ferry left. Two gulls slept on a harbour wall. Gulls are birds."
    for client in client_of(built({"a.txt": text}, tmp_path, DocumentHierarchy)):
        found = client.json("search", q="gull on the walls")
        assert found["words"] == ["gull", "wall", "walls"]
        *_, chunk = found["nodes"]
        assert (chunk["text"], chunk["level"]) == ("Two gulls slept on a harbour wall.", 0)
        assert text[chunk["source"]["start"] : chunk["source"]["end"]] == chunk["text"]


def test_an_answer_is_that_of_the_command_line(index, client) -> None:
    options = {"level": [0, 1]}
    question = TEXTS["a.txt"][:40]
    answer = client.json("ask", q=question, **options)
    same = index.ask(question, **options).to_json()
    ends = [[*reversed(source.pop("path"))] for source in same["sources"]]
    assert [source.pop("path") for source in answer["sources"]] == ends
    assert (answer["answer"], answer["sources"]) == (same["answer"], same["sources"])


def test_texts_come_with_their_display(tmp_path) -> None:
    text = (
        "# On *mills*\n\nThe `sails` of a mill turn in any wind that blows from\nthe [sea](a.md).\n"
        "\n" + "Far off, the miller grinds corn, and nobody hears of it.\n\n" * 500
    )
    for client in client_of(built({"a.md": text}, tmp_path, DocumentHierarchy)):
        for part in (0, 1):
            found = client.json("document", document="a.md", part=part)
            first, last = found["paragraphs"][0], found["paragraphs"][-1]
            end = last["start"] + len(last["text"])
            marks = [Mark(*mark) for mark in found["marks"]]
            assert all(first["start"] <= mark.start < mark.end <= end for mark in marks)
            assert displayed(text, 0, end, marks)[first["start"] :] == displayed(
                text, first["start"], end
            )
        answer = client.json("ask", q="What turns in any wind?")
        (passage, *_) = answer["passages"]
        said = "The sails of a mill turn in any wind that blows from the sea."
        assert passage["text"].startswith(said)
        assert passage["citation"]["quote"] in text
        (found, *_) = client.json("search", q="sails")["nodes"]
        assert found["text"] == said
        node = client.json("node", id=found["id"])
        assert [Mark(*mark) for mark in node["marks"]] == marks_of(node["text"])


def test_an_answer_passes_the_filters(client) -> None:
    where = ["author=Ada", "author!=Bo"]
    answer = client.json("ask", q="Who met a kettle?", where=where)
    found = {c["document"] for source in answer["sources"] for c in source["citations"]}
    assert found <= {"a.txt", "c.txt"}
    assert found
    assert client.json("ask", q="Who?", where="author=Nobody")["refused"]


def test_the_index_is_described(index, client) -> None:
    found = client.json("index")
    assert found.items() >= index.info().items()
    assert found["name"] == "letters"


def test_the_map_has_each_chunk(client, nodes) -> None:
    found = client.json("map", level=1)
    n_chunks = len([node for node, _ in nodes if node["level"] == 0])
    assert len(found["points"]) == found["chunks"] == n_chunks
    assert len(client.json("map", level=1, n=3)["points"]) == 3


@pytest.mark.parametrize(
    ("path", "query", "said"),
    [
        ("nodes", {"n": 0}, "n is invalid: it must be at least 1, got '0'."),
        ("nodes", {"n": 10**6}, "n is invalid"),
        ("nodes", {"up": 1}, "There is no option 'up'."),
        ("node", {}, "id is missing."),
        ("document", {"document": "a.txt", "at": -1}, "at is invalid"),
        ("ask", {"q": " "}, "The question is empty"),
        ("ask", {"q": "x", "where": "author"}, "A filter is KEY=VALUE"),
        ("ask", {"q": "x", "level": "high"}, "level is invalid"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(client, path, query, said) -> None:
    assert said in client.sentence(path, **query)


@pytest.mark.parametrize(
    ("path", "query", "said"),
    [
        ("nodes", {"of": "zz"}, "No node has the id 'zz'."),
        ("node", {"id": ""}, "No node has the id ''."),
        ("node", {"id": "\ud800".encode("utf-8", "surrogatepass")}, "No node has the id"),
        ("nodes", {"of": "'; DROP TABLE nodes"}, "No node has the id"),
        ("document", {"document": "zz"}, "does not hold the text of 'zz'."),
        ("document", {"document": "a.txt", "at": 10**9}, "does not hold character 1000000000 of"),
        ("ask", {"q": "x", "level": 77}, "level 77"),
        ("ask", {"q": "x", "where": "autor=Ada"}, "the nearest is author"),
        ("map", {"level": 77}, "level 77"),
    ],
)
def test_what_the_index_does_not_hold_is_said_too(client, path, query, said) -> None:
    assert said in client.sentence(path, 404, **query)


def test_hostile_text_is_data(own, own_client) -> None:
    text = "</script><script>alert(1)</script>\u202e\0" + "x" * 100_000
    quotes = (Quote(0, len(text), Span("<b>.txt", 0, len(text))),)
    title = "<img onerror=alert(1)>"
    record = metadata_of(quotes=quotes, documents=("<b>.txt",), title=title)
    vector = HashingEmbedding().get_text_embedding("x")
    own.store.add([TextNode(id_="<i>", text=text, embedding=vector, metadata=record)])
    answer = own_client.get("/api/node", params={"id": "<i>"})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert (answer.json()["text"], answer.json()["title"]) == (text, title)
    brief = [node for node in own_client.json("nodes")["nodes"] if node["id"] == "<i>"]
    assert brief[0]["text"] == text[:300]
    (first, *_) = own_client.json("document", document="<b>.txt", at=9)["paragraphs"]
    assert (first["start"], first["text"]) == (0, text[:4000])


def test_an_emptied_index_is_shown(own, own_client) -> None:
    own.store.delete_nodes(columns_of(own.store, "id")["id"])
    assert own_client.json("index")["levels"] == []
    assert own_client.json("nodes") == {"of": None, "nodes": [], "start": 0, "total": 0}
    assert own_client.json("overview")["columns"] == []
    assert own_client.json("search", q="harbour")["total"] == 0
    assert own_client.json("map", level=0)["points"] == []
    assert own_client.json("ask", q="Who?")["refused"]


def test_a_damaged_index_is_said_to_be_damaged(own, own_client, tmp_path) -> None:
    own_client.json("index")
    for path in tmp_path.rglob("*.lance/data/*"):
        path.write_bytes(b"\0" * 99)
    assert "The index is damaged" in own_client.sentence("search", 500, q="harbour")
    assert "The index is damaged" in own_client.sentence("nodes", 500)


def test_an_index_that_is_gone(own, own_client, tmp_path) -> None:
    (tmp_path / "index").rename(tmp_path / "elsewhere")
    assert "holds no index" in own_client.sentence("nodes", 404)


REQUESTS = {
    "index": {},
    "nodes": {},
    "overview": {},
    "search": {"q": "harbour"},
    "map": {"level": 0},
    "ask": {"q": "Who met a kettle?"},
    "node": {"id": "no such node"},
    "document": {"document": "none"},
    "notes": {"document": "none"},
}


def test_each_reply_names_its_generation(own, own_client, tmp_path) -> None:
    def numbers() -> set[str]:
        replies = [own_client.get(f"/api/{path}", params=q) for path, q in REQUESTS.items()]
        return {reply.headers["hierindex-generation"] for reply in replies}

    assert numbers() == {"1"}
    own.store.delete("a.txt")
    assert numbers() == {"2"}
    own.store.add(tree())
    own.store.rollback()
    assert numbers() == {"4"}
    assert "hierindex-generation" not in own_client.get("/api/node").headers
    (tmp_path / "index").rename(tmp_path / "elsewhere")
    assert numbers() == {"0"}


class Publishing(HashingEmbedding):
    """A model that calls a function when it embeds its first question."""

    publish: Any = None

    def _get_query_embedding(self, query: str) -> list[float]:
        if not self.queries:
            self.publish()
        return super()._get_query_embedding(query)


@pytest.mark.parametrize("purge", [False, True], ids=["kept", "removed"])
def test_a_question_is_answered_from_the_generation_that_it_names(tmp_path, purge) -> None:
    """Another one is published between the check of its filters and its search."""
    store = HierarchyStore(tmp_path)
    replace_all(store, tree())
    others = tree(DocumentHierarchy)
    model = Publishing(publish=lambda: replace_all(store, others, {}, purge=purge))
    for client in client_of(HierarchicalIndex(store, model)):
        asked = {"q": "Who met a kettle?", "level": 1, "where": "author!=Nobody"}
        answer = client.get("/api/ask", params=asked)
        assert answer.headers["hierindex-generation"] == ("2" if purge else "1")
        known = {node.node_id for node in (others if purge else tree())}
        assert {source["id"] for source in answer.json()["sources"]} <= known
        assert answer.json()["sources"]
