"""What the commands can be told; the settings say what each is by default."""

from pathlib import Path
from typing import Annotated

import typer

Index = Annotated[Path, typer.Option("--index", help="Folder of the index.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Model = Annotated[str | None, typer.Option("--llm", help="Model of an OpenAI-compatible server.")]
BaseUrl = Annotated[
    str | None,
    typer.Option("--llm-base-url", help="Its address; the key comes from HIERINDEX_LLM_API_KEY."),
]


Form = Annotated[str, typer.Argument(metavar="FORMAT", help="document-summary, parquet or json.")]
To = Annotated[Path, typer.Option(help="A new file; of document-summary, a new folder.")]
Sources = Annotated[list[str], typer.Argument(metavar="SOURCE...", help="Files and folders.")]
Method = Annotated[
    str | None, typer.Option(help="semantic, raptor or document; semantic by default.")
]
EmbedModel = Annotated[
    str | None, typer.Option(help="A sentence-transformers model, by name or folder.")
]
Summarizer = Annotated[
    str | None, typer.Option(help="extractive, or a seq2seq model by name or folder.")
]
LLMConcurrency = Annotated[int | None, typer.Option(help="Requests at once.")]
MaxLLMTokens = Annotated[int | None, typer.Option(help="Stop before the build has spent more.")]
LLMTimeout = Annotated[float | None, typer.Option(help="Seconds of a request.")]
LLMDeadline = Annotated[float | None, typer.Option(help="Seconds of the whole build.")]
LLMCompletionTokens = Annotated[
    int | None, typer.Option(help="Of an answer at most, its thinking included.")
]
LLMRecord = Annotated[
    str | None, typer.Option(metavar="FILE", help="Append every prompt and its answer.")
]
Prompt = Annotated[
    str | None, typer.Option(metavar="NAME|FILE", help="summary, questions, or your own.")
]
MinGrounding = Annotated[
    float | None, typer.Option(help="Share of a summary that its sources must support.")
]
Grounding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="embedding, none, or an NLI model by name or folder."),
]
Strict = Annotated[
    bool | None, typer.Option("--strict/--no-strict", help="Fail where a summary fails.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what the language model would cost.")]
Quick = Annotated[bool, typer.Option("--quick", help="With --dry-run: as a range, at once.")]
PromptPrice = Annotated[float | None, typer.Option(help="Of a million tokens; with --dry-run.")]
CompletionPrice = Annotated[float | None, typer.Option(help="Of a million tokens; with --dry-run.")]
ChunkSize = Annotated[int | None, typer.Option(help="Tokens of a chunk.")]
MaxLevels = Annotated[int | None, typer.Option(help="Levels above the chunks.")]
Seed = Annotated[int | None, typer.Option(help="Of everything random.")]
Timings = Annotated[bool, typer.Option("--timings", help="Show seconds by stage and level.")]
Question = Annotated[str, typer.Argument(metavar="QUESTION")]
Mode = Annotated[
    str | None,
    typer.Option(
        help="collapsed (all levels), level, traversal (from the top down), document (by their "
        "summaries) or auto (levels chosen for the question)."
    ),
]
Level = Annotated[
    list[int] | None, typer.Option(help="Ask this level, 0 for chunks; may be given again.")
]
By = Annotated[
    str | None,
    typer.Option(
        help="dense (meaning), text (words), hybrid (both) or context (both, and what stands "
        "around); dense by default."
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Only chunks whose metadata match; also !=, <, <=, >, >=, ~ (contains). A summary "
        "matches if every chunk under it does.",
    ),
]
PartialSummaries = Annotated[
    bool | None,
    typer.Option(
        "--partial-summaries/--whole-summaries",
        help="With --where, also summaries of which only some chunks match.",
    ),
]
TopK = Annotated[int | None, typer.Option(help="Nodes at most.")]
TokenBudget = Annotated[int | None, typer.Option(help="Tokens of all nodes at most.")]
Beam = Annotated[int | None, typer.Option(help="Nodes that a traversal keeps at each step.")]
NDocuments = Annotated[
    int | None, typer.Option("--n-documents", help="Documents that mode document reads.")
]
WholeDocuments = Annotated[
    bool | None,
    typer.Option("--whole-documents/--best-chunks", help="Read them whole, not their best chunks."),
]
Merge = Annotated[
    bool | None,
    typer.Option("--merge/--no-merge", help="A parent in the place of most of its children."),
]
Mmr = Annotated[
    float | None, typer.Option(help="From 1, the most alike, to 0, the most diverse nodes.")
]
MinScore = Annotated[
    float | None,
    typer.Option(help="Of an extractive answer, from 0, quote whatever was found, to 1."),
]
ResponseModes = Annotated[
    list[str] | None,
    typer.Option("--response-mode", help="Compare this mode; may be given again. By default all."),
]
ResponseMode = Annotated[str | None, typer.Option(help="extractive, or one of LlamaIndex's.")]
