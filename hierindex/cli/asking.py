"""Commands that query an index."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hierindex.cli import options
from hierindex.cli.output import print_note, print_piece, print_result
from hierindex.errors import InputError
from hierindex.settings import SEARCH

if TYPE_CHECKING:
    from hierindex.index import HierarchicalIndex
    from hierindex.settings import Settings

ASKING = f"{SEARCH} rerank min_score llm llm_base_url llm_timeout llm_completion_tokens"
"""Settings of the commands that query an index."""
REFUSED = 3  # exit status, as 1 and 2 are those of errors


@options.with_settings(f"{ASKING} response_mode")
def query(
    question: options.Question,
    index: options.Index,
    *,
    where: options.Where = None,
    settings: "Settings",
    stream: Annotated[
        bool, typer.Option("--stream", help="Print an LLM's answer as it is written.")
    ] = False,
    fail_if_refused: Annotated[
        bool,
        typer.Option(
            "--fail-if-refused", help=f"Exit with status {REFUSED} if nothing answers the question."
        ),
    ] = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Answer a question from chunks, or from an outline if it is about the whole index.

    The source of each passage is printed above it. "page xii (14)" means the
    14th page of the file, whose printed page number is xii.

    In the answer of a language model, "[2?]" marks a citation that does not
    support the sentence, "[3*]" a citation that hierindex added, and "[?]" a
    sentence that no passage supports.
    """
    from hierindex.cli.answer_text import answered, noted
    from hierindex.index import HierarchicalIndex
    from hierindex.respond.asking import EXTRACTIVE

    if stream and as_json:
        raise InputError("--stream and --json cannot be combined; omit one of them.")
    opened = HierarchicalIndex.open(index)
    asked = options_of(opened, settings, where)
    streams = stream and asked["response_mode"] != EXTRACTIVE
    answer = opened.ask(question, show=print_piece if streams else None, **asked).to_json()
    print_result(answer, as_json, partial(noted if streams else answered, verbose=verbose))
    if fail_if_refused and answer["refused"]:
        raise typer.Exit(REFUSED)


@options.with_settings(ASKING)
def compare(
    question: options.Question,
    index: options.Index,
    *,
    where: options.Where = None,
    settings: "Settings",
    response_modes: Annotated[
        list[str] | None,
        typer.Option(
            "--response-mode",
            metavar="MODE",
            help="Mode to compare; may be repeated. By default extractive, with --llm all modes.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare the answers of several response modes, given the same retrieved nodes."""
    from hierindex.cli.answer_text import compared
    from hierindex.cli.models import served_llm_of
    from hierindex.index import HierarchicalIndex
    from hierindex.respond.asking import NEED_LLM
    from hierindex.store.filtering import known_filters

    opened = HierarchicalIndex.open(index)
    comparison = opened.compare(
        question,
        llm=served_llm_of(settings),
        response_modes=response_modes,
        synthesizer={"min_score": settings.min_score},
        filters=known_filters(where, opened.table.snapshot()),
        **settings.chosen(f"{SEARCH} rerank"),
    )
    print_result(comparison.to_json(), as_json, compared)
    answers = [attempt for attempt in comparison.attempts if attempt.mode in NEED_LLM]
    if answers and all(attempt.error for attempt in answers):
        raise typer.Exit(1)


def options_of(
    opened: "HierarchicalIndex", settings: "Settings", where: list[str] | None
) -> dict[str, Any]:
    """Return the options of `HierarchicalIndex.ask` for these settings and filters."""
    from hierindex.respond.asking import TREE_SUMMARIZE, choose_mode
    from hierindex.store.filtering import known_filters

    llm = None
    if settings.llm is not None:  # LlamaIndex's import takes longer than an answer without
        from hierindex.cli.models import served_llm_of

        llm = served_llm_of(settings)
    mode = choose_mode(settings.response_mode, llm)
    synthesizer: dict[str, Any] = {"min_score": settings.min_score}
    if mode == TREE_SUMMARIZE:
        synthesizer["before"] = _note_cost
    return {
        "llm": llm,
        "response_mode": mode,
        "synthesizer": synthesizer,
        "filters": known_filters(where, opened.table.snapshot()),
        **settings.chosen(f"{SEARCH} rerank"),
    }


def _note_cost(most: int, first: int, tokens: int) -> None:
    """Print the cost of an answer that needs several prompts, before they are sent."""
    if most > 1:
        print_note(
            f"note: Sending at most {most:,} prompts; the first {first:,} have about "
            f"{tokens:,} tokens together."
        )
