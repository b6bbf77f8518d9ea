"""Options of the commands; `Settings` defines their defaults."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from hierindex.settings import Settings

Index = Annotated[Path, typer.Option("--index", help="Folder of the index.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print only a JSON object.")]
Model = Annotated[str | None, typer.Option("--llm", help="Model of an OpenAI-compatible server.")]
BaseUrl = Annotated[
    str | None,
    typer.Option("--llm-base-url", help="URL of the server; HIERINDEX_LLM_API_KEY sets its key."),
]
Form = Annotated[str, typer.Argument(metavar="FORMAT", help="document-summary, parquet or json.")]
To = Annotated[Path, typer.Option(help="File to create; for document-summary, a folder.")]
Sources = Annotated[list[str], typer.Argument(metavar="SOURCE...", help="Files and folders.")]
Method = Annotated[str | None, typer.Option(help="semantic (the default), raptor or document.")]
EmbedModel = Annotated[
    str | None, typer.Option(help="Name or folder of a sentence-transformers model.")
]
Summarizer = Annotated[
    str | None, typer.Option(help="extractive (the default), or a seq2seq model's name or folder.")
]
LLMConcurrency = Annotated[int | None, typer.Option(help="Maximum number of concurrent requests.")]
MaxLLMTokens = Annotated[int | None, typer.Option(help="Token limit of the build.")]
LLMTimeout = Annotated[float | None, typer.Option(help="Timeout of a request in seconds.")]
LLMDeadline = Annotated[float | None, typer.Option(help="Time limit of the build in seconds.")]
LLMCompletionTokens = Annotated[
    int | None, typer.Option(help="Maximum tokens of an answer, reasoning included.")
]
LLMRecord = Annotated[
    str | None, typer.Option(metavar="FILE", help="File to append prompts and answers to.")
]
Prompt = Annotated[
    str | None, typer.Option(metavar="NAME|FILE", help="summary, questions, or a prompt file.")
]
MinGrounding = Annotated[
    float | None, typer.Option(help="Minimum share of a summary that its sources support, 0 to 1.")
]
Grounding = Annotated[str | None, typer.Option(help="embedding (the default) or none.")]
Strict = Annotated[
    bool | None, typer.Option("--strict/--no-strict", help="Fail if a summary cannot be written.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only estimate the cost of the LLM.")]
Quick = Annotated[bool, typer.Option("--quick", help="With --dry-run: ranges, without embedding.")]
PromptPrice = Annotated[float | None, typer.Option(help="With --dry-run: per million tokens.")]
CompletionPrice = Annotated[float | None, typer.Option(help="With --dry-run: per million tokens.")]
ChunkSize = Annotated[int | None, typer.Option(help="Maximum tokens of a chunk.")]
MaxLevels = Annotated[int | None, typer.Option(help="Maximum levels above the chunks.")]
Seed = Annotated[int | None, typer.Option(help="Random seed.")]
Timings = Annotated[bool, typer.Option("--timings", help="Print seconds by stage and level.")]
Question = Annotated[str, typer.Argument(metavar="QUESTION")]
Mode = Annotated[
    str | None,
    typer.Option(
        help="collapsed (all levels), level, traversal (from the roots down), document (documents "
        "by their summaries, then their chunks) or auto (levels chosen for the question)."
    ),
]
Level = Annotated[
    list[int] | None, typer.Option(help="Level to search, 0 for chunks; may be repeated.")
]
By = Annotated[
    str | None,
    typer.Option(
        help="dense (embeddings, the default), text (BM25), hybrid (both) or context (both, and "
        "the neighbours in reading order)."
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Metadata filter; also !=, <, <=, >, >=, ~ (contains). A summary matches if every "
        "chunk under it does.",
    ),
]
PartialSummaries = Annotated[
    bool | None,
    typer.Option(
        "--partial-summaries/--whole-summaries",
        help="With --where, include summaries with only some matching chunks.",
    ),
]
TopK = Annotated[int | None, typer.Option(help="Maximum number of nodes.")]
TokenBudget = Annotated[int | None, typer.Option(help="Maximum tokens of all nodes together.")]
Beam = Annotated[int | None, typer.Option(help="Nodes that a traversal keeps at each step.")]
NDocuments = Annotated[
    int | None, typer.Option("--n-documents", help="Number of documents in mode document.")
]
WholeDocuments = Annotated[
    bool | None,
    typer.Option("--whole-documents/--best-chunks", help="In mode document: whole documents."),
]
Merge = Annotated[
    bool | None,
    typer.Option("--merge/--no-merge", help="Replace children by a parent if over half are found."),
]
Mmr = Annotated[
    float | None, typer.Option(help="Rerank from 1 (by similarity) to 0 (by diversity).")
]
MinScore = Annotated[
    float | None,
    typer.Option(help="Minimum score of an extractive answer, 0 (never refuse) to 1."),
]
ResponseModes = Annotated[
    list[str] | None,
    typer.Option("--response-mode", help="Mode to compare; may be repeated; all by default."),
]
ResponseMode = Annotated[str | None, typer.Option(help="extractive, or a mode of LlamaIndex.")]


def settings_of(arguments: dict[str, Any]) -> "Settings":
    """Load the settings, with the arguments of a command that are settings."""
    from hierindex.settings import Settings, load_settings

    return load_settings(**{k: v for k, v in arguments.items() if k in Settings.model_fields})
