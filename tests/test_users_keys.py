"""Metadata of users by the names that hierindex has for its own columns, at every door."""

from functools import partial
from itertools import cycle

import httpx
import pytest
from agent import agent
from indexes import where
from llama_index.core import Document

from hierindex import HierarchicalIndex
from hierindex.export import to_langchain_retriever
from hierindex.serve import serve
from hierindex.serve.mcp.server import server_of

KEYS = "documents id kind level level_max whole_document".split()
QUESTION = "Why was the bridge closed?"
LOCKED, OPEN = "the keeper lost its key", "its deck was rotten"


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> HierarchicalIndex:
    documents = [
        Document(
            text=f"The bridge was closed because {why}.",
            id_=f"{value}.txt",
            metadata=dict.fromkeys(KEYS, value),
        )
        for value, why in (("public", OPEN), ("confidential", LOCKED))
    ]
    return HierarchicalIndex.build(documents, tmp_path_factory.mktemp("keys") / "index")


@pytest.fixture(scope="module")
def doors(index):
    """What each door finds of a condition, as text."""
    with (
        serve(index, port=0) as server,
        agent(server_of({"": HierarchicalIndex(index.store, index.embed_model)})) as agents,
    ):

        def http(path: str, condition: str) -> str:
            asked = {"question": QUESTION, "where": [condition]}
            return httpx.post(f"{server.url}{path}", json=asked).text

        def in_python(ask, condition: str) -> str:
            key, value = condition.replace("!=", "=").split("=")
            return str(ask(where("!=" if "!" in condition else "==", **{key: value})))

        langchain = to_langchain_retriever(index)
        yield [
            partial(http, "retrieve"),
            partial(http, "query"),
            partial(http, "outline"),
            lambda condition: agents.said("search", query=QUESTION, where=[condition]),
            lambda condition: agents.said("outline", where=[condition]),
            partial(in_python, lambda f: index.as_retriever(filters=f).retrieve(QUESTION)),
            partial(in_python, lambda f: index.outline(filters=f)),
            partial(in_python, lambda f: langchain.invoke(QUESTION, filter=f)),
        ]


def test_a_condition_is_on_the_users_key(doors) -> None:
    """Each key at some of the doors, and each sign at all of them."""
    keys = cycle(KEYS)
    for door in doors:
        for sign in ("=public", "!=confidential"):
            found = door(condition := f"{next(keys)}{sign}")
            assert OPEN in found, (door, condition)
            assert LOCKED not in found, (door, condition)
    for door in doors[:5]:
        found = door("hierindex_documents=public.txt")
        assert OPEN in found
        assert LOCKED not in found


def test_of_commands(index, run) -> None:
    for condition in ("kind=public", "level!=confidential", "hierindex_documents=public.txt"):
        for command in (("query", QUESTION), ("outline",)):
            flags = ("--index", index.store.uri, "--json", "--where", condition)
            status, found, _ = run(*command, *flags)
            assert status == 0
            assert OPEN in found
            assert LOCKED not in found
