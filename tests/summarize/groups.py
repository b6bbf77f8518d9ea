"""Groups of sentences as a level hands them over, and budgets that can be counted by hand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from hierindex import Quote, Span, Usage
from hierindex.summarize import Budget, Rewrite, Summary
from hierindex.summarize.summary import Group, resolve_claims
from hierindex.text import Sentence
from hierindex.text.sentences import split_sentences

WORDS = "keeper lighthouse letter Storm storm harbour 雪 道路 x=1; — 42 ICE ... ) naïve".split()


def budget_of(n_words: int) -> Budget:
    """At most so many words."""
    return Budget(n_words, count_words)


def count_words(texts: Sequence[str]) -> np.ndarray:
    return np.array([len(text.split()) for text in texts], dtype=np.int64)


def group_of(*children: str, names: Sequence[str] = ()) -> list[Sentence]:
    """Sentences of children that are whole documents, each with its own text for an id."""
    names = names or [""] * len(children)
    quotes = [[Quote(0, len(text), Span(text, 0, len(text)))] for text in children]
    return [
        sentence
        for i, text in enumerate(children)
        for sentence in split_sentences(text, quotes[i], i, names[i])
    ]


def quotes_of(summary: Summary, group: Group) -> tuple[Quote, ...]:
    """Quotes of a summary of a group whose children are documents named by their texts."""
    name = {s.child: s.quote.source.document for s in group if s.quote.source}
    n_children = 1 + max(name, default=0)
    children = [name.get(i, "") for i in range(n_children)]
    return resolve_claims(
        summary.claims, [[Quote(0, len(text), Span(text, 0, len(text)))] for text in children]
    )


def children() -> st.SearchStrategy[list[str]]:
    """Texts of a few sentences each, not blank, with repeated sentences and without words."""
    sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(
        lambda words: " ".join(words) + "."
    )
    text = st.lists(sentence, min_size=1, max_size=6).map(" ".join)
    return st.lists(text | st.text(max_size=40).filter(str.strip), min_size=1, max_size=4)


def source_text(sentence: Sentence) -> str:
    """What the document says at the sentence's span."""
    source = sentence.quote.source
    return source.document[source.start : source.end]


def check_extract(extract: Sequence[Sentence], group: Group, budget: Budget) -> None:
    """It is what an extractor promises."""
    assert extract
    assert budget.count([s.text for s in extract]).sum() <= budget.max_tokens
    for sentence in extract:
        assert sentence.text == sentence.text.strip() != ""
        assert source_text(sentence) == sentence.text
    places = [(s.quote.source.document, s.quote.source.start) for s in group]
    found = [_place(sentence, places) for sentence in extract]
    assert found == sorted(found)


def _place(part: Sentence, places: list[tuple[str, int]]) -> tuple[int, int]:
    """Number of the first sentence that the part is of, and the part's start."""
    document, start = part.quote.source.document, part.quote.source.start
    begun = max(at for name, at in places if name == document and at <= start)
    return places.index((document, begun)), start


def check_summary(summary: Summary, budget: Budget) -> None:
    """Within the budget, and made of its claims."""
    assert budget.count([summary.text])[0] <= budget.max_tokens
    said = "".join(summary.text[c.at : c.to] for c in summary.claims)
    assert "".join(said.split()) == "".join(summary.text.split())


ONE_CALL = Usage(llm_calls=1)


@dataclass
class RewriterOf:
    """Rewrites by a function, None being a failure; `calls` has the texts of each call."""

    reply: Callable[[str], str | None]
    usage: Usage = ONE_CALL
    name: str = "function"
    calls: list[list[str]] = field(default_factory=list)

    def to_dict(self):
        return {"function": self.name}

    def rewrite(self, texts, *, max_tokens, resources=None):
        self.calls.append(list(texts))
        return [Rewrite(self.reply(text), self.usage) for text in texts]


class Kept(dict):
    """Completions in a dictionary; empty, it is false, and still there."""

    recall = dict.get
    keep = dict.__setitem__
