"""The `chat` command."""

import io
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import typer

from hierindex.cli import options
from hierindex.cli.asking import ASKING, options_of
from hierindex.cli.output import print_note, print_piece, print_result
from hierindex.errors import HierindexError

if TYPE_CHECKING:
    from hierindex.settings import Settings


@options.with_settings(f"{ASKING} response_mode")
def chat(
    index: options.Index,
    *,
    where: options.Where = None,
    settings: "Settings",
    verbose: options.Verbose = False,
) -> None:
    """Answer questions in the terminal, or one per line of standard input.

    With --llm, a question may refer to earlier ones. Ctrl-D and Ctrl-C leave
    the chat.
    """
    from hierindex.cli.answer_text import answered, noted
    from hierindex.index import HierarchicalIndex
    from hierindex.models.load import load_reranker
    from hierindex.respond.asking import EXTRACTIVE
    from hierindex.respond.chat import Conversation

    opened = HierarchicalIndex.open(index)
    asked = options_of(opened, settings, where)
    conversation = Conversation(opened.ask, asked.pop("llm"))
    if asked["rerank"] is not None:  # loaded once for all questions
        asked["rerank"] = load_reranker(asked["rerank"])
    streams = asked["response_mode"] != EXTRACTIVE
    show, text = (print_piece, noted) if streams else (None, answered)
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
            print_result(turn.answer.to_json(), False, partial(text, verbose=verbose))
            if verbose and turn.searched != question:
                print_piece(f"\nThe question was searched for as: {turn.searched}\n")
            typer.echo()
    if prompt:
        typer.echo()
