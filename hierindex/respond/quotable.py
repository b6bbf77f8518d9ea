"""The parts of nodes that can be quoted, and the passages around them."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from hierindex.node import TITLE, Node, Quote, Span
from hierindex.respond.answer import Citation, Passage
from hierindex.store.rows import DATE, PEOPLE
from hierindex.summarize.extractive import DEPENDS
from hierindex.text.blocks import Block, blocks_of
from hierindex.text.sentences import bounds_in_prose, stripped, tokens
from hierindex.unsafe import beginning

MAX_VALUE = 100  # characters of a value of the metadata
SHORTEST, LONGEST = 30, 60  # words of a passage
LIST = 150  # words of a passage with all steps of a list
LINE = 60  # characters of a line that stands alone
ABOUT = TITLE, *PEOPLE, DATE  # metadata of a document
NO_CONTENT = frozenset({"front matter", "reference", "contents", "furniture"})
UNDIVIDED = frozenset(
    {"about", "heading", "row", "record", "code", "front matter", "contents", "furniture"}
)
LISTED = frozenset({"item", "row", "code", "quotation"})
TITLES = frozenset({"about", "heading"})  # of what follows
ENDS = ".", ",", "\u3002"
ANNOUNCES = ":", "\uff1a"
LABEL = re.compile(r"[^\W\d_a-z][\w.'\u2019]*(?: [\w.'\u2019]+){,4}:(?=\s)")  # of a speaker
TICKS = re.compile(r"(?:[ \t]*[\d.,%+\u2212-]+[ \t]*(?:\n|$)){3,}")  # labels of the axis of a plot
RULE = re.compile(r"[\s|:+=-]+")  # below the head of a table


class Unit(NamedTuple):
    """A sentence, list item, table row or line of a node's text.

    `node` is the index of its node, and `block` the index of its block among the blocks of all
    nodes. `kind` is the kind of the block. `quote` has its positions in the node and in the
    document.
    """

    node: int
    block: int
    kind: str
    text: str
    quote: Quote
    n_words: int

    @property
    def opens_document(self) -> bool:
        """Whether it is at the beginning of its document."""
        return self.quote.source is not None and self.quote.source.start == 0


@dataclass(frozen=True)
class Extract:
    """The passages that answer a question, the best first, with a score in [0, 1].

    `more` describes what an overview leaves out, and `after_lead` separates leads from texts.
    `missing` has the numbers, names and quoted words of the question that are neither in the
    passages nor in titles above them. It also has other important words that no text about the
    subject of the question contains.
    """

    passages: list[Passage]
    score: float = 0.0
    more: str = ""
    missing: tuple[str, ...] = ()
    refused: bool = False
    after_lead: str = "\n"

    @property
    def best(self) -> str:
        """The text that matches the question best; "" without passages."""
        return self.passages[0].best if self.passages else ""

    def answer(self, no_answer: str, *, numbered: bool = True) -> str:
        """Return the passages, each with its number in brackets, or `no_answer` without any."""
        shown = [
            self.after_lead.join(filter(None, (p.lead, p.text))) + f" [{i}]" * numbered
            for i, p in enumerate(self.passages, start=1)
        ]
        return no_answer if self.refused else "\n\n".join(filter(None, (*shown, self.more)))


def units_of(nodes: Sequence[Node]) -> list[Unit]:
    """Return the parts of nodes that can be quoted, in order.

    The first node of each document is preceded by parts for the facts in its metadata.
    """
    units, n_blocks, known = list[Unit](), 0, set[tuple[str, ...]]()
    for i, node in enumerate(nodes):
        quotes = node.quotes or (Quote(0, len(node.text), None),)
        starts = [quote.at for quote in quotes]
        if node.documents not in known and (facts := _facts_about(node)):
            start = Quote(0, 0, Span(node.documents[0], 0, 0))
            units.append(Unit(i, n_blocks, "about", facts, start, 0))
            n_blocks += 1
        known.add(node.documents)
        for block in blocks_of(node):
            quote = quotes[max(0, bisect_right(starts, block.start) - 1)]
            kind = "furniture" if TICKS.fullmatch(node.text, block.start, block.end) else block.kind
            for at, to in _parts(node.text, block):
                text = node.text[at:to]
                n_words = len(tokens(text))
                units.append(Unit(i, n_blocks, kind, text, quote.part(at, to), n_words))
            n_blocks += 1
    return units


def _facts_about(node: Node) -> str:
    """Return the author and date of a chunk's document as a record; empty if unknown."""
    if node.level or len(node.documents) != 1:
        return ""
    facts = {
        key: beginning(
            ", ".join(map(str, value)) if isinstance(value, list) else str(value), MAX_VALUE
        )
        for key in ABOUT
        if (value := node.metadata.get(key))
    }
    if facts.keys().isdisjoint(PEOPLE):
        return ""
    if "from" in facts and TITLE in facts:
        facts = {"subject": facts.pop(TITLE), **facts}
    return "; ".join(f"{key}: {value}" for key, value in facts.items())


def _parts(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """Yield the bounds of a block's sentences, or of its lines if each can be quoted alone."""
    bounds = stripped(text, block.start, block.end)
    if block.kind in UNDIVIDED:
        yield bounds
        return
    lines = [line.span() for line in re.compile(r"\S.*").finditer(text, *bounds)]
    if len(lines) > 1 and all(b - a < LINE and not text[a:b].endswith(ENDS) for a, b in lines):
        yield from lines
        return
    for at, to in bounds_in_prose(text, *bounds):
        start, end = stripped(text, at, to)
        if text[start:end].strip("> \n"):  # no empty line of a quotation
            yield start, end


def window(
    units: Sequence[Unit], best: int, taken: Set[int], *, steps: bool = False
) -> tuple[int, int]:
    """Return the first and last unit of the passage around the unit `best`.

    The passage is the whole block if it has at most 60 words, otherwise some of its sentences. One
    that depends on the sentence before has it, too, as "It is open." has what is open. If the
    passage has fewer than 30 words and is no record, neighbouring whole blocks are added. A title
    is extended by the text that follows, and a list that ends it by the items that fit. If `steps`,
    a list is whole if the passage then has at most 150 words.
    """

    def words(first: int, last: int) -> int:
        return sum(unit.n_words for unit in units[first : last + 1])

    def fits(first: int, last: int) -> bool:
        inside = range(first, last + 1)
        return (
            taken.isdisjoint(inside)
            and words(first, last) <= most
            and all(follows(units[i], units[i + 1]) for i in inside[:-1])
        )

    def beyond(i: int, step: int) -> int:
        """Return the next unit of the same block, or else the far end of the next block."""
        i += step
        if units[i].block != units[i - step].block:
            while 0 <= i + step < len(units) and units[i + step].block == units[i].block:
                i += step
        return i

    most = LONGEST
    of_block = [i for i, unit in enumerate(units) if unit.block == units[best].block]
    whole = of_block[0], of_block[-1]
    first, last = whole if fits(*whole) else (best, best)
    if first > of_block[0] and DEPENDS.match(units[first].text) and fits(first - 1, last):
        first -= 1
    grows = units[best].kind != "record"
    while grows and words(first, last) < SHORTEST:
        grows = False
        announces = units[last].kind in TITLES or units[last].text.endswith(ANNOUNCES)
        after = units[last + 1 : last + 2]
        if any(_reads_on(unit, units[best], units[last], announces) for unit in after):
            to = beyond(last, 1)
            to = to if fits(first, to) or not announces else last + 1
            last, grows = (to, True) if fits(first, to) else (last, False)
        if first > 0 and not announces and _reads_on(units[first - 1], units[best], units[best]):
            at = beyond(first, -1)
            if words(first, last) < SHORTEST and fits(at, last):
                first, grows = at, True

    def is_list(i: int) -> bool:
        """Return whether a unit and the next are items of one list."""
        pair = units[max(i, 0) : i + 2]
        return [unit.kind for unit in pair] == ["item"] * 2 and follows(*pair)

    start, end = first, last
    while steps and is_list(start - 1):
        start -= 1
    while is_list(end):
        end += 1
    most = LIST
    if steps and fits(start, end):
        return start, end
    most = LONGEST
    while last < end and fits(first, last + 1):
        last += 1
    return first, last


def _reads_on(unit: Unit, best: Unit, last: Unit, announced: bool = False) -> bool:
    """Return whether a passage around the best unit may be extended to another unit."""
    if unit.kind in (best.kind, last.kind):
        return unit.kind not in TITLES
    return unit.kind not in (NO_CONTENT if announced else UNDIVIDED)


def passage_of(
    units: Sequence[Unit], nodes: Sequence[Node], run: tuple[int, int], best: int
) -> Passage:
    """Return the passage from one unit to another that contains the unit `best`.

    The heading is left out between the metadata of a document and its text.
    """
    (first, last), node = run, nodes[units[best].node]
    lead, answers = _lead(units, first), units[best].text
    if units[best].kind == "about":
        answers = lead.strip()
        lead = answers if first == last else lead
        first += first < last
        first += first < last and units[first].kind == "heading"
    return quoted(node, units[first], units[last], lead, answers)


def quoted(node: Node, first: Unit, last: Unit, lead: str, best: str) -> Passage:
    """Return a passage of a node.

    Its title is the node's document title, or the document's id if the node has several documents.
    """
    citation = citation_of(node, first.quote, last.quote)
    title = node.document_title or citation.document
    return Passage(node.text[first.quote.at : last.quote.to], lead, best, title, citation)


def citation_of(of: Node, first: Quote, last: Quote, **others: Any) -> Citation:
    """Return the citation from one quote of a node to another, with copies in `also`.

    `others` are further fields; they replace the defaults, which are those of a verbatim quote.
    """
    pairs = zip(first.sources, last.sources, strict=False)
    spans = [a._replace(end=b.end) for a, b in pairs if a.document == b.document]
    lengths = [span.end - span.start for span in spans]  # what a copy lacks makes it longer
    known = [span.to_json() for span, n in zip(spans, lengths, strict=True) if n == lengths[0]]
    place = {**known[0], "also": known[1:]} if known else {}
    quote = of.text[first.at : last.to] * (first.verbatim and last.verbatim)
    title = "" if of.document_title in of.documents else of.document_title
    made = {"title": title, "quote": quote, "supported": bool(quote) or None, "by": "hierindex"}
    return Citation.from_json({**place, **made, **others})


def follows(unit: Unit, after: Unit) -> bool:
    """Return whether a unit directly follows another, in the node and in the document."""
    if unit.node != after.node:
        return False
    a, b = unit.quote.source, after.quote.source
    if a is None or b is None or not (unit.quote.verbatim and after.quote.verbatim):
        return a is b
    return a.document == b.document and b.start - a.end == after.quote.at - unit.quote.to


def depends(units: Sequence[Unit], nodes: Sequence[Node]) -> list[bool]:
    """Return which units are sentences of summaries that depend on one that was left out."""
    return [
        nodes[unit.node].level > 0
        and (i == 0 or units[i - 1].block != unit.block)
        and DEPENDS.match(unit.text) is not None
        for i, unit in enumerate(units)
    ]


def _lead(units: Sequence[Unit], first: int) -> str:
    """Return the text before a unit that introduces it.

    It is a table's header, the sentence that announces a list or a quotation, or a speaker.
    """
    if units[first].kind == "about":
        return f"{units[first].text}\n"
    begins = first  # of the table, the list or the paragraph
    kind, block = units[first].kind, units[first].block
    while begins and follows(units[begins - 1], units[begins]):
        before = units[begins - 1]
        if before.block != block and not (kind in LISTED and before.kind == kind):
            break
        begins -= 1
    if kind == "row" and begins < first:
        has_rule = begins + 1 < first and RULE.fullmatch(units[begins + 1].text) is not None
        is_head = has_rule or (begins > 0 and units[begins - 1].node == units[begins].node)
        head = units[begins : begins + 1 + has_rule] if is_head else ()
        return "\n".join(unit.text for unit in head)  # none if the table began in another chunk
    if kind in LISTED and begins and follows(units[begins - 1], units[begins]):
        announcing, left_out = units[begins - 1].text, "\n\u2026" if begins < first else ""
        return f"{announcing}{left_out}" if announcing.endswith(ANNOUNCES) else ""
    label = LABEL.match(units[begins].text) if begins < first else None
    return f"{label[0]} \u2026" if label else ""
