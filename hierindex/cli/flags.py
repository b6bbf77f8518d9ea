"""The flags of settings, in groups.

Their types and help are written here, as `Settings` is not imported for `--help`.
"""

from typing import Any, NamedTuple


class Flag(NamedTuple):
    """The flag of a setting; `example` is a value of a setting without a fixed default."""

    kind: Any
    value: str  # as the help page names it
    help: str
    example: Any = None
    names: tuple[str, ...] = ()


TREE = {
    "method": Flag(
        str,
        "NAME",
        "How chunks are grouped: semantic (the default, segments of each document), raptor "
        "(clusters of all chunks) or document (all chunks of each document).",
    ),
    "chunk_size": Flag(
        int, "N", "Maximum tokens of a chunk; by default what the embedding model reads.", 256
    ),
    "max_levels": Flag(int, "N", "Maximum levels above the chunks; no limit by default.", 3),
    "seed": Flag(int, "N", "Random seed; by default 0."),
    "embed_model": Flag(
        str,
        "MODEL",
        "Name or folder of a sentence-transformers model; by default the bundled all-MiniLM-L6-v2.",
        "sentence-transformers/all-MiniLM-L6-v2",
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
    "grounding": Flag(
        str, "NAME", "How similarity to the sources is measured: embedding (the default) or none."
    ),
    "min_grounding": Flag(
        float,
        "SHARE",
        "Minimum share of sentences that are similar to the sources, 0 to 1; none by default.",
        0.5,
    ),
    "strict": Flag(
        bool, "", "Fail if a summary cannot be written; by default an extract takes its place."
    ),
}
LANGUAGE_MODEL = {
    "llm": Flag(str, "MODEL", "Model of an OpenAI-compatible server; none by default.", "qwen3"),
    "llm_base_url": Flag(
        str,
        "URL",
        "URL of the server, without default; HIERINDEX_LLM_API_KEY sets its key.",
        "http://localhost:8000/v1",
    ),
    "llm_concurrency": Flag(int, "N", "Maximum number of concurrent requests; by default 4."),
    "llm_timeout": Flag(float, "SECONDS", "Timeout of a request in seconds; by default 120."),
    "llm_deadline": Flag(
        float, "SECONDS", "Time limit of the build in seconds; none by default.", 3600
    ),
    "llm_completion_tokens": Flag(
        int,
        "N",
        "Maximum tokens of a summary or an answer, reasoning included; by default what a summary "
        "needs, and the server's limit for answers.",
        1000,
    ),
    "max_llm_tokens": Flag(int, "N", "Token limit of the build; none by default.", 500_000),
    "llm_record": Flag(
        str, "FILE", "File to append prompts and answers to; none by default.", "calls.jsonl"
    ),
    "prompt_price": Flag(
        float, "PRICE", "Price of a million prompt tokens, for --dry-run; none by default.", 0.5
    ),
    "completion_price": Flag(
        float, "PRICE", "Price of a million completion tokens, for --dry-run; none by default.", 1.5
    ),
}
SEARCH = {
    "mode": Flag(
        str,
        "NAME",
        "auto (the default: the chunks, or an outline if the question is about the whole or about "
        "documents that it names), collapsed (all levels), level, traversal (from the roots down) "
        "or document (documents by their summaries, then their chunks).",
        "auto",
    ),
    "level": Flag(
        list[str],
        "N|WORD",
        "Level to search: a number, 0 for the chunks, or top, documents (the summary of each), "
        "sections (the highest node of each) or chunks; may be repeated. By default as the mode "
        "chooses.",
        ["documents", 0],
    ),
    "by": Flag(
        str,
        "NAME",
        "dense (embeddings), text (BM25), hybrid (both) or context (both, and the neighbours in "
        "reading order; the default of mode auto, the others' is dense).",
        "context",
    ),
    "top_k": Flag(int, "N", "Maximum number of nodes; by default 10, of an outline no limit.", 10),
    "token_budget": Flag(int, "N", "Maximum tokens of all nodes together; by default 2000."),
    "rerank": Flag(
        str,
        "MODEL",
        "Cross-encoder that reranks chunks, by name or folder; none by default.",
        "cross-encoder/ms-marco-MiniLM-L6-v2",
    ),
    "beam": Flag(
        int, "N", "In mode traversal: nodes kept at each step; by default as --top-k.", 10
    ),
    "n_documents": Flag(int, "N", "In mode document: number of documents; by default 3.", 3),
    "whole_documents": Flag(
        bool,
        "",
        "In mode document: whole documents; by default their best chunks.",
        names=("--whole-documents/--best-chunks",),
    ),
    "partial_summaries": Flag(
        bool,
        "",
        "With --where, include summaries with only some matching chunks; by default only those "
        "with no other.",
        names=("--partial-summaries/--whole-summaries",),
    ),
}
ANSWER = {
    "response_mode": Flag(
        str,
        "MODE",
        "extractive (the default), or a mode of LlamaIndex (by default tree_summarize with --llm).",
        "extractive",
    ),
    "min_score": Flag(
        float,
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
