"""LlamaIndex query engines over a retriever, with or without a language model."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict
from functools import partial
from inspect import signature
from itertools import chain
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import (
    BaseSynthesizer,
    ResponseMode,
    TreeSummarize,
    get_response_synthesizer,
)
from llama_index.core.response_synthesizers.context_only import ContextOnly
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.settings import Settings

from hierindex.errors import InputError
from hierindex.models.adapters import LLMLike, as_llm, read_in_threads, with_retries
from hierindex.node import Found
from hierindex.respond.answer import listing_texts
from hierindex.respond.asking import (
    COMPACT,
    COMPACT_TEMPLATES,
    DIRECT,
    EXTRACTIVE,
    EXTRACTS,
    TREE_SUMMARIZE,
    WITHOUT_LLM,
    choose_mode,
)
from hierindex.respond.citation_check import TEMPLATES, CitationCheck, PassageHelper, Passages
from hierindex.respond.extractive import from_others_text, no_answer
from hierindex.respond.synthesizers import (
    BoundedTreeSummarize,
    ExtractiveSynthesizer,
)
from hierindex.retrieve.levels import Level, cut_of, levels_of
from hierindex.retrieve.listing import Listing
from hierindex.retrieve.retrieval import Retrieval
from hierindex.retrieve.retriever import HierarchyRetriever, RetrievedNode
from hierindex.retrieve.search import in_reading_order
from hierindex.store.table import Table
from hierindex.text_node import from_text_node
from hierindex.threads import in_daemon_thread

BEFORE = "before"  # option of `BoundedTreeSummarize`
OF_MODES = {*signature(get_response_synthesizer).parameters, *EXTRACTS, BEFORE} - {
    *("llm", "response_mode", "callback_manager")
}
"""Options of the synthesizers of all modes."""


class ReadingOrderEngine(RetrieverQueryEngine):
    """A query engine that answers from nodes in reading order; its sources stay best first.

    Laitenberger, Manning and Liu (EMNLP 2025) measured better answers from chunks in the order of
    their document than from chunks by rank. If there are postprocessors, nodes are read in the
    order of their results. An answer to a question that counts or lists ends with the text of a
    `Listing`, or begins with it if documents are counted or listed; its fields are in `listing` in
    the metadata.

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
        """Return the answer to a question from nodes, given best first.

        If the documents that a question names do not answer it, other documents may. A refusal
        names the searched part of the index.
        """
        read, passages = self._in_reading_order(nodes), None
        if self._citations and nodes:
            passages = Passages(read)
            read = passages.nodes
        listing = self._listing(query_bundle, nodes)  # a later write may remove the generation
        response = super().synthesize(query_bundle, read, additional_source_nodes)
        response.source_nodes = [*nodes, *(additional_source_nodes or ())]
        if self._citations and passages:
            self._citations.add_to(response, passages, query_bundle.query_str)
        if isinstance(response, Response) and _is_refused(response):
            response.response = no_answer(self.retrieval)
            response = self._of_others(query_bundle) or response
        return response if listing is None else _with_listing(response, query_bundle, listing)

    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Do what `synthesize` does, without blocking the event loop."""
        answer = partial(self.synthesize, query_bundle, nodes, additional_source_nodes)
        response = await in_daemon_thread(answer)
        if not isinstance(response, StreamingResponse):
            return response
        pieces = read_in_threads(response.response_gen)
        return AsyncStreamingResponse(pieces, response.source_nodes, response.metadata)

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

    def _in_reading_order(self, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        if self._node_postprocessors or getattr(self.retriever, "postprocessors", None):
            return nodes
        found = [Found(from_text_node(each.node), each.score or 0.0) for each in nodes]
        return [nodes[i] for i in in_reading_order(found)]

    def _of_others(self, query: QueryBundle) -> Response | None:
        """Answer from other documents than the question names, if possible, and say so."""
        if not isinstance(self.retriever, HierarchyRetriever):
            return None
        nodes = self.with_retriever(self.retriever.others()).retrieve(query)
        response = super().synthesize(query, self._in_reading_order(nodes))
        if not isinstance(response, Response) or _is_refused(response):
            return None
        said = from_others_text(getattr(nodes[0], "why", None))
        response.response, response.source_nodes = f"{said}{response.response}", nodes
        return response

    def _listing(self, query: QueryBundle, nodes: list[NodeWithScore]) -> Listing | None:
        if self.retrieval is None:
            return None
        snapshots = (node.snapshot for node in nodes if isinstance(node, RetrievedNode))
        return self.retrieval.listing(query.query_str, next(snapshots, None))

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return self.synthesize(query_bundle, self.retrieve(query_bundle))

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return await self.asynthesize(query_bundle, await self.aretrieve(query_bundle))


def _is_refused(response: RESPONSE_TYPE) -> bool:
    return bool((response.metadata or {}).get("refused"))


def _with_listing(response: RESPONSE_TYPE, query: QueryBundle, listing: Listing) -> RESPONSE_TYPE:
    """Add a listing to the metadata of a response, and its text before or after the response's."""
    before, after = listing_texts(query.query_str, listing, _is_refused(response))
    response.metadata = {**(response.metadata or {}), "listing": asdict(listing)}
    if isinstance(response, Response):
        response.response = f"{before}{response.response or ''}{after}"
    elif isinstance(response, StreamingResponse):
        response.response_gen = (x for x in chain([before], response.response_gen, [after]) if x)
    return response


def query_engine(
    retriever: BaseRetriever,
    embed_model: BaseEmbedding,
    *,
    llm: LLMLike | None = None,
    response_mode: str | None = None,
    **synthesizer: Any,
) -> ReadingOrderEngine:
    """Return a query engine; "tree_summarize" uses `BoundedTreeSummarize`.

    Answers are written from the nodes in reading order, see `ReadingOrderEngine`. Answers of a
    language model cite them, see `CitationCheck`, except in mode "generation" and in structured
    answers. The default templates ask for citations. Other templates are used unchanged; their
    passages are numbered, too.

    Parameters
    ----------
    retriever : BaseRetriever
    embed_model : BaseEmbedding
        For extractive answers and for the check of citations.
    llm : LLM or callable, optional
        A copy with retries is used, see `with_retries`. Without an LLM, answers are extractive;
        LlamaIndex's `Settings.llm` is ignored.
    response_mode : str, optional
        "extractive" or one of LlamaIndex's modes; "tree_summarize" by default with an LLM.
    **synthesizer
        Options of synthesizers, such as templates, streaming and output_cls. As in LlamaIndex, a
        mode ignores those of others.

    Raises
    ------
    InputError
        If the mode is unknown, needs an LLM and none is given, or an option is unknown.
    """
    llm = as_llm(llm)
    mode = choose_mode(response_mode, llm)
    for name in synthesizer.keys() - OF_MODES:
        raise InputError(
            f"No response mode has an option {name!r}; see {', '.join(sorted(OF_MODES))}."
        )
    options = {name: option for name, option in synthesizer.items() if option is not None}
    if mode == EXTRACTIVE:
        extracts = {name: options[name] for name in options.keys() & EXTRACTS}
        return ReadingOrderEngine(retriever, ExtractiveSynthesizer(embed_model, **extracts))
    if llm is None or mode in WITHOUT_LLM:  # the default model would be OpenAI's
        kind = NoText if mode == "no_text" else ContextOnly
        return ReadingOrderEngine(retriever, kind(llm=llm or MockLLM()))
    citations = None
    # Passages of "multimodal" are messages, which are not numbered.
    is_plain = not any(map(options.get, ("output_cls", "multimodal")))
    if is_plain and mode != "generation" and not isinstance(llm, StructuredLLM):
        citations = CitationCheck(embed_model)
        helper = Settings._prompt_helper or PassageHelper.from_llm_metadata(llm.metadata)
        options = {"prompt_helper": helper, **TEMPLATES, **options}
    return ReadingOrderEngine(retriever, _writer(llm, mode, options), citations=citations)


def _writer(llm: LLM, mode: str, options: dict[str, Any]) -> BaseSynthesizer:
    """Return the synthesizer of a mode with a language model, and the options that it has."""
    if mode == TREE_SUMMARIZE:
        known = {BEFORE, *signature(TreeSummarize).parameters}
        return BoundedTreeSummarize(llm, **{k: v for k, v in options.items() if k in known})
    others = {*EXTRACTS, BEFORE, *(["streaming"] if mode.endswith("accumulate") else ())}
    return get_response_synthesizer(
        with_retries(llm),
        callback_manager=llm.callback_manager,  # the default would not be the model's
        response_mode=ResponseMode(mode),
        **{name: option for name, option in options.items() if name not in others},
    )


def query_engine_of(
    table: Table,
    as_retriever: Callable[..., HierarchyRetriever],
    *,
    llm: LLMLike | None = None,
    response_mode: str | None = None,
    level: Level | Sequence[Level] | None = None,
    synthesizer: Mapping[str, Any] | None = None,
    **options: Any,
) -> ReadingOrderEngine:
    """Return a query engine; see `HierarchicalIndex.as_query_engine`.

    Options are checked before the embedding model is loaded. As in LlamaIndex, options of the
    synthesizer can be given directly, and a mode ignores those of others. A template of "compact"
    makes this the default mode.
    """
    direct = {name: options.pop(name) for name in DIRECT & options.keys()}
    if response_mode is None and any(map(direct.get, COMPACT_TEMPLATES)):
        response_mode = COMPACT
    mode = choose_mode(response_mode, llm)
    cut_of(table.snapshot(), levels_of(level))  # fails if the tree lacks one
    made = as_retriever(level=level, **options)
    answering = {**direct, **(synthesizer or {})}
    return query_engine(made, made.embed_model, llm=llm, response_mode=mode, **answering)
