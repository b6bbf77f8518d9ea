"""Citations in the answers of a language model, each held against its passage."""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

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
from hierindex.respond.cited_text import Citation, CitedText, Part, written
from hierindex.respond.numbered import Passages, shown
from hierindex.respond.quotable import citation_of
from hierindex.summarize.grounding import judged
from hierindex.summarize.informative import MIN_WORDS
from hierindex.text.sentences import Sentence, split_sentences, tokens
from hierindex.text_node import from_text_node

Entries = list[dict[str, Any]]
Check = Callable[[Sequence[Part]], Entries]


class CitationCheck:
    """Resolves the citations of a model's answers and compares each with its passage.

    In the text, citations are numbered from 1 in their order, and those of unknown passages are
    removed. One that is not supported is written as "[2?]", except in a stream. `response.metadata`
    has `citations` with one entry for each number: the sentence of the passage that is most similar
    to the sentence of the answer, as `{document, start, end}` like those of
    `ExtractiveSynthesizer`; `title`, that of its document, if it has one; `node`, the id of the
    passage's node; and `supported`, which is False if no sentence of the passage is similar, or the
    answer's sentence has a number that none of its passages has. The metadata also has the number
    of removed citations as `citations_removed`. A stream adds both when it ends.

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
            entries = check(text.parts)
            marks = ("" if entry["supported"] else "?" for entry in entries)
            labels = (f"[{n}{mark}]" for n, mark in enumerate(marks, start=1))
            response.response = written(text.parts, labels)
            _add(response, entries, text)

    def _check(self, passages: Passages, question: str, parts: Sequence[Part]) -> Entries:
        """Return an entry for each number that a text cites, in order."""
        mentions = [
            (sentence, number)
            for citation, sentence in _with_sentences(parts)
            for number in citation.numbers
        ]
        found = {number: passages.by_number[number] for _, number in mentions}
        sources = {number: _sentences(node) for number, node in found.items()}
        pairs = [
            ([_claim(sentence, question)], [source.text for source in sources[number]])
            for sentence, number in mentions
        ]
        shown_by = {  # the passages that a sentence cites
            cites: "\n".join(
                [question, *(shown(found[n]) for each, n in mentions if each == cites)]
            )
            for cites in dict(mentions)
        }
        beside = [shown_by[sentence] for sentence, _ in mentions]
        verdicts = [each[0] for each in judged(pairs, self._embedder.embed, beside)]
        quotes = [
            sources[number][verdict.sources[0]].quote
            for (_, number), verdict in zip(mentions, verdicts, strict=True)
        ]
        return [
            {
                **(citation_of(quote, quote) or {}),
                **_title(found[number]),
                "node": found[number].node_id,
                "supported": not verdict.fault,
            }
            for (_, number), quote, verdict in zip(mentions, quotes, verdicts, strict=True)
        ]


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
    entries: Entries,
    text: CitedText,
) -> None:
    added = {"citations": entries, "citations_removed": text.n_removed}
    response.metadata = {**(response.metadata or {}), **added}


def _with_sentences(parts: Sequence[Part]) -> Iterator[tuple[Citation, str]]:
    """Yield citations with the sentences in or after which they stand.

    A citation at the beginning of a line belongs to the sentence that follows on the line.
    """
    text = "".join(part for part in parts if isinstance(part, str))
    sentences = split_sentences(text)
    starts = [sentence.at for sentence in sentences]
    at = 0
    for part in parts:
        if isinstance(part, str):
            at += len(part)
            continue
        after = bisect_left(starts, at)
        begins_line = not text[:at].rpartition("\n")[2].strip()
        follows = after < len(starts) and "\n" not in text[at : starts[after]]
        i = after if begins_line and follows else max(0, after - 1)
        yield part, sentences[i].text if sentences else ""


def _sentences(found: NodeWithScore) -> list[Sentence]:
    """Return the sentences of a passage; an empty one if there are none."""
    node = from_text_node(found.node)
    sentences = split_sentences(node.text, node.quotes)
    distinct = [*{s.text: s for s in reversed(sentences)}.values()][::-1]
    telling = [s for s in distinct if len(tokens(s.text)) >= MIN_WORDS]
    return telling or distinct or [Sentence("", 0, 0, Quote(0, 0, None))]


def _title(found: NodeWithScore) -> dict[str, str]:
    """Return the title of a passage's document, if it has one."""
    node = from_text_node(found.node)
    title = node.document_title
    return {} if title in ("", *node.documents) else {"title": title}


def _claim(sentence: str, question: str) -> str:
    """Return a sentence, with the question if it is too short to be read alone."""
    return sentence if len(tokens(sentence)) >= MIN_WORDS else f"{question} {sentence}"
