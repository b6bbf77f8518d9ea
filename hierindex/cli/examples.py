"""Examples of each command, which its help shows and a test runs."""

PROGRAM = {
    "Build a tree over a folder, look at it, and ask it": """
hierindex build docs --index my-index
hierindex info --index my-index
hierindex query "Why was the bridge closed?" --index my-index""",
}
"""Those of the program; each has a sentence and commands."""

EXAMPLES = {
    "init": {
        "A file of settings in this folder, all of them commented out": """
hierindex init""",
        "Commands in this folder then follow its lines": """
hierindex build docs --index my-index""",
    },
    "build": {
        "A folder and a file, without a language model": """
hierindex build docs notes.txt --index my-index""",
        "Clusters of all chunks, as in RAPTOR, in place of segments of each document": """
hierindex build docs --index clusters --method raptor --max-levels 2""",
        "What it would cost to have a language model write the summaries": """
hierindex build docs --index written --dry-run \\
  --llm qwen3 --llm-base-url http://localhost:8000/v1""",
    },
    "update": {
        "Read again all that the index was built from": """
hierindex update --index my-index""",
        "Add a folder, and leave no earlier generation that could be returned to": """
hierindex update more-docs --index my-index --purge""",
        "What would change": """
hierindex update --index my-index --dry-run""",
    },
    "watch": {
        "Follow all that the index was built from": """
hierindex watch --index my-index""",
        "Follow a folder, and print an object for each update": """
hierindex watch docs --index my-index --json""",
    },
    "delete": {
        "What would be grouped and summarised again": """
hierindex delete report.md --index my-index --dry-run""",
        "By the id that `hierindex tree` shows": """
hierindex delete report.md --index my-index""",
    },
    "query": {
        "From the chunks, or from an outline if the question is about the whole": """
hierindex query "Why was the bridge closed?" --index my-index""",
        "From the summaries of the documents, and from one document alone": """
hierindex query "What was repaired?" --index my-index --level documents
hierindex query "What was repaired?" --index my-index \\
  --where file_name=report.md""",
        "By a language model, printed as it is written": """
hierindex query "Why was the bridge closed?" --index my-index --stream \\
  --llm qwen3 --llm-base-url http://localhost:8000/v1""",
    },
    "chat": {
        "Type questions, or /help": """
hierindex chat --index my-index""",
        "Follow-up questions, which a language model understands": """
hierindex chat --index my-index \\
  --llm qwen3 --llm-base-url http://localhost:8000/v1""",
    },
    "compare": {
        "What is answered without a language model": """
hierindex compare "Why was the bridge closed?" --index my-index""",
        "Two modes of one language model": """
hierindex compare "Why was the bridge closed?" --index my-index \\
  --response-mode compact --response-mode tree_summarize \\
  --llm qwen3 --llm-base-url http://localhost:8000/v1""",
    },
    "info": {
        "Levels, numbers of nodes and models": """
hierindex info --index my-index""",
        "The same for a script": """
hierindex info --index my-index --json""",
    },
    "tree": {
        "The titles that fit on a screen, then a level more": """
hierindex tree --index my-index
hierindex tree --index my-index --depth 2""",
        "What is under a node": """
hierindex tree NODE --index my-index""",
    },
    "show": {
        "A node, by an id that `hierindex tree` or `query` prints": """
hierindex show NODE --index my-index""",
        "With the passages that it cites, and 100 characters around them": """
hierindex show NODE --index my-index --source --context 100""",
    },
    "outline": {
        "What the documents are about, in at most 300 tokens": """
hierindex outline --index my-index --budget 300""",
        "One document, with more on what is asked for": """
hierindex outline --index my-index --of report.md \\
  --question "What was repaired?"
""",
    },
    "explore": {
        "Open the page in the browser": """
hierindex explore --index my-index""",
        "Only serve the page, at an address that is printed": """
hierindex explore --index my-index --no-browser""",
    },
    "serve": {
        "Until Ctrl-C; query, outline and show of this index are faster meanwhile": """
hierindex serve --index my-index""",
        "For other programs, too, by HTTP": """
hierindex serve --index my-index --port 8740""",
    },
    "mcp": {
        "What a client starts, to talk over standard input and output": """
hierindex mcp --index my-index""",
        "For clients that connect over HTTP, until Ctrl-C": """
hierindex mcp --index my-index --http --port 8741""",
    },
    "report": {
        "All of the tree, as far as 5 MB hold it": """
hierindex report --index my-index --out tree.html""",
        "A node and what is under it": """
hierindex report --index my-index --out node.html --of NODE""",
    },
    "export": {
        "A picture, a table of nodes, and nested objects": """
hierindex export svg --index my-index --to tree.svg
hierindex export parquet --index my-index --to nodes.parquet
hierindex export json --index my-index --to tree.json""",
        "An index that LlamaIndex loads": """
hierindex export document-summary --index my-index --to llama-index""",
    },
    "verify": {
        "Check all of it, for example after a restored backup": """
hierindex verify --index my-index""",
        "Repair what needs no model": """
hierindex verify --index my-index --repair""",
    },
    "generations": {
        "What was written when": """
hierindex generations --index my-index""",
        "The same for a script": """
hierindex generations --index my-index --json""",
    },
    "rollback": {
        "Return to the generation before the newest": """
hierindex rollback --index my-index""",
        "Return to one that `hierindex generations` lists": """
hierindex rollback 1 --index my-index""",
    },
    "evaluate": {
        "Two ways, for readers of 500 tokens": """
hierindex evaluate questions --ways dense,hybrid --budgets 500""",
        "All ways; indices are kept for the next time": """
hierindex evaluate questions --index evaluated""",
    },
    "demo": {
        "Build and ask the demo, then look at it": """
hierindex demo
hierindex tree --index hierindex-demo""",
    },
}
"""Those of each command."""


def shown(examples: dict[str, str]) -> str:
    """Return examples as a help page shows them."""
    parts = []
    for sentence, commands in examples.items():
        parts += [f"{sentence}:", *(f"  {line}" for line in commands.strip().split("\n"))]
    return "\n".join(parts)
