"""Agents whose index changes while they read."""

from indexes import built
from serve.mcp.conftest import agent_of
from store.trees import columns_of, documents, tree

from hierindex import HierarchicalIndex, HierarchyStore

QUESTION = "harbour and lantern"


def test_a_cursor_ends_with_its_generation(own, own_agent) -> None:
    calls = {"search": {"query": QUESTION}, "outline": {"budget": 2000}}
    first = own_agent.reply("search", query=QUESTION)
    own.store.add(tree())
    said = own_agent.sentence("search", query=QUESTION, cursor=first["cursor"])
    assert said == (
        "The cursor is of generation 1, and the index has changed to generation 2; repeat the "
        "call without a cursor to begin again."
    )
    for tool, arguments in calls.items():
        assert own_agent.reply(tool, **arguments)["generation"] == 2
    again = own_agent.reply("search", query=QUESTION)
    assert [each["id"] for each in again["results"]] == [each["id"] for each in first["results"]]


def test_nothing_of_a_deleted_document_is_read(tmp_path) -> None:
    index, gone = built(documents(), tmp_path, summary_tokens=60), "b.txt"
    ids = columns_of(index.store, "id", "documents")
    of_it = [i for i, of in zip(ids["id"], ids["documents"], strict=True) if of == [gone]]
    with agent_of(index) as client:
        before = client.reply("read", id=gone)
        assert client.reply("read", id=of_it[0])["text"]
        index.delete(gone)
        for name in (gone, of_it[0], f"{gone}#char=0,10"):
            assert "No node and no document" in client.sentence("read", id=name)
        said = [client.said("outline", budget=5000)]
        for level in range(index.info()["levels"][-1]["level"] + 1):
            for part in client.parts("search", query=before["text"][:500], level=level):
                said += [str(part)]
        for node_id in columns_of(index.store, "id")["id"]:
            said += [client.said(tool, id=node_id) for tool in ("expand", "read")]
    for text in said:
        assert gone not in text
        assert not any(sentence in text for sentence in before["text"].split("  "))


def test_an_index_may_come_after_its_server(tmp_path) -> None:
    store = HierarchyStore(tmp_path / "later")
    with agent_of(HierarchicalIndex(store)) as client:
        said = client.sentence("outline")
        assert "holds no index; build one with `hierindex build" in said
        store.add(tree())
        assert client.reply("outline")["generation"] == 1
