"""Answers formatted for a terminal."""

from collections.abc import Iterator, Sequence
from typing import Any

from hierindex.cli.text import bold, found, table, usage_of
from hierindex.text.display import answer_text, counted, notes_of


def answered(answer: dict[str, Any], *, verbose: bool = False) -> str:
    """Format an answer with its citations; if `verbose`, also the searched and found nodes."""
    more = [*advice(answer), *(details(answer) if verbose else [])]
    return "\n\n".join([answer_text(answer, bold), *more])


def noted(answer: dict[str, Any], *, verbose: bool = False) -> str:
    """Format what `answered` adds after an answer's text, to print it after a streamed answer."""
    more = [*advice(answer), *(details(answer) if verbose else [])]
    return "".join(f"\n\n{note}" for note in [*notes_of(answer), *more])


def advice(answer: dict[str, Any]) -> Iterator[str]:
    """Yield the options that help if an answer is cut off or refused."""
    if answer.get("cut_off"):
        yield "A higher --llm-completion-tokens allows a longer answer."
    if answer["refused"] and not answer["unknown"] and (score := answer.get("score")):
        yield f"The best answer has a score of {score:.2f}; a lower --min-score prints it."


def details(answer: dict[str, Any]) -> list[str]:
    """Return lines on the search for an answer: its reason, the nodes found, usage and times."""
    why = f"Searched {answer['why']}." if "why" in answer else ""
    nodes = nodes_found(answer) if answer["sources"] else ""
    usage = usage_of(answer["usage"]) if answer["usage"]["llm_calls"] else ""
    spent = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in answer["seconds"].items())
    return [*filter(None, [why, nodes, usage, spent])]


def nodes_found(answer: dict[str, Any]) -> str:
    """Format the source nodes of an answer."""
    lines = map(found, answer["sources"])
    return "\n".join(["Found; `hierindex show ID` prints a node:", *lines])


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
