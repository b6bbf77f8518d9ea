"""Texts of answers for a terminal."""

import re
from collections.abc import Sequence
from math import inf
from typing import Any

from hierindex.cli.output import wrapped
from hierindex.cli.text import bold, counted, place, places, table, usage_of
from hierindex.text.blocks import split_blocks

NOTHING = "The answer is empty."
CUT_OFF = "The answer is cut off at the model's limit of tokens; raise --llm-completion-tokens."
HANG = 2  # columns by which further lines of a node are indented


def answered(answer: dict[str, Any]) -> str:
    """Format an answer with its citations and source nodes."""
    return _text_of(answer) + sourced(answer)


def sourced(answer: dict[str, Any]) -> str:
    """Format the citations and source nodes of an answer, to be printed after its text."""
    why = f"Searched {answer['why']}." if "why" in answer else ""
    usage = usage_of(answer["usage"]) if answer["usage"]["llm_calls"] else ""
    parts = places_cited(answer), _missing(answer), why, nodes_found(answer), usage
    return "".join(f"\n\n{part}" for part in parts if part)


def replied(answer: dict[str, Any]) -> str:
    """Format an answer with its citations alone."""
    return "\n\n".join(filter(None, [_text_of(answer), places_cited(answer), _missing(answer)]))


def places_cited(answer: dict[str, Any]) -> str:
    """Format the citations of an answer by their numbers, after a note if it is cut off."""
    cited = "\n".join(f"[{i}] {_cited(c)}" for i, c in enumerate(answer["citations"], start=1))
    return "\n\n".join(filter(None, [_cut_off(answer), cited]))


def _cut_off(answer: dict[str, Any]) -> str:
    return wrapped(CUT_OFF) if "cut_off" in answer else ""


def _missing(answer: dict[str, Any]) -> str:
    return f"Not found: {', '.join(answer['missing'])}" if answer["missing"] else ""


def nodes_found(answer: dict[str, Any]) -> str:
    """Format the source nodes of an answer after the numbers of its citations, these first."""
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


def _numbers(source: dict[str, Any], citations: Sequence[dict[str, Any] | None]) -> list[int]:
    """Return the numbers of the citations that are of a node or of its passages."""

    def is_of(citation: dict[str, Any]) -> bool:
        if "node" in citation:
            return bool(citation["node"] == source["id"])
        return any(
            passage["document"] == citation["document"]
            and passage["start"] < citation["end"]  # which may be several sentences of a node
            and citation["start"] < passage["end"]
            for passage in source["citations"]
        )

    return [n for n, each in enumerate(citations, start=1) if each and is_of(each)]


def compared(comparison: dict[str, Any]) -> str:
    """Format the cost of each response mode, then the answers."""
    head = ("mode", "calls", "prompt tokens", "completion tokens", "seconds")
    rows, answers = list[Sequence[Any]](), list[str]()
    for attempt in comparison["modes"]:
        mode, usage = attempt["mode"], attempt.get("usage")
        text = attempt["error"] if usage is None else _text_of(attempt)
        answers += filter(None, [f"{mode}\n{text}", _cut_off(attempt)])
        if usage is None:
            rows.append((mode, "failed", None, None, None))
            continue
        counts = (usage[key] for key in ("llm_calls", "prompt_tokens", "completion_tokens"))
        rows.append((mode, *counts, attempt["seconds"]))
    lines = [f"All modes used the same {counted(len(comparison['sources']), 'node')}."]
    if "why" in comparison:
        lines.append(f"Searched {comparison['why']}.")
    return "\n\n".join([*lines, table(head, rows), *answers])


def _text_of(answer: dict[str, Any]) -> str:
    """Return the text, the best sentence in bold type, and of a refusal the likely reason."""
    text, best = answer["answer"], answer.get("best", "")
    if answer["answer_kind"] == "extractive":
        text, best = _in_lines(text), _in_lines(best)
    unknown = answer.get("unknown") or {}
    hints = "".join(f" {_no_document(name, similar)}" for name, similar in unknown.items())
    if answer["refused"] and not unknown and (score := answer.get("score")):
        hints = f" The best answer has a score of {score:.2f}; a lower --min-score prints it."
    refusal, *listing = text.split("\n\n") if hints else [text]
    text = "\n\n".join([f"{refusal}{hints}", *listing])
    text = wrapped(text)
    words = r"\s+".join(map(re.escape, best.split()))
    return re.sub(words, lambda found: bold(found[0]), text, count=1) if best else text or NOTHING


def _no_document(name: str, similar: Sequence[str]) -> str:
    near = f"similar ids are {', '.join(map(repr, similar))}"
    rest = near if similar else "`hierindex tree` shows what it holds"
    return f"The index holds no document {name!r}; {rest}."


def _in_lines(text: str) -> str:
    """Return a text whose paragraphs are one line each; rows and code stay as they are."""
    parts, end = list[str](), 0
    for block in split_blocks(text):
        inside = text[block.start : block.end]
        parts += [text[end : block.start], " ".join(inside.split()) if block.prose else inside]
        end = block.end
    return "".join([*parts, text[end:]])


def _cited(citation: dict[str, Any] | None) -> str:
    """Format the places of a citation, and whether the answer differs from the passage."""
    if citation is None or "document" not in citation:
        return place(None)
    found = places([citation, *citation.get("also", ())])
    supported = citation.get("supported", True)
    return found if supported else f"{found}, differs from its passage"
