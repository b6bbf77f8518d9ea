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
        metavar="DATA",
        help="Folders with documents.jsonl and questions.jsonl.",
    ),
]


@options.with_settings("embed_model precision chunk_size")
def evaluate(
    data: Data,
    *,
    ways: Annotated[
        str | None,
        typer.Option(
            metavar="WAY,...",
            help="auto, dense, text, hybrid, collapsed, level-1 and so on; all by default.",
        ),
    ] = None,
    budgets: Annotated[
        str, typer.Option(metavar="N,...", help="Tokens that a reader gets.")
    ] = "500,2000",
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
    settings: "Settings",
    as_json: options.AsJson = False,
) -> None:
    """Compare ways to retrieve, on questions whose gold is known.

    documents.jsonl has a JSON object with doc_id and text on each line,
    questions.jsonl one with qid, doc_id, question and gold: start and end
    (characters of the text), evidence (passages of the text, word for word),
    gold_titles (ids of whole documents) or answer (found word for word). A
    question with evidence is asked of its own document, others of all, or of
    the one that within names.
    """
    if not all(budget.strip().isdecimal() for budget in budgets.split(",")):
        raise InputError(f"--budgets takes numbers such as 500,2000, got {budgets!r}.")
    from hierindex.cli.progress import shown_progress
    from hierindex.evaluate import evaluate
    from hierindex.evaluate.report import table
    from hierindex.models.load import DEFAULT_EMBED_MODEL, load_embed_model

    model = settings.embed_model or DEFAULT_EMBED_MODEL
    with shown_progress() as progress:
        report = evaluate(
            data,
            ways=None if ways is None else [way.strip() for way in ways.split(",")],
            budgets=[int(budget) for budget in budgets.split(",")],
            against=against,
            limit=limit,
            index=index,
            embed_model=load_embed_model(model, precision=settings.precision),
            chunk_size=settings.chunk_size,
            progress=progress,
        )
    print_result(report.to_json(), as_json, partial(table, width=terminal_width()))
