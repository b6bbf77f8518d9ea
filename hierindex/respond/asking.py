"""Answering a question in a response mode, by quotes or by LlamaIndex."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hierindex.errors import InputError
from hierindex.models.model import EmbedModel
from hierindex.models.record import Calls
from hierindex.respond.answer import Answer
from hierindex.respond.extractive import Extractive
from hierindex.retrieve.levels import Level, cut_of, levels_of
from hierindex.retrieve.retrieval import Retrieval, retriever_options
from hierindex.store.generations import on_newest
from hierindex.store.table import Table

if TYPE_CHECKING:
    from hierindex.models.functions import LLMLike
    from hierindex.respond.query_engine import ReadingOrderEngine
    from hierindex.retrieve.retriever import HierarchyRetriever


EXTRACTIVE, TREE_SUMMARIZE, COMPACT = "extractive", "tree_summarize", "compact"
WITHOUT_LLM = frozenset({"no_text", "context_only"})
MODES = (  # of LlamaIndex, but for the first
    *(EXTRACTIVE, "refine", COMPACT, "simple_summarize", TREE_SUMMARIZE, "generation"),
    *("no_text", "context_only", "accumulate", "compact_accumulate"),
)
NEED_LLM = frozenset(MODES) - WITHOUT_LLM - {EXTRACTIVE}

ANSWERING = {"text_qa_template", "refine_template"}  # templates of "compact", LlamaIndex's default
IGNORED = {*ANSWERING, "summary_template", "simple_template", "use_async", "verbose"}
"""Ignored by modes that do not have them, as in LlamaIndex."""
SYNTHESIZER = {*IGNORED, "streaming", "output_cls"}
POSTPROCESSORS = {"postprocessors", "node_postprocessors"}
EXTRACTS = {"answer_tokens", "min_score"}
"""Options of extractive answers."""
GIVEN_APART = {"llm", "response_mode", "retriever", "embed_model"}


def choose_mode(response_mode: str | None, llm: "LLMLike | None") -> str:
    """Return the response mode; the default depends on whether there is an LLM.

    Raises
    ------
    InputError
        If the mode is unknown, or needs an LLM and none is given.
    """
    if llm is not None:
        from hierindex.models.functions import as_llm

        as_llm(llm)  # checks the type
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


def query_engine_of(
    table: Table,
    as_retriever: Callable[..., "HierarchyRetriever"],
    *,
    llm: "LLMLike | None" = None,
    response_mode: str | None = None,
    level: Level | Sequence[Level] | None = None,
    synthesizer: Mapping[str, Any] | None = None,
    **options: Any,
) -> "ReadingOrderEngine":
    """Return a query engine; see `HierarchicalIndex.as_query_engine`.

    Options are checked before the embedding model is loaded. As in LlamaIndex, options of the
    synthesizer can be given directly. Templates, `use_async` and `verbose` are ignored by modes
    that do not have them. A template of "compact" makes this the default mode.
    """
    from hierindex.respond.engine import SYNTHESIZERS, options_of, query_engine

    answering = dict(synthesizer or {})
    direct = {name: options[name] for name in options if name in SYNTHESIZER and options[name]}
    for name in direct.keys() & answering:
        raise InputError(f"{name} is given directly and in synthesizer; pass it once.")
    if response_mode is None and direct.keys() & ANSWERING:
        response_mode = COMPACT
    mode = choose_mode(response_mode, llm)
    for name in sorted(answering.keys() & GIVEN_APART):
        raise InputError(f"{name} is not a synthesizer option; remove it from synthesizer.")
    ignored = IGNORED - {*options_of(SYNTHESIZERS[mode])}
    answering |= {name: option for name, option in direct.items() if name not in ignored}
    given = {name: option for name, option in options.items() if name not in SYNTHESIZER}
    cut_of(table.snapshot(), levels_of(level))  # fails if the tree lacks one
    made = as_retriever(level=level, **given)
    return query_engine(made, made.embed_model, llm=llm, response_mode=mode, **answering)


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
    one of its options is given. `load` returns the embedding model.
    """
    mode, llamas = choose_mode(response_mode, llm), SYNTHESIZER | POSTPROCESSORS
    given = options.get("synthesizer") or {}
    if mode == EXTRACTIVE and not any(map(options.get, llamas)) and given.keys() <= EXTRACTS:
        retrieving = {k: v for k, v in options.items() if k not in {*llamas, "synthesizer"}}
        answer = _quoted(table, load, question, given, retrieving)
        if show is not None:
            show(answer.answer)
        return answer
    from hierindex.models.functions import as_llm
    from hierindex.models.llm import with_retries
    from hierindex.respond.engine import answered, asked, can_stream
    from hierindex.retrieve.retriever import HierarchyRetriever

    calls, model = Calls(), as_llm(llm) if mode in NEED_LLM else None
    if show is not None and can_stream(mode):
        options = {**options, "synthesizer": {"streaming": True, **given}}

    def answer_newest() -> Answer:
        engine = as_query_engine(
            llm=with_retries(model, calls) if model else llm, response_mode=response_mode, **options
        )
        retriever = engine.retriever
        assert isinstance(retriever, HierarchyRetriever)
        found = asked(question, retriever, retriever.embed_model)
        return answered(found, engine, model, calls, show)

    return answer_newest() if show else on_newest(answer_newest)()


def options_of_ask(
    response_mode: str | None,
    min_score: float,
    llm: "LLMLike | None" = None,
    before: Callable[[int, int, int], None] | None = None,
    **retriever: Any,
) -> dict[str, Any]:
    """Return options of `ask` that the response mode supports.

    See `BoundedTreeSummarize` for `before`.
    """
    mode = choose_mode(response_mode, llm)
    synthesizer: dict[str, Any] = {"min_score": min_score}
    if mode != EXTRACTIVE:
        from hierindex.respond.engine import taken_by

        synthesizer = taken_by(mode, {**synthesizer, "before": before})
    return {"llm": llm, "response_mode": mode, "synthesizer": synthesizer, **retriever}


@on_newest
def _quoted(
    table: Table,
    load: Callable[[], EmbedModel],
    question: str,
    extracts: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Answer:
    cut_of(table.snapshot(), levels_of(options.get("level")))  # fails if the tree lacks one
    given = retriever_options(options)
    model = load()
    return Extractive(model, **extracts).answer(Retrieval(table, model, **given), question)
