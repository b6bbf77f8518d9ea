"""The `chat` command."""

import io
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer

from hierindex.cli import options
from hierindex.cli.asking import ASKING, options_of
from hierindex.cli.output import note_if_empty, print_note, print_piece, print_result
from hierindex.errors import HierindexError, InputError
from hierindex.settings import SEARCH, load_settings

if TYPE_CHECKING:
    from hierindex.index import HierarchicalIndex
    from hierindex.respond.chat import Turn
    from hierindex.settings import Settings

HELP = """\
/level N|WORD  search levels: numbers, top, documents, sections or chunks
/level         search as at the start
/sources       print the nodes that the last answer is based on
/why           print what was searched for the last answer, and why
/help          print this help
/quit          leave, as Ctrl-D and Ctrl-C do"""


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
        while True:
            conversation.read(input(prompt))
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

        self._index, self._where = index, where
        self._conversation = Conversation(index.ask, asked["llm"])
        asked = {name: option for name, option in asked.items() if name != "llm"}
        if asked["rerank"] is not None:  # loaded once for all questions
            asked["rerank"] = load_reranker(asked["rerank"])
        self._at_start = self._asked = asked
        self._last: tuple[Turn, dict[str, Any]] | None = None
        self._commands = {
            "/level": self._level,
            "/sources": self._sources,
            "/why": self._why,
            "/help": self._help,
            "/quit": self._quit,
        }

    def read(self, line: str) -> None:
        """Answer a question or obey a command; print an error as one sentence.

        Raises
        ------
        EOFError
            If the line ends the chat.
        """
        try:
            match line.split():
                case []:
                    pass
                case [name, *words] if name in self._commands:
                    self._commands[name](words)
                case [name, *_] if re.fullmatch(r"/\w+", name):
                    known = ", ".join(self._commands)
                    raise InputError(f"There is no command {name!r}; there are {known}.")
                case _:
                    self._answer(line)
        except HierindexError as error:
            typer.echo()  # a streamed answer may have been cut off
            print_note(str(error))

    def _answer(self, question: str) -> None:
        from hierindex.cli.answer_text import answered, noted
        from hierindex.respond.asking import EXTRACTIVE

        streams = self._asked["response_mode"] != EXTRACTIVE
        show = print_piece if streams else None
        turn = self._conversation.ask(question, show=show, **self._asked)
        self._last = turn, self._asked
        print_result(turn.answer.to_json(), False, noted if streams else answered)
        typer.echo()
        note_if_empty(turn.answer.sources, self._where)

    def _level(self, words: list[str]) -> None:
        asked = self._at_start
        if words:
            asked = {**asked, "level": load_settings("/{}".format, level=words).level, "mode": None}
            given = {name: asked[name] for name in (*SEARCH.split(), "rerank", "filters")}
            self._index.as_query_engine(**given)  # checks that the tree has the level
        self._asked = asked
        print_piece(f"Searching {_way(asked)}.\n\n")

    def _sources(self, words: list[str]) -> None:
        from hierindex.cli.answer_text import nodes_found

        turn, _ = self._last_turn()
        if not turn.answer.sources:
            raise InputError("Nothing was found for the last question, so it has no sources.")
        print_result(turn.answer.to_json(), False, nodes_found)
        typer.echo()

    def _why(self, words: list[str]) -> None:
        turn, asked = self._last_turn()
        if turn.searched != turn.question:
            print_piece(f"The question was searched for as: {turn.searched}\n")
        print_piece(f"Searched {turn.answer.why or _way(asked)}.\n\n")

    def _help(self, words: list[str]) -> None:
        typer.echo(f"{HELP}\n")

    def _quit(self, words: list[str]) -> None:
        raise EOFError

    def _last_turn(self) -> "tuple[Turn, dict[str, Any]]":
        if self._last is None:
            raise InputError("There is no answer yet; ask a question first.")
        return self._last


def _way(asked: dict[str, Any]) -> str:
    """Describe in words what the options of `ask` search."""
    if asked["level"] is None:
        return f"in mode {asked['mode'] or 'auto'}"
    levels = asked["level"] if isinstance(asked["level"], list) else [asked["level"]]
    return f"level {', '.join(map(str, levels))}"
