"""A query engine whose synthesizer reads the nodes as numbered passages in reading order."""

import asyncio
from collections.abc import Sequence
from copy import copy
from dataclasses import asdict
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.types import TokenAsyncGen

from hierindex.node import Found
from hierindex.respond.answer import listing_said
from hierindex.respond.citation_check import CitationCheck, Passages
from hierindex.respond.extractive import from_others_said, no_answer
from hierindex.retrieve.listing import Listing
from hierindex.retrieve.question import in_reading_order
from hierindex.retrieve.retrieval import Question, Retrieval
from hierindex.retrieve.retriever import HierarchyRetriever, retrieved_of
from hierindex.text_node import from_text_node


class ReadingOrderEngine(RetrieverQueryEngine):
    """A query engine that answers from nodes in reading order; its sources stay best first.

    Laitenberger, Manning and Liu (EMNLP 2025) measured better answers from chunks in the order of
    their document than from chunks by rank. If there are postprocessors, nodes are read in the
    order of their results. An answer to a question that counts or lists ends with the text of a
    `Listing`; its fields are in `listing` in the metadata.

    Parameters
    ----------
    retriever : BaseRetriever
    response_synthesizer : BaseSynthesizer
    citations : CitationCheck, optional
        If given, the synthesizer reads the nodes as numbered `Passages`, which its answers cite.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        response_synthesizer: BaseSynthesizer,
        *,
        citations: CitationCheck | None = None,
    ) -> None:
        super().__init__(retriever, response_synthesizer)
        self._citations = citations

    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Return the answer to a question from nodes, given best first."""
        passages, read = self._read(nodes)
        listing = self._listing(query_bundle, nodes)  # a later write may remove the generation
        response = super().synthesize(query_bundle, read, additional_source_nodes)
        response.source_nodes = [*nodes, *(additional_source_nodes or ())]
        return self._finished(query_bundle, response, passages, listing)

    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Do what `synthesize` does, without blocking the event loop."""
        passages, read = self._read(nodes)
        listing = await asyncio.to_thread(self._listing, query_bundle, nodes)
        response = await super().asynthesize(query_bundle, read, additional_source_nodes)
        response.source_nodes = [*nodes, *(additional_source_nodes or ())]
        return await asyncio.to_thread(self._finished, query_bundle, response, passages, listing)

    def with_retriever(self, retriever: BaseRetriever) -> "ReadingOrderEngine":
        """Return a copy of the engine with another retriever."""
        engine = copy(self)
        engine._retriever = retriever
        return engine

    @property
    def retrieval(self) -> Retrieval | None:
        """The `HierarchyRetriever` of the engine; None if the engine has another retriever."""
        retriever = self.retriever
        return retriever if isinstance(retriever, HierarchyRetriever) else None

    def _read(self, nodes: list[NodeWithScore]) -> tuple[Passages | None, list[NodeWithScore]]:
        """Return the nodes as the synthesizer reads them, and their passages if they are cited."""
        reordered = self._node_postprocessors or getattr(self.retriever, "postprocessors", None)
        found = [Found(from_text_node(each.node), each.score or 0.0) for each in nodes]
        ordered = nodes if reordered else [nodes[i] for i in in_reading_order(found)]
        if self._citations is None or not nodes:
            return None, ordered
        passages = Passages(ordered)
        return passages, passages.nodes

    def _listing(self, query: QueryBundle, nodes: list[NodeWithScore]) -> Listing | None:
        if self.retrieval is None:
            return None
        question = Question(query.query_str, query.embedding or [])
        return self.retrieval.listing(retrieved_of(question, nodes))

    def _finished(
        self,
        query: QueryBundle,
        response: RESPONSE_TYPE,
        passages: Passages | None,
        listing: Listing | None,
    ) -> RESPONSE_TYPE:
        """Return a response with citations and a listing; a refusal names the searched part."""
        if self._citations and passages:
            self._citations.add_to(response, passages, query.query_str)
        if isinstance(response, Response) and _is_refused(response):
            response.response = no_answer(self.retrieval)
            response = self._of_others(query) or response
        return response if listing is None else _with_listing(response, listing)

    def _of_others(self, query: QueryBundle) -> Response | None:
        """Answer from other documents than the question names, if possible, and say so."""
        if not isinstance(self.retriever, HierarchyRetriever):
            return None
        nodes = self.with_retriever(self.retriever.others()).retrieve(query)
        response = super().synthesize(query, self._read(nodes)[1])
        if not isinstance(response, Response) or _is_refused(response):
            return None
        said = from_others_said(getattr(nodes[0], "why", None))
        response.response = f"{said}{response.response}"
        response.source_nodes = nodes
        return response

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        asked: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=asked) as event:
            response = self.synthesize(query_bundle, self.retrieve(query_bundle))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        asked: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=asked) as event:
            response = await self.asynthesize(query_bundle, await self.aretrieve(query_bundle))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response


def _is_refused(response: RESPONSE_TYPE) -> bool:
    return bool((response.metadata or {}).get("refused"))


def _with_listing(response: RESPONSE_TYPE, listing: Listing) -> RESPONSE_TYPE:
    """Add a listing to the metadata of a response, and its text below the response's."""
    text = listing_said(listing, _is_refused(response))
    response.metadata = {**(response.metadata or {}), "listing": asdict(listing)}
    if isinstance(response, Response):
        response.response = f"{response.response or ''}{text}"
    elif isinstance(response, StreamingResponse):
        pieces = response.response_gen
        response.response_gen = (piece for part in (pieces, [text]) for piece in part)
    elif isinstance(response, AsyncStreamingResponse):
        response.response_gen = _followed(response.response_gen, text)
    return response


async def _followed(pieces: TokenAsyncGen, last: str) -> TokenAsyncGen:
    async for piece in pieces:
        yield piece
    yield last
