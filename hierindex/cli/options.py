"""Arguments and options of the commands."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from hierindex.cli.output import print_note

Command = Callable[..., None]

Index = Annotated[Path, typer.Option("--index", help="Folder of the index.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print only a JSON object.")]
Purge = Annotated[
    bool, typer.Option("--purge", help="Remove earlier generations with what was changed.")
]
Timings = Annotated[bool, typer.Option("--timings", help="Print seconds by stage and level.")]
Question = Annotated[str, typer.Argument(metavar="QUESTION")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Metadata filter; also !=, <, <=, >, >=, ~ (contains). A summary matches if every "
        "chunk under it does. By default everything matches.",
    ),
]

FLAGS: dict[str, tuple[Any, str]] = {
    "method": (str, "semantic (the default), raptor or document."),
    "embed_model": (
        str,
        "Name or folder of a sentence-transformers model; by default the bundled all-MiniLM-L6-v2.",
    ),
    "precision": (
        str,
        "bfloat16 (the default, on processors that have it) or float32, of the embedding model.",
    ),
    "summarizer": (str, "extractive (the default), or a seq2seq model's name or folder."),
    "llm": (str, "Model of an OpenAI-compatible server; none by default."),
    "llm_base_url": (
        str,
        "URL of the server, without default; HIERINDEX_LLM_API_KEY sets its key.",
    ),
    "llm_concurrency": (int, "Maximum number of concurrent requests; by default 4."),
    "max_llm_tokens": (int, "Token limit of the build; none by default."),
    "llm_timeout": (float, "Timeout of a request in seconds; by default 120."),
    "llm_deadline": (float, "Time limit of the build in seconds; none by default."),
    "llm_completion_tokens": (
        int,
        "Maximum tokens of an answer, reasoning included; by default as the summary needs.",
    ),
    "llm_record": (str, "File to append prompts and answers to; none by default."),
    "prompt": (str, "summary (the default), questions, or a prompt file."),
    "min_grounding": (
        float,
        "Minimum share of a summary that its sources support, 0 to 1; by default none is needed.",
    ),
    "grounding": (str, "embedding (the default) or none."),
    "strict": (bool, "Fail if a summary cannot be written; by default an extract takes its place."),
    "prompt_price": (float, "With --dry-run: per million tokens; none by default."),
    "completion_price": (float, "With --dry-run: per million tokens; none by default."),
    "chunk_size": (int, "Maximum tokens of a chunk; by default what the embedding model reads."),
    "max_levels": (int, "Maximum levels above the chunks; no limit by default."),
    "seed": (int, "Random seed; by default 0."),
    "mode": (
        str,
        "auto (the default: the chunks, or an outline if the question is about the whole or about "
        "documents that it names), collapsed (all levels), level, traversal (from the roots down) "
        "or document (documents by their summaries, then their chunks).",
    ),
    "level": (
        list[str],
        "Level to search: a number, 0 for the chunks, or top, documents (the summary of each), "
        "sections (the highest node of each) or chunks; may be repeated. By default as the mode "
        "chooses.",
    ),
    "by": (
        str,
        "dense (embeddings), text (BM25), hybrid (both) or context (both, and the "
        "neighbours in reading order; the default of mode auto, the others' is dense).",
    ),
    "top_k": (int, "Maximum number of nodes; by default 10, of an outline no limit."),
    "token_budget": (int, "Maximum tokens of all nodes together; by default 2000."),
    "beam": (int, "In mode traversal: nodes kept at each step; by default as --top-k."),
    "n_documents": (int, "In mode document: number of documents; by default 3."),
    "whole_documents": (bool, "In mode document: whole documents; by default their best chunks."),
    "merge": (
        bool,
        "Add all chunks of a parent if over half of its children are found; off by default.",
    ),
    "mmr": (float, "Rerank from 1 (by similarity) to 0 (by diversity); off by default."),
    "rerank": (str, "Cross-encoder that reranks chunks, by name or folder; none by default."),
    "partial_summaries": (
        bool,
        "With --where, include summaries with only some matching chunks; by default only those "
        "with no other.",
    ),
    "response_mode": (
        str,
        "extractive (the default), or a mode of LlamaIndex (by default tree_summarize with --llm).",
    ),
    "min_score": (
        float,
        "Minimum score of an extractive answer, 0 (never refuse) to 1; by default 0.4.",
    ),
}
"""Type and help of the flag of each field of `Settings`, which is not imported for `--help`."""

NAMES = {
    "whole_documents": ["--whole-documents/--best-chunks"],
    "partial_summaries": ["--partial-summaries/--whole-summaries"],
}
METAVARS = {"level": "N|WORD", "llm_record": "FILE", "prompt": "NAME|FILE", "rerank": "MODEL"}


def with_settings(names: str) -> Callable[[Command], Command]:
    """Give a command a flag for each named field of `Settings`.

    The flags take the place of the command's parameter `settings`, which gets the settings as
    loaded with these flags, or of its parameter `flags`, which gets those that are given.
    """
    flags = [_flag(name) for name in names.split()]

    def decorate(command: Command) -> Command:
        @wraps(command, assigned=("__name__", "__doc__"))
        def run(**arguments: Any) -> None:
            from hierindex.settings import load_settings, misnamed_variables

            for sentence in misnamed_variables():
                print_note(f"note: {sentence}")
            given = {flag.name: arguments.pop(flag.name) for flag in flags}
            given = {name: value for name, value in given.items() if value is not None}
            if "flags" in of_command:
                command(**arguments, flags=given)
            else:
                command(**arguments, settings=load_settings(**given))

        of_command = signature(command).parameters
        parameters = list[Parameter]()
        for parameter in of_command.values():
            parameters += flags if parameter.name in ("settings", "flags") else [parameter]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def _flag(name: str) -> Parameter:
    """Return the parameter from which typer makes the flag of a setting."""
    kind, text = FLAGS[name]
    option = typer.Option(*NAMES.get(name, ()), help=text, metavar=METAVARS.get(name))
    annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
