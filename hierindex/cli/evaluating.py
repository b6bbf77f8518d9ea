"""The command that evaluates ways to retrieve."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hierindex.cli import options
from hierindex.cli.output import print_result, terminal_width
from hierindex.errors import InputError

if TYPE_CHECKING:
    from hierindex.settings import Settings

Data = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATA...",
        help="Folders of documents.jsonl and questions.jsonl, BEIR folders, or JSON files of "
        "LlamaIndex's EmbeddingQAFinetuneDataset.",
    ),
]


@options.with_settings(
    "embed_model precision chunk_size llm llm_base_url llm_concurrency llm_timeout"
)
def evaluate(
    data: Data,
    *,
    ways: Annotated[
        str | None, typer.Option(metavar="WAY,...", help="Ways to compare; all by default.")
    ] = None,
    budgets: Annotated[
        str, typer.Option(metavar="N,...", help="Tokens that a reader gets.")
    ] = "500,2000",
    part: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="all (the default), tuning or held-out (a third of the documents).",
            autocompletion=lambda: ["all", "tuning", "held-out"],
        ),
    ] = "all",
    against: Annotated[
        str | None,
        typer.Option(
            metavar="WAY", help="Way that the others are compared with; dense by default."
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Maximum number of questions per DATA; by default all."
        ),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            metavar="DIR",
            help="Folder where indices are kept, and found again; by default they are deleted.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="PNG, SVG or PDF file to draw quality against tokens in; none by default.",
        ),
    ] = None,
    settings: "Settings",
    as_json: options.AsJson = False,
) -> None:
    """Compare ways to retrieve, on questions whose gold is known.

    documents.jsonl has a JSON object with doc_id and text on each line,
    questions.jsonl one with qid, doc_id, question and gold: start and end
    (characters of the text), evidence (a list of texts), gold_titles (a list
    of doc_ids) or answer. See hierindex.evaluate.read_dataset for all fields.
    """
    if not all(budget.strip().isdecimal() for budget in budgets.split(",")):
        raise InputError(f"--budgets takes numbers such as 500,2000, got {budgets!r}.")
    from hierindex.cli.models import served_llm_of
    from hierindex.cli.progress import shown_progress
    from hierindex.embed.load import DEFAULT_EMBED_MODEL, load_embed_model
    from hierindex.evaluate import evaluate
    from hierindex.evaluate.report import check_plot, table

    tokens = [int(budget) for budget in budgets.split(",")]
    if plot is not None:
        check_plot(plot, tokens)
    model = settings.embed_model or DEFAULT_EMBED_MODEL
    with shown_progress() as progress:
        report = evaluate(
            data,
            ways=None if ways is None else [way.strip() for way in ways.split(",")],
            budgets=tokens,
            part=part,  # type: ignore[arg-type]  # checked there
            against=against,
            limit=limit,
            index=index,
            embed_model=load_embed_model(model, precision=settings.precision),
            chunk_size=settings.chunk_size,
            llm=served_llm_of(settings),
            progress=progress,
        )
    print_result(report.to_json(), as_json, partial(table, width=terminal_width()))
    if plot is not None:
        report.plot(plot)
