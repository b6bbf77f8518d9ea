"""What the tools of an index reply."""

from itertools import pairwise

import pytest
from agent import agent
from store.trees import chunks, columns_of, documents

from hierindex.serve.mcp.server import server_of

TEXTS = {document.doc_id: document.text for document in documents()}
CHUNKS = {chunk.text for document in documents() for chunk in chunks(document)}
QUESTION = "harbour and lantern"


@pytest.fixture
def short(monkeypatch):
    """Replies of few characters, so that there are several parts."""
    monkeypatch.setattr("hierindex.serve.mcp.replies.MOST_CHARACTERS", 1000)


def results(parts) -> list[dict]:
    parts = list(parts)
    entries = [entry for part in parts for entry in part["results"]]
    assert {part["total"] for part in parts} == {len(entries)}
    return entries


def without_quotes(text: str) -> str:
    return "\n".join(line.removeprefix("> ") for line in text.split("\n"))


def test_the_tools_only_read_and_their_replies_have_schemas(asked) -> None:
    tools = {tool.name: tool for tool in asked.tools()}
    assert [*tools] == ["search", "outline", "expand", "read", "fetch"]
    for tool in tools.values():
        assert tool.annotations.read_only_hint
        assert tool.output_schema["properties"]["next_step"]
        assert tool.description
    assert tools["fetch"].input_schema["properties"] == tools["read"].input_schema["properties"]


def test_a_search_finds_all_chunks_in_parts_verbatim_where_they_say(asked) -> None:
    found = results(asked.parts("search", query=QUESTION))
    assert {entry["text"] for entry in found} == CHUNKS
    assert len(found) == len(CHUNKS)
    for entry in found:
        (place,) = entry["citations"]
        assert TEXTS[place["document"]][place["start"] : place["end"]] == entry["text"]
        assert entry["url"] == (
            f"hierindex:{place['document']}#char={place['start']},{place['end']}"
        )
        assert asked.reply("read", id=entry["url"])["text"] == entry["text"]
        read = asked.reply("fetch", id=entry["id"])
        assert {*read} >= {"id", "title", "text", "url"}
        assert (read["id"], read["text"], read["url"]) == (
            entry["id"],
            entry["text"],
            entry["url"],
        )


def test_the_text_says_what_the_values_say(asked) -> None:
    for tool, arguments in {"search": {"query": QUESTION}, "outline": {}}.items():
        result = asked.result(tool, **arguments)
        text = without_quotes(result.content[0].text)
        for entry in result.structured_content["results"]:
            place = entry["citations"][0]
            assert entry["text"] in text
            assert f"{place['document']}#char={place['start']},{place['end']}" in text
        assert result.structured_content["next_step"] in text
        assert text.startswith("Generation 1: ")


def test_an_outline_is_that_of_the_index(asked, index, short) -> None:
    for budget in (100, 500, 2000):
        found = results(asked.parts("outline", budget=budget))
        assert [entry["id"] for entry in found] == [n.node_id for n in index.outline(budget)]
    of = asked.reply("outline", node="b.txt", budget=500)["results"]
    assert {place["document"] for entry in of for place in entry["citations"]} == {"b.txt"}


def test_an_outline_of_the_whole_lists_the_documents_first(asked, own, own_agent) -> None:
    first, *rest = asked.parts("outline", budget=2000)
    assert [each["id"] for each in first["documents"]] == sorted(TEXTS)
    assert first["n_documents"] == len(TEXTS)
    assert not any("documents" in part for part in [*rest, asked.reply("outline", node="b.txt")])
    said = asked.said("outline")
    assert said.index(f"The first {len(TEXTS)} of {len(TEXTS)} documents:") < said.index("level ")
    ada = asked.reply("outline", where=["author=Ada"])
    assert [each["id"] for each in ada["documents"]] == ["a.txt", "c.txt"]
    assert own_agent.reply("outline")["documents"][0] == {"id": "a.txt", "title": "a.txt"}


def test_an_outline_lists_documents_of_which_a_middle_chunk_passes(own, own_agent) -> None:
    middle = chunks(documents()[0])[3].text
    nodes = own.store.get_nodes()
    for node in nodes:
        node.metadata["part"] = "middle" if node.text == middle else "end"
    own.store.add(nodes)
    listed = own_agent.reply("outline", where=["part=middle"])
    assert [each["id"] for each in listed["documents"]] == ["a.txt"]


def test_a_search_has_a_limit(asked) -> None:
    every = results(asked.parts("search", query=QUESTION))
    for limit in (1, 7):
        assert results(asked.parts("search", query=QUESTION, limit=limit)) == every[:limit]
    assert "limit is invalid" in asked.sentence("search", query=QUESTION, limit=0)


def test_each_call_names_one_of_several_indexes(index, own) -> None:
    indexes = {"soft": index, "plain": own}
    with agent(server_of(indexes)) as both:
        assert "There are several indexes: soft, plain." in both.client.instructions
        for tool in both.tools():
            assert tool.input_schema["properties"]["index"]["enum"] == [*indexes]
            assert "index" in tool.input_schema["required"]
        for name, each in indexes.items():
            (root, *_) = both.reply("outline", index=name, budget=300)["results"]
            assert each.describe(root["id"])["title"] == root["title"]
        assert "index is missing" in both.sentence("outline")
        assert "index is invalid: it must be soft or plain" in both.sentence("outline", index="x")


def test_all_chunks_are_under_the_roots(asked, index) -> None:
    ids = index.info()["roots"]
    texts, seen = set(), set()
    while ids:
        node_id = ids.pop()
        seen.add(node_id)
        parts = list(asked.parts("expand", id=node_id))
        node = parts[0]["node"]
        assert node["id"] == node_id
        if node["level"] == 0:
            texts.add(node["text"])
        below = [each["id"] for each in results(parts)]
        assert len(below) == node.get("children", 0)
        ids += [each for each in below if each not in seen]
    assert texts == CHUNKS


def test_a_path_leads_from_a_root_to_the_node(asked, index) -> None:
    parents = dict(zip(*columns_of(index.store, "id", "parent_ids").values(), strict=True))
    for node_id in [*parents][::2]:
        path = [*(each["id"] for each in asked.reply("expand", id=node_id)["path"]), node_id]
        assert not parents[path[0]]
        for parent, child in pairwise(path):
            assert parents[child][0] == parent


def test_each_node_and_document_is_read_verbatim_in_parts(asked, index, monkeypatch) -> None:
    monkeypatch.setattr("hierindex.serve.mcp.tools.MOST_CHARACTERS", 400)
    for name in [*columns_of(index.store, "id")["id"][::3], *TEXTS]:
        parts = list(asked.parts("read", id=name))
        read = 0
        for part in parts:
            assert part["start"] == read
            for place in part["citations"]:
                verbatim = part["text"][place["at"] : place["to"]]
                source = TEXTS[place["document"]][place["start"] : place["end"]]
                assert verbatim.split() == source.split()
                assert len(verbatim) == len(source)
                read += len(source)
        assert read == parts[-1]["total"]
        if name in TEXTS:
            assert read == len(TEXTS[name])


@pytest.mark.parametrize(("start", "end"), [(0, 1), (10, 300), (100, 10**9), (0, 10**9)])
def test_a_place_is_read_as_far_as_the_document_goes(asked, start, end) -> None:
    part = asked.reply("read", id=f"a.txt#char={start},{end}")
    assert part["text"].split() == TEXTS["a.txt"][start:end].split()
    assert part["citations"][0]["start"] == start


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("serch", {}, "There is no tool 'serch'; there are search, outline, expand"),
        ("search", {}, "query is missing."),
        ("search", {"query": 1}, "query is invalid: it must be text"),
        ("search", {"query": "x" * 1_000_000}, "query is invalid: it must be text of at most 2000"),
        ("search", {"query": "x", "n": 3}, "There is no option 'n'."),
        (
            "search",
            {"query": "x", "level": "pages"},
            "level is invalid: it must be a whole number, top",
        ),
        ("search", {"query": "x", "where": ["autor=Ada"]}, "the nearest is author"),
        ("search", {"query": "x", "where": ["author"]}, "A filter is KEY=VALUE"),
        ("search", {"query": "x", "cursor": "\x1b[2J"}, "The cursor is invalid"),
        ("outline", {"budget": 1}, "No sentence fits a budget of 1 tokens; the shortest has"),
        ("outline", {"budget": 0}, "budget is invalid"),
        ("outline", {"node": "e.txt"}, "No node and no document has the id 'e.txt'; similar are"),
        ("expand", {"id": "f" * 32}, "outline tells what there is"),  # of another index
        ("expand", {"id": "a.txt#char=0,9"}, "is a passage of a document; pass it to `read`"),
        ("read", {"id": ""}, "No node and no document has the id ''"),
        ("read", {"id": "a.txt#char=5,5"}, "A passage must start before it ends"),
        ("read", {"id": "a.txt#char=99999,100000"}, "The index holds no text"),
        ("read", {"id": "e.txt#char=0,5"}, "No node and no document has the id 'e.txt'"),
        ("read", {"id": "x" * 100_000}, "id is invalid: it must be text of at most 5000"),
        ("fetch", {"id": "'; DROP TABLE nodes; --"}, "No node and no document has the id"),
    ],
)
def test_a_wrong_call_is_answered_by_a_sentence(asked, tool, arguments, said) -> None:
    sentence = asked.sentence(tool, **arguments)
    assert said in sentence
    assert len(sentence) <= 503


def test_a_document_is_expanded_where_a_node_is_the_whole_of_it(own, own_agent) -> None:
    rows = columns_of(own.store, "id", "whole_document")
    whole = dict(zip(rows["whole_document"], rows["id"], strict=True))
    for document in TEXTS:
        for name in (document, whole[document][:12]):
            assert own_agent.reply("expand", id=name)["node"]["id"] == whole[document]
    own.store.delete_nodes([whole["a.txt"]])
    assert "No node has exactly the chunks of" in own_agent.sentence("expand", id="a.txt")


def test_several_nodes_of_one_beginning_are_named(asked, index) -> None:
    ids = columns_of(index.store, "id")["id"]
    first = next(i for i in "0123456789abcdef" if sum(each[0] == i for each in ids) > 1)
    said = asked.sentence("read", id=first)
    assert "nodes have an id that begins with" in said
    assert sum(each in said for each in ids) == min(3, sum(each[0] == first for each in ids))


def test_a_failure_of_ours_is_a_sentence_too(own_agent, monkeypatch, caplog) -> None:
    monkeypatch.setattr("hierindex.serve.mcp.tools.known_filters", lambda *_: 1 / 0)
    assert own_agent.sentence("search", query="x") == "ZeroDivisionError: division by zero"
    assert "A request failed." in caplog.text
