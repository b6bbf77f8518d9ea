"""LangChain's standard tests over the retriever that an index gives it."""

from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from hierindex.export import to_langchain_retriever

pytestmark = pytest.mark.anyio  # one of the tests is async


class TestRetriever(RetrieversIntegrationTests):
    """The retriever that `to_langchain_retriever` makes, of each method."""

    @pytest.fixture(autouse=True)
    def made(self, index) -> None:
        self.ours = to_langchain_retriever(index)

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return type(self.ours)

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"retriever": self.ours.retriever}

    @property
    def retriever_query_example(self) -> str:
        return "Which harbour met a lantern?"

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"
