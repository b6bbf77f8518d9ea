"""Answers formatted for a terminal."""

from collections.abc import Sequence
from math import inf
from typing import Any

from hierindex.cli.output import wrapped
from hierindex.cli.text import bold, places, table, usage_of
from hierindex.text.display import answer_text, counted, notes_of

ADVICE = {
    "cut_off": "; raise --llm-completion-tokens",
    "unknown": "; `hierindex tree` shows what it holds",
}
HANG = 2  # columns by which further lines of a node are indented


def answered(answer: dict[str, Any], *, verbose: bool = False) -> str:
    """Format an answer with its citations; if `verbose`, also the searched and found nodes."""
    advice = dict(ADVICE)
    if score := answer.get("score"):
        low = f"The best answer has a score of {score:.2f}; a lower --min-score prints it."
        advice["refused"] = f" {low}"
    text = answer_text(answer, wrapped, bold, advice)
    return "\n\n".join([text, *(details(answer) if verbose else [])])


def noted(answer: dict[str, Any], *, verbose: bool = False) -> str:
    """Format what `answered` adds after an answer's text, to print it after a streamed answer."""
    notes = [*map(wrapped, notes_of(answer, ADVICE)), *(details(answer) if verbose else [])]
    return "".join(f"\n\n{note}" for note in notes)


def details(answer: dict[str, Any]) -> list[str]:
    """Return lines on the search for an answer: its reason, the nodes found, usage and times."""
    why = f"Searched {answer['why']}." if "why" in answer else ""
    usage = usage_of(answer["usage"]) if answer["usage"]["llm_calls"] else ""
    spent = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in answer["seconds"].items())
    return [*filter(None, [why, nodes_found(answer), usage, spent])]


def nodes_found(answer: dict[str, Any]) -> str:
    """Format the source nodes of an answer, cited ones first, with their citation numbers."""
    if not answer["sources"]:
        return ""
    rows = [(_numbers(source, answer["citations"]), source) for source in answer["sources"]]
    rows.sort(key=lambda row: row[0][:1] or [inf])
    labels = ["".join(f"[{n}]" for n in numbers) + "  " * bool(numbers) for numbers, _ in rows]
    margin = max(map(len, labels))
    lines = (
        f"{label.ljust(margin)}level {source['level']}  {source['id'][:12]}  {source['title']}  "
        f"{places(source['citations'])}"
        for label, (_, source) in zip(labels, rows, strict=True)
    )
    head = f"Found{', cited nodes first' if margin else ''}; `hierindex show ID` prints a node:"
    return "\n".join([head, *(wrapped(line, margin + HANG) for line in lines)])


def _numbers(source: dict[str, Any], citations: Sequence[dict[str, Any]]) -> list[int]:
    """Return the numbers of the citations that refer to a node or its passages."""

    def is_of(citation: dict[str, Any]) -> bool:
        if "node" in citation:
            return bool(citation["node"] == source["id"])
        return any(
            passage["document"] == citation.get("document")
            and passage["start"] < citation["end"]  # which may be several sentences of a node
            and citation["start"] < passage["end"]
            for passage in source["citations"]
        )

    return [n for n, each in enumerate(citations, start=1) if is_of(each)]


def compared(comparison: dict[str, Any]) -> str:
    """Format the cost of each response mode, then the answers."""
    head = ("mode", "calls", "prompt tokens", "completion tokens", "seconds")
    rows, answers = list[Sequence[Any]](), list[str]()
    for attempt in comparison["modes"]:
        mode, usage = attempt["mode"], attempt.get("usage")
        answers.append(f"{mode}\n{attempt['error'] if usage is None else answered(attempt)}")
        if usage is None:
            rows.append((mode, "failed", None, None, None))
            continue
        counts = (usage[key] for key in ("llm_calls", "prompt_tokens", "completion_tokens"))
        rows.append((mode, *counts, attempt["seconds"]))
    lines = [f"All modes used the same {counted(len(comparison['sources']), 'node')}."]
    if "why" in comparison:
        lines.append(f"Searched {comparison['why']}.")
    return "\n\n".join([*lines, table(head, rows), *answers])
