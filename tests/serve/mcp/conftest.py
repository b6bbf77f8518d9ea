"""Agents of servers over small trees, in this process."""

from collections.abc import Iterator

import pytest
from agent import Agent, agent
from fakes import HashingEmbedding

from hierindex import HierarchicalIndex
from hierindex.serve.mcp.server import server_of


def agent_of(index: HierarchicalIndex):
    return agent(server_of({"": HierarchicalIndex(index.store, HashingEmbedding())}))


@pytest.fixture(scope="session")
def asked(index) -> Iterator[Agent]:
    with agent_of(index) as made:
        yield made


@pytest.fixture
def own_agent(own) -> Iterator[Agent]:
    """An agent of an index that may be changed."""
    with agent_of(own) as made:
        yield made
