"""Arguments and options of the commands, and the flags of settings, in groups.

Types and help are repeated here so that `--help` need not import `Settings`.
"""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, NamedTuple

import typer

from hierindex.cli.output import print_note

Function = Callable[..., None]


def _place(*, exists: bool) -> Any:
    """Return the flag of an index, checked before anything that takes long is imported.

    `exists` is whether there must be an index already.
    """

    def checked(index: str) -> str:
        from hierindex.store.connection import TABLE, Connection

        connection = Connection(index, TABLE)
        if exists:
            connection.require()
        return index

    return typer.Option(
        "--index",
        metavar="DIR",
        help="Folder of the index, or its URI in an object store.",
        callback=checked,
    )


Index = Annotated[str, _place(exists=True)]
NewIndex = Annotated[str, _place(exists=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print only a JSON object.")]
Purge = Annotated[
    bool, typer.Option("--purge", help="Remove earlier generations, which hold what was changed.")
]
Timings = Annotated[
    bool,
    typer.Option("--timings", help="Print seconds by stage and level, and how nodes are grouped."),
]
Question = Annotated[str, typer.Argument(metavar="QUESTION", help="A question or a topic.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Metadata filter; also !=, <, <=, >, >=, ~ (contains). A summary matches if every "
        "chunk under it does. By default everything matches.",
    ),
]


class Flag(NamedTuple):
    """The flag of a setting; numbers are read by `Settings`, which says what was given."""

    kind: Any
    value: str  # as the help page names it
    help: str
    names: tuple[str, ...] = ()


TREE = {
    "method": Flag(
        str,
        "NAME",
        "How chunks are grouped: semantic (the default, segments of each document), raptor "
        "(clusters of all chunks) or document (all chunks of each document).",
    ),
    "chunk_size": Flag(
        str, "N", "Maximum tokens of a chunk; by default what the embedding model reads."
    ),
    "max_levels": Flag(str, "N", "Maximum levels above the chunks; no limit by default."),
    "seed": Flag(str, "N", "Random seed; by default 0."),
    "embed_model": Flag(
        str,
        "MODEL",
        "Name or folder of a sentence-transformers model; by default the bundled all-MiniLM-L6-v2.",
    ),
    "precision": Flag(
        str,
        "NAME",
        "bfloat16 (the default, on processors that have it) or float32, of the embedding model.",
    ),
}
SUMMARIES = {
    "summarizer": Flag(
        str, "MODEL", "extractive (the default), or a seq2seq model's name or folder."
    ),
    "prompt": Flag(
        str,
        "NAME|FILE",
        "Prompt of the language model: summary (the default), questions, or a prompt file.",
    ),
    "unsupported": Flag(
        str,
        "WHAT",
        "What becomes of rewritten sentences that their sources do not support: extract (the "
        "default) replaces them by a source, drop, keep (marked) or fail.",
    ),
    "strict": Flag(
        bool, "", "Fail if a summary cannot be written; by default an extract takes its place."
    ),
}
LANGUAGE_MODEL = {
    "llm": Flag(str, "MODEL", "Model of an OpenAI-compatible server; none by default."),
    "llm_base_url": Flag(
        str,
        "URL",
        "URL of the server; no default. Its key is read from HIERINDEX_LLM_API_KEY.",
    ),
    "llm_concurrency": Flag(str, "N", "Maximum number of concurrent requests; by default 4."),
    "llm_timeout": Flag(str, "SECONDS", "Timeout of a request in seconds; by default 120."),
    "llm_deadline": Flag(str, "SECONDS", "Time limit of the build in seconds; none by default."),
    "llm_completion_tokens": Flag(
        str,
        "N",
        "Maximum tokens of a summary or an answer, reasoning included; by default what a summary "
        "needs, and the server's limit for answers.",
    ),
    "max_llm_tokens": Flag(str, "N", "Token limit of the build; none by default."),
    "llm_record": Flag(str, "FILE", "File to append prompts and answers to; none by default."),
    "prompt_price": Flag(
        str, "PRICE", "Price of a million prompt tokens, for --dry-run; none by default."
    ),
    "completion_price": Flag(
        str, "PRICE", "Price of a million completion tokens, for --dry-run; none by default."
    ),
}
SEARCH = {
    "mode": Flag(
        str,
        "NAME",
        "auto (the default: the chunks, or an outline if the question is about the whole or about "
        "documents that it names), collapsed (all levels), level, traversal (from the roots down) "
        "or document (documents by their summaries, then their chunks).",
    ),
    "level": Flag(
        list[str],
        "N|WORD",
        "Level to search: a number, 0 for the chunks, or top, documents (the summary of each), "
        "sections (the highest node of each) or chunks; may be repeated. By default as the mode "
        "chooses.",
    ),
    "by": Flag(
        str,
        "NAME",
        "dense (embeddings), text (BM25), hybrid (both) or context (both, and the neighbours in "
        "reading order; the default of mode auto, the others' is dense).",
    ),
    "top_k": Flag(str, "N", "Maximum number of nodes; by default 10, of an outline 20."),
    "token_budget": Flag(str, "N", "Maximum tokens of all nodes together; by default 2000."),
    "rerank": Flag(
        str,
        "MODEL",
        "Cross-encoder that reranks chunks, by name or folder; none by default.",
    ),
    "beam": Flag(str, "N", "In mode traversal: nodes kept at each step; by default as --top-k."),
    "n_documents": Flag(str, "N", "In mode document: number of documents; by default 3."),
    "whole_documents": Flag(
        bool,
        "",
        "In mode document: whole documents; by default their best chunks.",
        names=("--whole-documents/--best-chunks",),
    ),
    "partial_summaries": Flag(
        bool,
        "",
        "With --where: also return summaries of which only some chunks match; by default all must "
        "match.",
        names=("--partial-summaries/--whole-summaries",),
    ),
}
ANSWER = {
    "response_mode": Flag(
        str,
        "MODE",
        "extractive (the default), or a mode of LlamaIndex (by default tree_summarize with --llm).",
    ),
    "min_score": Flag(
        str,
        "SCORE",
        "Minimum score of an extractive answer, 0 (never refuse) to 1; by default 0.4.",
    ),
}
GROUPS = {
    "Tree": TREE,
    "Summaries": SUMMARIES,
    "Search": SEARCH,
    "Answer": ANSWER,
    "Language model": LANGUAGE_MODEL,
}
"""The flags of all fields of `Settings`."""


def with_settings(names: str) -> Callable[[Function], Function]:
    """Give a command a flag for each named field of `Settings`.

    The flags take the place of the command's parameter `settings`, which gets the settings as
    loaded with these flags, or of its parameter `flags`, which gets those that are given.
    """
    flags = [
        _flag(title, name)
        for title, group in GROUPS.items()
        for name in group
        if name in names.split()
    ]

    def decorate(command: Function) -> Function:
        @wraps(command, assigned=("__name__", "__doc__"))
        def run(**arguments: Any) -> None:
            from hierindex.settings import flag_of, load_settings, misnamed_variables

            for sentence in misnamed_variables():
                print_note(f"note: {sentence}")
            given = {flag.name: arguments.pop(flag.name) for flag in flags}
            given = {name: value for name, value in given.items() if value is not None}
            if "flags" in of_command:
                command(**arguments, flags=given)
            else:
                command(**arguments, settings=load_settings(flag_of, **given))

        of_command = signature(command).parameters
        parameters = list[Parameter]()
        for parameter in of_command.values():
            parameters += flags if parameter.name in ("settings", "flags") else [parameter]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def _flag(title: str, name: str) -> Parameter:
    """Return the parameter from which typer makes the flag of a setting."""
    flag = GROUPS[title][name]
    kind: Any = flag.kind
    option = typer.Option(
        *flag.names,
        help=flag.help,
        metavar=flag.value or None,
        rich_help_panel=title,
    )
    annotation = Annotated[kind | None, option]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
