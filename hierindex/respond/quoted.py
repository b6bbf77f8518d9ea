"""Passages that an answer without a language model quotes."""

from typing import Any, NamedTuple

from hierindex.record import Quote


class Passage(NamedTuple):
    """Consecutive sentences as they stand in their document, and where.

    `citation` is a span as JSON, with those of copies as `also`, or None if it is not known.
    `lead` is what the answer says before them, and is not quoted.
    """

    text: str
    citation: dict[str, Any] | None
    lead: str = ""

    def shown(self, label: str = "") -> str:
        """Return the text after its lead and before a label.

        >>> Passage("It rained.", None, "Weather (50%):").shown("[1]")
        'Weather (50%): It rained. [1]'
        """
        return " ".join(filter(None, (self.lead, self.text, label)))


class Extract(NamedTuple):
    """The passages that answer best, in reading order, and the best of their sentences.

    `score` in [0, 1] tells how well it answers, see `ExtractiveSynthesizer`. `more` says what an
    overview leaves out. `missing` are the numbers, names and quoted words of the question that
    stand neither in the paragraphs of the passages nor in titles above them.
    """

    passages: list[Passage]
    best: str
    score: float
    more: str = ""
    missing: tuple[str, ...] = ()

    def answer(self, *, numbered: bool = True) -> str:
        """Return the passages, each with its number in brackets, and what is left out."""
        numbers = (f"[{i}]" if numbered else "" for i in range(1, len(self.passages) + 1))
        shown = [p.shown(number) for p, number in zip(self.passages, numbers, strict=True)]
        return "\n\n".join(filter(None, (*shown, self.more)))


NOTHING = Extract([], "", 0.0)


def citation_of(first: Quote, last: Quote) -> dict[str, Any] | None:
    """Return the span from one quote to another, with those of copies as `also`."""
    pairs = zip(first.sources, last.sources, strict=False)
    spans = [a._replace(end=b.end) for a, b in pairs if a.document == b.document]
    if not spans:
        return None
    length = spans[0].end - spans[0].start  # of a copy, too; what it lacks makes it longer
    source, *copies = [span.to_json() for span in spans if span.end - span.start == length]
    return {**source, "also": copies} if copies else source
