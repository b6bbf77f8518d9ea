"""A query engine whose synthesizer reads nodes as numbered passages in reading order."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
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
from hierindex.respond.cited import CitationCheck
from hierindex.respond.extractive import from_others_said, no_answer
from hierindex.respond.extractive_synthesizer import CITATIONS, LISTING, REFUSED
from hierindex.respond.numbered import Passages
from hierindex.retrieve.listing import Listing
from hierindex.retrieve.question import in_reading_order
from hierindex.retrieve.retrieval import Question
from hierindex.retrieve.retrieved import retrieved_of
from hierindex.retrieve.retriever import HierarchyRetriever
from hierindex.text_node import from_text_node

OFFERED = 3  # other documents than the question names


class ReadingOrderEngine(RetrieverQueryEngine):
    """A query engine that answers from nodes in reading order; its sources stay best first.

    Laitenberger, Manning and Liu (EMNLP 2025) measured better answers from chunks in the order of
    their document than from chunks by rank. Nodes that postprocessors returned are read in the
    order of the postprocessors. An answer to a question that counts or lists ends with the text of
    a `Listing`, whose fields are `listing` in the metadata.

    Parameters
    ----------
    retriever : BaseRetriever
    response_synthesizer : BaseSynthesizer
    citations : CitationCheck, optional
        If given, the synthesizer reads the nodes as numbered `Passages`, which its answers cite.
    **options
        As in `RetrieverQueryEngine`.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        response_synthesizer: BaseSynthesizer,
        *,
        citations: CitationCheck | None = None,
        **options: Any,
    ) -> None:
        super().__init__(retriever, response_synthesizer, **options)
        self._citations = citations

    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Return the answer to a question from nodes, which are best first."""
        passages, read = self._read(nodes)
        listing = self._listing(query_bundle, nodes)  # a later write may remove the generation
        response = super().synthesize(query_bundle, read, additional_source_nodes)
        if self._citations and passages:
            self._citations.add_to(response, passages, query_bundle.query_str)
        finished = self._finished(query_bundle, response, nodes, additional_source_nodes)
        return _with_listing(finished, listing)

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
        if self._citations and passages:
            await self._citations.aadd_to(response, passages, query_bundle.query_str)
        rest = nodes, additional_source_nodes
        finished = await asyncio.to_thread(self._finished, query_bundle, response, *rest)
        return _with_listing(finished, listing)

    def with_retriever(self, retriever: BaseRetriever) -> "ReadingOrderEngine":
        """Return an engine with another retriever."""
        return ReadingOrderEngine(
            retriever,
            self._response_synthesizer,
            citations=self._citations,
            node_postprocessors=self._node_postprocessors,
            callback_manager=self.callback_manager,
        )

    def _read(self, nodes: list[NodeWithScore]) -> tuple[Passages | None, list[NodeWithScore]]:
        """Return the nodes as the synthesizer reads them, and their passages if they are cited."""
        reordered = self._node_postprocessors or getattr(self.retriever, "postprocessors", None)
        found = [Found(from_text_node(each.node), each.score or 0.0) for each in nodes]
        ordered = nodes if reordered else [nodes[i] for i in in_reading_order(found)]
        if self._citations is None or not nodes:
            return None, ordered
        passages = Passages(ordered)
        return passages, [*passages.nodes]

    def _listing(self, query: QueryBundle, nodes: list[NodeWithScore]) -> Listing | None:
        if not isinstance(self.retriever, HierarchyRetriever):
            return None
        question = Question(query.query_str, query.embedding or [])
        return self.retriever.listing(retrieved_of(question, nodes))

    def _finished(
        self,
        query: QueryBundle,
        response: RESPONSE_TYPE,
        nodes: Sequence[NodeWithScore],
        additional: Sequence[NodeWithScore] | None,
    ) -> RESPONSE_TYPE:
        """Return a response with its sources best first; a refusal says what was searched."""
        response.source_nodes = [*nodes, *(additional or ())]
        if isinstance(response, Response) and (response.metadata or {}).get(REFUSED):
            found = self.retriever
            response.response = no_answer(found if isinstance(found, HierarchyRetriever) else None)
            return self._of_others(query) or response
        if not nodes or not getattr(nodes[0], "named", False):
            return response
        return _followed(response, self._offered(query, response))

    def _offered(self, query: QueryBundle, response: RESPONSE_TYPE) -> Iterator[str]:
        """Yield a line on other documents if the answer cites none that the question names."""
        if (response.metadata or {}).get(CITATIONS) == []:
            found = self._found_in_others(query)
            of = (from_text_node(each.node).documents for each in found)
            if documents := [*dict.fromkeys(chain.from_iterable(of))]:
                yield f"\n\nOther documents that may answer: {', '.join(documents[:OFFERED])}."

    def _of_others(self, query: QueryBundle) -> Response | None:
        """Answer from other documents than the question names, if it does, and say so."""
        nodes = self._found_in_others(query)
        response = super().synthesize(query, self._read(nodes)[1])
        if not isinstance(response, Response) or (response.metadata or {}).get(REFUSED, True):
            return None
        said = from_others_said(getattr(nodes[0], "why", None))
        response.response = f"{said}{response.response}"
        response.source_nodes = nodes
        return response

    def _found_in_others(self, query: QueryBundle) -> list[NodeWithScore]:
        if not isinstance(self.retriever, HierarchyRetriever):
            return []
        return self.with_retriever(self.retriever.others()).retrieve(query)

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


def _with_listing(response: RESPONSE_TYPE, listing: Listing | None) -> RESPONSE_TYPE:
    """Add a listing to the metadata of a response, and its text below the response's."""
    if listing is None:
        return response
    metadata = response.metadata or {}
    response.metadata = metadata | {LISTING: asdict(listing)}
    return _followed(response, iter([listing_said(listing, metadata.get(REFUSED, False))]))


def _followed(response: RESPONSE_TYPE, pieces: Iterator[str]) -> RESPONSE_TYPE:
    """Add pieces to the text of a response."""
    if isinstance(response, Response):
        response.response = "".join([response.response or "", *pieces])
    elif isinstance(response, StreamingResponse):
        response.response_gen = (p for ps in (response.response_gen, pieces) for p in ps)
    elif isinstance(response, AsyncStreamingResponse):
        response.response_gen = _achain(response.response_gen, pieces)
    return response


async def _achain(pieces: TokenAsyncGen, rest: Iterator[str]) -> TokenAsyncGen:
    async for piece in pieces:
        yield piece
    for piece in await asyncio.to_thread(list, rest):
        yield piece
