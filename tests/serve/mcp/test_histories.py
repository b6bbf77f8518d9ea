"""Agents whose index changes while they read."""

from serve.mcp.conftest import agent_of
from store.trees import tree

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


def test_an_index_may_come_after_its_server(tmp_path) -> None:
    store = HierarchyStore(tmp_path / "later")
    with agent_of(HierarchicalIndex(store)) as client:
        said = client.sentence("outline")
        assert "holds no index; build one with `hierindex build" in said
        store.add(tree())
        assert client.reply("outline")["generation"] == 1
