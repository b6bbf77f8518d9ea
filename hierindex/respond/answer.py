"""An answer with its sources, what it cost and how long it took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.llms import LLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from hierindex.errors import HierindexError, ModelError
from hierindex.llm import refusal, service_errors
from hierindex.record import NodeRecord
from hierindex.respond.extractive import CITATIONS
from hierindex.retrieve.found import Found
from hierindex.summarize.summary import Usage


@dataclass(frozen=True)
class Source:
    """A node that the answer stands on.

    `citations` are its places in documents, `path` the ids from its parent up to its root.
    """

    id: str
    level: int
    score: float
    text: str
    citations: list[dict[str, Any]]
    path: list[str]


@dataclass(frozen=True)
class Answer:
    """An answer; `citations` are those of its sentences, in order, where it is extractive.

    `why` tells of the levels that were asked, where they were chosen for the question.
    """

    answer: str
    answer_kind: Literal["extractive", "llm"]
    citations: list[dict[str, Any] | None]
    sources: list[Source]
    usage: Usage
    seconds: dict[str, float]
    why: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The same as plain dictionaries, lists and numbers; `why` only where it is told."""
        return {k: v for k, v in asdict(self).items() if k != "why" or v is not None}


def answer(
    question: str,
    engine: RetrieverQueryEngine,
    embed_model: BaseEmbedding,
    llm: LLM | None = None,
) -> Answer:
    """Ask an engine, step by step: embed the question, search, respond.

    `llm` is the one that the engine asks, None if it asks none.

    Raises
    ------
    ModelError
        If the language model cannot be reached or refuses.
    HierindexError
        If it fails otherwise.
    """
    started = time.perf_counter()
    query = QueryBundle(question, embedding=embed_model.get_query_embedding(question))
    embedded = time.perf_counter()
    nodes = engine.retrieve(query)
    found = time.perf_counter()
    with _counted(llm) as counter:
        response = engine.synthesize(query, nodes)
        text = str(response)  # reads a stream to its end
    responded = time.perf_counter()
    metadata = response.metadata or {}
    return Answer(
        answer=text,
        answer_kind="extractive" if llm is None else "llm",
        citations=metadata.get(CITATIONS, []),
        sources=[_source(node) for node in response.source_nodes],
        usage=Usage(
            llm_calls=len(counter.llm_token_counts),
            prompt_tokens=counter.prompt_llm_token_count,
            completion_tokens=counter.completion_llm_token_count,
        ),
        seconds={
            "embed": round(embedded - started, 3),
            "search": round(found - embedded, 3),
            "respond": round(responded - found, 3),
        },
        why=next((node.why for node in nodes if isinstance(node, Found)), None),
    )


@contextmanager
def _counted(llm: LLM | None) -> Iterator[TokenCountingHandler]:
    """What a model is asked meanwhile, counted by LlamaIndex's own handler; its errors as ours."""
    counter = TokenCountingHandler()
    if llm is None:
        yield counter
        return
    before = llm.callback_manager
    llm.callback_manager = CallbackManager([*before.handlers, counter])
    try:
        yield counter
    except service_errors() as error:
        name, reason = llm.metadata.model_name, refusal(error)
        if reason is None:
            raise HierindexError(f"LLM {name!r} failed to answer: {error}.") from error
        raise ModelError(f"LLM {name!r} cannot be used: {reason}.") from error
    finally:
        llm.callback_manager = before


def _source(found: NodeWithScore) -> Source:
    record = NodeRecord.from_metadata(found.node.metadata)
    return Source(
        id=found.node.node_id,
        level=record.level,
        score=round(found.get_score(), 6),
        text=found.node.get_content(MetadataMode.NONE),
        citations=[span.to_json() for span in record.citations],
        path=found.path if isinstance(found, Found) else [],
    )
