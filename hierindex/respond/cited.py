"""Citations in the answers of a language model, compared with their passages, and found ones."""

import asyncio
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, count, groupby
from typing import NamedTuple

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.schema import NodeWithScore
from llama_index.core.types import TokenAsyncGen, TokenGen

from hierindex.models.embedder import Embedder
from hierindex.node import Quote
from hierindex.respond.citation import Citation
from hierindex.respond.cited_text import Cited, CitedText, Part, written
from hierindex.respond.numbered import Passages, shown
from hierindex.respond.quotable import ANNOUNCES, citation_of
from hierindex.summarize.grounding import judged
from hierindex.summarize.informative import MIN_WORDS
from hierindex.text.sentences import Sentence, split_sentences, tokens
from hierindex.text_node import from_text_node

STOPS = " .!?|\u2026\u3002\uff01\uff1f"  # what ends a sentence or a row of a table
LISTED = re.compile(r"(?:Response )?\d{1,3}[.):]\s+")  # before an item of a list or an answer
NO_CLAIM = re.compile(  # a negation and what it is about, or a heading
    r"(?is)(?=.*(?:\b(?:cannot|keine?|nicht|nothing|none|not?|unable)\b|n['\u2019]t\b))"
    r".*\b(?:context|passagen?|passages|question|no information|I\b.*\b(?:answer|find|know))\b"
    r"|#|\*\*[^*]*[^*.!]\*\*\Z"
)


class Statement(NamedTuple):
    """A sentence of an answer, and the numbers of the passages of which one may support it.

    `at` is where it is marked in the text without citations, after `blanks`. `cites` are the
    numbers of all passages that the model cites for it.
    """

    sentence: str
    at: int
    blanks: str
    passages: tuple[int, ...]
    cites: tuple[int, ...] = ()


Marks = list[tuple[Statement, Citation | None]]
"""Statements and their citations; None if the model cites nothing and no passage supports it."""
Check = Callable[[Sequence[Part]], Marks]


class CitationCheck:
    """Resolves the citations of a model's answers, compares them with their passages, adds others.

    In the text, citations are numbered from 1 in their order, and those of unknown passages are
    removed. One that is not supported is written as "[2?]"; see `judged`, by which the facts of a
    sentence may stand in any passage that it cites. A sentence without a citation gets that of the
    most similar sentence that supports it, written as "[3*]", or if there is none, "[?]". Refusals,
    questions, headings, lines that end with a colon and sentences of fewer than four words get
    nothing. A stream has only the model's citations, without these signs.

    `response.metadata` has `citations`, one for each number, see `Citation.to_json`; each is the
    sentence of the passage that is most similar to the sentence of the answer. Those that were
    found follow the model's if the answer is streamed. `unsupported` are the sentences with "[?]",
    and `citations_removed` is the number of removed citations. A stream adds all when it ends.

    Parameters
    ----------
    embed_model : BaseEmbedding
    """

    def __init__(self, embed_model: BaseEmbedding) -> None:
        self._embedder = Embedder(embed_model)

    def add_to(self, response: RESPONSE_TYPE, passages: Passages, question: str) -> None:
        """Resolve the citations of a response, or of its stream as it is read."""
        text, check = CitedText(passages.by_number), partial(self._check, passages, question)
        if isinstance(response, StreamingResponse):
            pieces = response.response_gen
            response.response_gen = _streamed(pieces, text, check, response)
        elif isinstance(response, AsyncStreamingResponse):
            pieces_to_come = response.response_gen
            response.response_gen = _astreamed(pieces_to_come, text, check, response)
        elif isinstance(response, Response) and response.response:
            text.read(response.response)
            text.end()
            marks = sorted(check(text.parts), key=lambda mark: mark[0].at)
            response.response = _marked(_without_citations(text.parts), marks)
            _add(response, marks, text)

    def _check(self, passages: Passages, question: str, parts: Sequence[Part]) -> Marks:
        """Return the marks of the model's citations in their order, then those of other claims."""
        known = passages.by_number
        claims, marks = _statements(parts, (*known,)), Marks()
        alike = groupby(claims, lambda claim: (claim.passages, claim.cites))
        groups = [(*numbers, [*each]) for numbers, each in alike]
        sources = {
            numbers: [(n, sentence) for n in numbers for sentence in _sentences(known[n])]
            for numbers, _, _ in groups
        }
        pairs = [
            ([_claim(c.sentence, question) for c in group], [s.text for _, s in sources[numbers]])
            for numbers, _, group in groups
        ]
        beside = [
            "\n".join([question, *(shown(known[n]) for n in cites or numbers)])
            for numbers, cites, _ in groups
        ]
        verdicts = chain.from_iterable(judged(pairs, self._embedder.embed, beside))
        for claim, verdict in zip(claims, verdicts, strict=True):
            number, source = sources[claim.passages][verdict.sources[0]]
            node, by = from_text_node(known[number].node), "model" if claim.cites else "hierindex"
            marked = {"node": node.id, "supported": not verdict.fault, "by": by}
            citation = citation_of(node, source.quote, source.quote, **marked)
            marks.append((claim, None if verdict.fault and not claim.cites else citation))
        return marks


def _streamed(
    pieces: TokenGen, text: CitedText, check: Check, response: StreamingResponse
) -> TokenGen:
    labels = map("[{}]".format, count(1))
    for piece in pieces:
        if shown := written(text.read(piece), labels):
            yield shown
    yield written(text.end(), labels)
    _add(response, check(text.parts), text)


async def _astreamed(
    pieces: TokenAsyncGen, text: CitedText, check: Check, response: AsyncStreamingResponse
) -> TokenAsyncGen:
    labels = map("[{}]".format, count(1))
    async for piece in pieces:
        if shown := written(text.read(piece), labels):
            yield shown
    yield written(text.end(), labels)
    _add(response, await asyncio.to_thread(check, text.parts), text)


def _add(
    response: Response | StreamingResponse | AsyncStreamingResponse,
    marks: Marks,
    text: CitedText,
) -> None:
    added = {
        "citations": [citation.to_json() for _, citation in marks if citation],
        "citations_removed": text.n_removed,
        "unsupported": [claim.sentence for claim, citation in marks if citation is None],
    }
    response.metadata = {**(response.metadata or {}), **added}


def _without_citations(parts: Sequence[Part]) -> str:
    return "".join(part for part in parts if isinstance(part, str))


def _statements(parts: Sequence[Part], numbers: tuple[int, ...]) -> list[Statement]:
    """Return a claim for each citation, in order, and for each sentence that cites none.

    A citation belongs to the sentence in or after which it stands, one at the beginning of a line
    to the sentence that follows on the line.
    """
    text = _without_citations(parts)
    sentences = split_sentences(text)
    starts, at = [sentence.at for sentence in sentences], 0
    cited, cites = list[tuple[int, int, Cited]](), defaultdict[int, tuple[int, ...]](tuple)
    for part in parts:
        if isinstance(part, str):
            at += len(part)
            continue
        after = bisect_left(starts, at)
        begins_line = not text[:at].rpartition("\n")[2].strip()
        follows = after < len(starts) and "\n" not in text[at : starts[after]]
        i = after if begins_line and follows else max(0, after - 1)
        cited.append((i, at, part))
        cites[i] += part.numbers
    return [
        Statement(
            sentences[i].text if sentences else "", at, "" if k else part.blanks, (n,), cites[i]
        )
        for i, at, part in cited
        for k, n in enumerate(part.numbers)
    ] + [
        Statement(sentence.text, sentence.at + len(sentence.text.rstrip(STOPS)), " ", numbers)
        for i, sentence in enumerate(sentences)
        if i not in cites and _says_something(sentence)
    ]


def _says_something(sentence: Sentence) -> bool:
    """Return whether a sentence makes a claim, and does not merely announce, ask or refuse."""
    text = LISTED.sub("", sentence.text, count=1)
    return (
        sentence.kind != "code"  # "heading" may be an answer of several, above a line
        and len(tokens(text)) >= MIN_WORDS
        and not text.rstrip("*_ ").endswith((*ANNOUNCES, "?"))
        and not NO_CLAIM.match(text)
    )


def _marked(text: str, marks: Marks) -> str:
    """Return a text with its marks, which are in its order."""
    pieces, numbers, at = list[str](), count(1), 0
    for claim, citation in marks:
        pieces += text[at : claim.at], claim.blanks
        at = claim.at
        if citation is None:
            pieces.append("[?]")
        else:
            sign = "*" if not claim.cites else "" if citation.supported else "?"
            pieces.append(f"[{next(numbers)}{sign}]")
    return "".join([*pieces, text[at:]])


def _sentences(found: NodeWithScore) -> list[Sentence]:
    """Return the sentences of a passage; an empty one if there are none."""
    node = from_text_node(found.node)
    sentences = split_sentences(node.text, node.quotes)
    distinct = [*{s.text: s for s in reversed(sentences)}.values()][::-1]
    telling = [s for s in distinct if len(tokens(s.text)) >= MIN_WORDS]
    return telling or distinct or [Sentence("", 0, 0, Quote(0, 0, None))]


def _claim(sentence: str, question: str) -> str:
    """Return a sentence, with the question if it is too short to be read alone."""
    return sentence if len(tokens(sentence)) >= MIN_WORDS else f"{question} {sentence}"
