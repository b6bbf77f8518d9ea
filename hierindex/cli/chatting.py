"""The `chat` command."""

import io
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer

from hierindex.cli import options
from hierindex.cli.asking import ASKING, options_of
from hierindex.cli.output import note_if_empty, print_note, print_piece, print_result
from hierindex.errors import HierindexError, InputError

if TYPE_CHECKING:
    from hierindex.index import HierarchicalIndex
    from hierindex.respond.chat import Turn
    from hierindex.settings import Settings

HELP = """\
/sources       print what was searched for the last answer, and the nodes that were found
/help          print this help
/quit          leave, as Ctrl-D and Ctrl-C do
"""


@options.with_settings(f"{ASKING} response_mode")
def chat(index: options.Index, *, where: options.Where = None, settings: "Settings") -> None:
    """Answer questions in the terminal, or one per line of standard input.

    With --llm, a question may refer to earlier ones. /help lists the commands
    of the chat.
    """
    from hierindex.index import HierarchicalIndex

    opened = HierarchicalIndex.open(index)
    conversation = Chat(opened, options_of(opened, settings, where), where)
    if settings.llm is None:
        print_note(
            "note: Without --llm, each question is answered on its own; follow-up questions are "
            "not understood."
        )
    prompt = "> " if sys.stdin.isatty() and sys.stdout.isatty() else ""
    if prompt:
        with suppress(ImportError):
            import readline  # noqa: F401  # with which `input` edits lines and recalls them
        typer.echo("Type a question, or /help for the commands.")
    elif isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    with suppress(EOFError, KeyboardInterrupt):
        while (line := input(prompt).strip()) != "/quit":
            conversation.read(line)
    if prompt:
        typer.echo()


class Chat:
    """A conversation in a terminal.

    Parameters
    ----------
    index : HierarchicalIndex
    asked : dict
        Options of its `ask`.
    where : list of str, optional
        The `--where` conditions, as text.
    """

    def __init__(
        self, index: "HierarchicalIndex", asked: dict[str, Any], where: list[str] | None
    ) -> None:
        from hierindex.models.load import load_reranker
        from hierindex.respond.chat import Conversation

        self._where = where
        self._conversation = Conversation(index.ask, asked["llm"])
        self._asked = {name: option for name, option in asked.items() if name != "llm"}
        if asked["rerank"] is not None:  # loaded once for all questions
            self._asked["rerank"] = load_reranker(asked["rerank"])
        self._last: Turn | None = None

    def read(self, line: str) -> None:
        """Answer a question or obey a command; print an error as one sentence."""
        try:
            if line == "/sources":
                self._sources()
            elif line.startswith("/"):
                typer.echo(HELP)
            elif line:
                self._answer(line)
        except HierindexError as error:
            typer.echo()  # a streamed answer may have been cut off
            print_note(str(error))

    def _answer(self, question: str) -> None:
        from hierindex.cli.answer_text import answered, noted
        from hierindex.respond.asking import EXTRACTIVE

        streams = self._asked["response_mode"] != EXTRACTIVE
        show = print_piece if streams else None
        self._last = self._conversation.ask(question, show=show, **self._asked)
        answer = self._last.answer
        print_result(answer.to_json(), False, noted if streams else answered)
        typer.echo()
        note_if_empty(answer.sources, self._where)

    def _sources(self) -> None:
        from hierindex.cli.answer_text import details

        if self._last is None:
            raise InputError("There is no answer yet; ask a question first.")
        if self._last.searched != self._last.question:
            print_piece(f"The question was searched for as: {self._last.searched}\n\n")
        answer = self._last.answer.to_json()
        print_result(answer, False, lambda told: "\n\n".join(details(told)))
        typer.echo()
