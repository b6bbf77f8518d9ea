"""Answering a question in a response mode, by quotes or by LlamaIndex."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hierindex.errors import InputError
from hierindex.models.embedder import EmbedModel
from hierindex.models.record import Calls
from hierindex.respond.answer import Answer
from hierindex.respond.extractive import Extractive
from hierindex.retrieve.levels import cut_of, levels_of
from hierindex.retrieve.listing import asked_of
from hierindex.retrieve.retrieval import Retrieval, retriever_options
from hierindex.store.generations import on_newest
from hierindex.store.table import Table

if TYPE_CHECKING:
    from hierindex.models.adapters import LLMLike
    from hierindex.respond.engine import ReadingOrderEngine


EXTRACTIVE, TREE_SUMMARIZE, COMPACT = "extractive", "tree_summarize", "compact"
WITHOUT_LLM = frozenset({"no_text", "context_only"})
MODES = (  # of LlamaIndex, but for the first
    *(EXTRACTIVE, "refine", COMPACT, "simple_summarize", TREE_SUMMARIZE, "generation"),
    *("no_text", "context_only", "accumulate", "compact_accumulate"),
)
NEED_LLM = frozenset(MODES) - WITHOUT_LLM - {EXTRACTIVE}

COMPACT_TEMPLATES = {"text_qa_template", "refine_template"}  # of LlamaIndex's default mode
DIRECT = {  # options of synthesizers that LlamaIndex's `as_query_engine` takes
    *(*COMPACT_TEMPLATES, "summary_template", "simple_template"),
    *("use_async", "verbose", "streaming", "output_cls"),
}
EXTRACTS = {"answer_tokens", "min_score"}  # options of extractive answers
POSTPROCESSORS = {"postprocessors", "node_postprocessors"}


def choose_mode(response_mode: str | None, llm: "LLMLike | None") -> str:
    """Return the response mode; the default depends on whether there is an LLM.

    Raises
    ------
    InputError
        If the mode is unknown, or needs an LLM and none is given.
    """
    if response_mode is None:
        return EXTRACTIVE if llm is None else TREE_SUMMARIZE
    mode = str(getattr(response_mode, "value", response_mode))
    if mode not in MODES:
        raise InputError(f"response_mode must be one of {', '.join(MODES)}, got {mode!r}.")
    if llm is None and mode in NEED_LLM:
        raise InputError(
            f"response_mode {mode!r} needs an LLM; pass llm= (on the command line --llm and "
            "--llm-base-url), or use 'extractive'."
        )
    return mode


def ask(
    table: Table,
    load: Callable[[], EmbedModel],
    as_query_engine: Callable[..., "ReadingOrderEngine"],
    question: str,
    llm: "LLMLike | None",
    response_mode: str | None,
    show: Callable[[str], object] | None,
    options: dict[str, Any],
) -> Answer:
    """Answer a question; see `HierarchicalIndex.ask`.

    Quoted answers are made without LlamaIndex, whose import takes longer than the answer, unless
    its postprocessors are given. So are lists that answer alone, for which an LLM is not asked.
    `load` returns the embedding model.
    """
    mode = choose_mode(response_mode, llm)
    given = options.pop("synthesizer", None) or {}
    quotes = mode == EXTRACTIVE and given.keys() <= EXTRACTS | DIRECT
    quotes |= mode in NEED_LLM and asked_of(question).is_list
    if quotes and not any(map(options.get, POSTPROCESSORS)):
        retrieving = {k: v for k, v in options.items() if k not in DIRECT | POSTPROCESSORS}
        answer = _quoted(table, load, question, given, retrieving)
        if show is not None:
            show(answer.answer)
        return answer
    from hierindex.models.adapters import as_llm, with_retries
    from hierindex.respond.compare import answered, searched
    from hierindex.retrieve.retriever import HierarchyRetriever

    calls, model = Calls(), as_llm(llm) if mode in NEED_LLM else None
    engine_llm = with_retries(model, calls) if model else llm
    if show is not None:
        given = {"streaming": True, **given}

    def answer_newest() -> Answer:
        engine = as_query_engine(
            llm=engine_llm, response_mode=response_mode, synthesizer=given, **options
        )
        assert isinstance(engine.retriever, HierarchyRetriever)
        return answered(searched(question, engine.retriever), engine, model, calls, show)

    return answer_newest() if show else on_newest(answer_newest)()


@on_newest
def _quoted(
    table: Table,
    load: Callable[[], EmbedModel],
    question: str,
    extracts: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Answer:
    cut_of(table.snapshot(), levels_of(options.get("level")))  # fails if the tree lacks one
    retrieving = retriever_options(options)
    model, known = load(), {name: extracts[name] for name in extracts.keys() & EXTRACTS}
    return Extractive(model, **known).answer(Retrieval(table, model, **retrieving), question)
