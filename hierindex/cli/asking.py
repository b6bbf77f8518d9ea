"""Commands that query an index, and `evaluate`, which measures retrieval methods."""

import io
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hierindex
from hierindex.cli import options, text
from hierindex.cli.options import argument, flag, option
from hierindex.cli.output import print_note, print_piece, print_result, terminal_width
from hierindex.errors import HierindexError, InputError
from hierindex.settings import SEARCH, Settings

if TYPE_CHECKING:
    from llama_index.core.llms import LLM


ASKING = f"{SEARCH} rerank min_score llm llm_base_url llm_timeout llm_completion_tokens"
"""Settings of the commands that query an index."""
REFUSED = 3  # exit status, as 1 and 2 are those of errors

Data = Annotated[
    list[Path],
    argument("DATA", "Folders with documents.jsonl and questions.jsonl."),
]


@options.with_settings(f"{ASKING} response_mode")
def query(
    question: options.Question,
    index: options.Index,
    *,
    where: options.Where = None,
    settings: Settings,
    stream: Annotated[bool, flag("--stream", "Print an LLM's answer as it is written.")] = False,
    fail_if_refused: Annotated[
        bool,
        flag("--fail-if-refused", f"Exit with status {REFUSED} if nothing answers the question."),
    ] = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Answer a question from chunks, or from an outline if it is about the whole index.

    The source of each passage is printed above it. "page xii (14)" means the
    14th page of the file, whose printed page number is xii.

    In a language model's answer, "[2?]" marks a citation that does not
    support the sentence, "[3*]" a citation that hierindex added, and "[?]" a
    sentence that no passage supports.
    """
    if stream and as_json:
        raise InputError("--stream and --json cannot be combined; omit one of them.")
    opened = hierindex.HierarchicalIndex.open(index)
    asked = _options(opened, settings, where)
    show, form = _output(asked, verbose, stream=stream)
    answer = opened.ask(question, show=show, **asked).to_json()
    print_result(answer, as_json, form)
    if fail_if_refused and answer["refused"]:
        raise typer.Exit(REFUSED)


@options.with_settings(f"{ASKING} response_mode")
def chat(
    index: options.Index,
    *,
    where: options.Where = None,
    settings: Settings,
    verbose: options.Verbose = False,
) -> None:
    """Answer questions in the terminal, or one per line of standard input.

    With --llm, a question may refer to earlier ones. Ctrl-D and Ctrl-C leave
    the chat.
    """
    from hierindex.respond.chat import Conversation

    opened = hierindex.HierarchicalIndex.open(index)
    asked = _options(opened, settings, where)
    conversation = Conversation(opened.ask, asked.pop("llm"))
    if asked["rerank"] is not None:  # loaded once for all questions
        asked["rerank"] = hierindex.load_reranker(asked["rerank"])
    show, form = _output(asked, verbose)
    if settings.llm is None:
        print_note(
            "note: Without --llm, each question is answered on its own; follow-up questions are "
            "not understood."
        )
    prompt = "> " if sys.stdin.isatty() and sys.stdout.isatty() else ""
    if prompt:
        with suppress(ImportError):
            import readline  # noqa: F401  # with which `input` edits lines and recalls them
    elif isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            if not (question := input(prompt).strip()):
                continue
            try:
                turn = conversation.ask(question, show=show, **asked)
            except HierindexError as error:
                typer.echo()  # a streamed answer may have been cut off
                print_note(str(error))
                continue
            print_result(turn.answer.to_json(), False, form)
            if verbose and turn.searched != question:
                print_piece(f"\nThe question was searched for as: {turn.searched}\n")
            typer.echo()
    if prompt:
        typer.echo()


@options.with_settings(ASKING)
def compare(
    question: options.Question,
    index: options.Index,
    *,
    where: options.Where = None,
    settings: Settings,
    response_modes: Annotated[
        list[str] | None,
        option(
            "MODE",
            "Mode to compare; may be repeated. By default extractive, or all with --llm.",
            "--response-mode",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare the answers of several response modes, given the same retrieved nodes."""
    from hierindex.respond.asking import NEED_LLM

    opened = hierindex.HierarchicalIndex.open(index)
    asked = _common_options(opened, settings, where)
    comparison = opened.compare(question, response_modes=response_modes, **asked)
    print_result(comparison.to_json(), as_json, text.compared)
    answers = [attempt for attempt in comparison.attempts if attempt.mode in NEED_LLM]
    if answers and all(attempt.error for attempt in answers):
        raise typer.Exit(1)


@options.with_settings("embed_model precision chunk_size")
def evaluate(
    data: Data,
    *,
    ways: Annotated[
        str | None,
        option(
            "WAY,...",
            "Retrieval methods: auto, dense, text, hybrid, collapsed, level-1, level-2 ...; "
            "all by default. Also answer, which asks each question and measures the answer.",
        ),
    ] = None,
    budgets: Annotated[str, option("N,...", "Token budgets of the retrieved text.")] = "500,2000",
    against: Annotated[
        str | None,
        option(
            "WAY", "Baseline of the comparison; by default dense, or the first if that is missing."
        ),
    ] = None,
    limit: Annotated[
        int | None, option("N", "Maximum number of questions per DATA; by default all.", min=1)
    ] = None,
    index: Annotated[
        Path | None,
        option("DIR", "Folder to keep and reuse the indices; by default they are temporary."),
    ] = None,
    settings: Settings,
    as_json: options.AsJson = False,
) -> None:
    """Compare retrieval methods on questions whose answers are known.

    Each line of documents.jsonl is a JSON object with doc_id and text. Each
    line of questions.jsonl has qid, doc_id, question and the expected answer:
    start and end (character offsets), evidence (passages, word for word),
    gold_titles (ids of documents) or answer (a text, word for word). By
    default, a question with evidence searches only its own document, any
    other question all documents; the field within names another document
    to search.

    A BEIR folder is read as well. Judgements of documents that the corpus
    lacks count as not found, and a document with the id of a query does not
    count as its result.

    With --ways answer, coverage and documents measure the citations, answer
    measures the text, words is its length, and refused is the share of
    refusals. Questions without an expected answer are asked, too: they should
    be refused.
    """
    if not all(budget.strip().isdecimal() for budget in budgets.split(",")):
        raise InputError(f"--budgets takes numbers such as 500,2000, got {budgets!r}.")
    from hierindex.cli.progress import ShownProgress
    from hierindex.evaluate.measures import table
    from hierindex.models.load import DEFAULT_EMBED_MODEL

    model = settings.embed_model or DEFAULT_EMBED_MODEL
    with closing(ShownProgress(model)) as progress:
        report = hierindex.evaluate.evaluate(
            data,
            ways=None if ways is None else [way.strip() for way in ways.split(",")],
            budgets=[int(budget) for budget in budgets.split(",")],
            against=against,
            limit=limit,
            index=index,
            embed_model=hierindex.load_embed_model(model, precision=settings.precision),
            chunk_size=settings.chunk_size,
            progress=progress,
        )
    print_result(report.to_json(), as_json, partial(table, width=terminal_width()))


def answering_llm(settings: Settings) -> "LLM | None":
    """Return the language model for queries, with retries and limited concurrency, or None."""
    if settings.llm is None:  # LlamaIndex's import takes longer than an answer without
        return None
    from hierindex.cli.models import llm_of
    from hierindex.models.adapters import with_retries

    return with_retries(llm_of(settings), concurrency=settings.llm_concurrency)


def _options(
    opened: "hierindex.HierarchicalIndex", settings: Settings, where: list[str] | None
) -> dict[str, Any]:
    """Return the options of `HierarchicalIndex.ask` for these settings and filters."""
    from hierindex.respond.asking import TREE_SUMMARIZE, choose_mode

    asked = _common_options(opened, settings, where)
    asked["response_mode"] = choose_mode(settings.response_mode, asked["llm"])
    if asked["response_mode"] == TREE_SUMMARIZE:
        asked["synthesizer"]["before"] = _note_cost
    return asked


def _common_options(
    opened: "hierindex.HierarchicalIndex", settings: Settings, where: list[str] | None
) -> dict[str, Any]:
    """Return the options that `ask` and `compare` share."""
    from hierindex.store.filters import known_filters

    return {
        "llm": answering_llm(settings),
        "synthesizer": {"min_score": settings.min_score},
        "filters": known_filters(where, opened.table.snapshot()),
        **settings.chosen(f"{SEARCH} rerank"),
    }


def _output(
    asked: dict[str, Any], verbose: bool, *, stream: bool = True
) -> tuple[Callable[[str], None] | None, Callable[[dict[str, Any]], str]]:
    """Return how an answer is printed: pieces as they are written, and what follows them."""
    from hierindex.respond.asking import EXTRACTIVE

    streams = stream and asked["response_mode"] != EXTRACTIVE
    form = partial(text.answered, verbose=verbose, streamed=streams)
    return print_piece if streams else None, form


def _note_cost(most: int, first: int, tokens: int) -> None:
    """Print the cost of an answer that needs several prompts, before they are sent."""
    if most > 1:
        print_note(
            f"note: Sending at most {most:,} prompts; the first {first:,} have about "
            f"{tokens:,} tokens together."
        )
