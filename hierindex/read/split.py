"""Splitting of documents into chunks, with their offsets, pages and sections."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, TypeVar

from llama_index.core.node_parser import NodeParser, SentenceSplitter
from llama_index.core.node_parser.node_utils import build_nodes_from_splits
from llama_index.core.schema import BaseNode, Document, MetadataMode

from hierindex.models.embedder import Embedder, EmbedLike
from hierindex.models.load import load_encoder
from hierindex.node import (
    EMBED_HIDDEN,
    LLM_HIDDEN,
    PAGE,
    PAGE_BREAK,
    PAGE_LABELS,
    PAGES,
    SECTION,
    TITLE,
    TITLES_BETWEEN,
    Heading,
    Maker,
    Node,
    Quote,
    Span,
    for_chunks,
    headings_in,
    page_in,
    shared_section,
)
from hierindex.progress import Progress, silent
from hierindex.text.sentences import bounds_in_prose
from hierindex.text.words import LANGUAGE, known_language
from hierindex.text_node import check_keys, chunk_of, from_text_node, to_text_node

CHUNK_TOKENS = 256  # if the window of the model is unknown
OFFSETS = "start_char_idx", "end_char_idx"
PREFIX = 8  # titles are embedded with a chunk if they take at most an eighth of it
DocumentLike = TypeVar("DocumentLike", bound=BaseNode)
ENOUGH = 6  # characters per token; most texts have about four
ROW = re.compile(r"^.*\|.*\n?", re.MULTILINE)  # of a table
LINE = re.compile(r".*\n|.+")
MAX_STEP = 100  # characters of a title in a path
MAX_PATH = 300  # characters; each chunk and each of its quotes store the path
BEGINNING = 10_000  # characters of which a document's language is found
WORDY = re.compile(r"[^\W_].*")  # a line with a letter or digit, from there on


def headings_of(document: BaseNode) -> list[Heading]:
    """Return the headings in a document's metadata that are inside its text, sorted by start."""
    end = len(document.get_content(MetadataMode.NONE))
    inside = (h for h in headings_in(document.metadata) if 0 <= h.start < end)
    return sorted(inside, key=lambda heading: heading.start)


def split_at_headings(
    text: str, headings: Sequence[Heading], is_short: Callable[[str], bool]
) -> Iterator[str]:
    r"""Split a text before headings, so that each part begins with a heading.

    Joined, the parts are the text. A short part also includes the following sections below the same
    heading.

    >>> headings = [Heading(1, "A", 0), Heading(2, "B", 4), Heading(1, "C", 16)]
    >>> list(split_at_headings("# A\n## B\nText.\n\n# C\nMore.", headings, lambda t: len(t) < 9))
    ['# A\n## B\nText.\n\n', '# C\nMore.']
    """
    start, level = 0, 0  # 0: text before the first heading, which all sections may continue
    for heading in headings:
        part = text[start : heading.start]
        if not part.strip():
            level = heading.level
        elif heading.level < level or not is_short(part):
            yield part
            start, level = heading.start, heading.level
    yield text[start:]


class Sections:
    """The sections of a document, looked up by character offset.

    Parameters
    ----------
    text : str
    headings : sequence of Heading
    """

    def __init__(self, text: str, headings: Sequence[Heading]) -> None:
        starts = [heading.start for heading in headings]
        places = [*zip(_paths(headings), (heading.anchor for heading in headings), strict=True)]
        for i in reversed(range(len(headings) - 1)):
            lines = islice(WORDY.finditer(text, starts[i], starts[i + 1]), 2)
            if headings[i].level < headings[i + 1].level and len(list(lines)) < 2:
                places[i] = places[i + 1]  # a heading without text of its own
        first = [i for i in range(len(places)) if not i or places[i] != places[i - 1]]
        self._starts = [starts[i] for i in first]
        self._places = [places[i] for i in first]  # path and anchor

    def at(self, start: int) -> tuple[str, str]:
        """Return the path of titles above an offset and the nearest anchor before it."""
        i = bisect_right(self._starts, start)
        return self._places[i - 1] if i else ("", "")

    def starts(self, start: int, end: int) -> list[int]:
        """Return the starts of the sections inside `text[start:end]`, except at `start`."""
        return self._starts[bisect_right(self._starts, start) : bisect_left(self._starts, end)]

    def paths(self, start: int, end: int) -> list[str]:
        """Return the title paths of all sections of `text[start:end]`.

        Text before the first heading is in no section. It has an empty path, which is returned only
        if there is no other.
        """
        first = max(0, bisect_right(self._starts, start) - 1)
        return [path for path, _ in self._places[first : bisect_left(self._starts, end)]]


def _paths(headings: Sequence[Heading]) -> Iterator[str]:
    """Yield the path of each heading: the titles above it and its own, joined."""
    above: list[Heading] = []
    for heading in headings:
        above = [*(each for each in above if each.level < heading.level), heading]
        path = ""
        for each in above:
            title = each.title[:MAX_STEP].replace(TITLES_BETWEEN, " > ")
            longer = f"{path}{TITLES_BETWEEN}{title}" if path else title
            if len(longer) > MAX_PATH:
                break
            path = longer
        yield path


class Places:
    """The pages and sections of a document, looked up by character offset, and its language.

    Parameters
    ----------
    document : BaseNode
        Document with the metadata written by readers: pages, their labels, and headings.

    Attributes
    ----------
    language : str
        Code of the language; "" if it is unknown, or already in the metadata.
    """

    def __init__(self, document: BaseNode) -> None:
        text, metadata = document.get_content(MetadataMode.NONE), document.metadata
        self.sections: Sections = Sections(
            text, [] if SECTION in metadata else headings_of(document)
        )
        self._document, self._section = document.node_id, metadata.get(SECTION)
        breaks = [match.start() for match in re.finditer(PAGE_BREAK, text)]
        self.is_paged = PAGE not in metadata and metadata.get(PAGES) == 1 + len(breaks)
        self._page, self._label = (1, "") if self.is_paged else page_in(metadata)
        labels = metadata.get(PAGE_LABELS) if self.is_paged else None
        self._labels = labels if isinstance(labels, list) else []
        self.language: str = "" if LANGUAGE in metadata else known_language(text[:BEGINNING])
        self._breaks = breaks if self.is_paged or isinstance(metadata.get(PAGE), int) else []

    def page(self, start: int) -> int | None:
        """Return the page at an offset, or None if unknown."""
        return None if self._page is None else self._page + bisect_left(self._breaks, start)

    def span(self, start: int, end: int) -> Span:
        """Return the span of a passage, with the page, section and anchor of its start."""
        page, label = self.page(start), self._label
        if page is not None and self._labels[page - 1 : page] not in ([], [str(page)]):
            label = str(self._labels[page - 1])
        section, anchor = self.sections.at(start)
        if isinstance(self._section, str):
            section = self._section
        return Span(self._document, start, end, page, section, label, anchor)

    def quotes(self, text: str, start: int) -> tuple[Quote, ...]:
        """Return the quotes of a chunk: one for each run of text on one page and in one section.

        `start` is the offset of the chunk's text in the document.
        """
        end = start + len(text)
        inside = slice(bisect_left(self._breaks, start), bisect_left(self._breaks, end))
        cuts = [(at, at + 1) for at in self._breaks[inside]]  # without the page break
        cuts += [(at, at) for at in self.sections.starts(start, end)]
        starts = [start, *(after for _, after in sorted(cuts))]
        ends = [*(before for before, _ in sorted(cuts)), end]
        return tuple(
            Quote(at - start, to - start, self.span(at, to))
            for at, to in zip(starts, ends, strict=True)
            if text[at - start : to - start].strip()
        )


class PlacedSentenceSplitter(SentenceSplitter):
    """A LlamaIndex sentence splitter that splits at headings, without overlap, with exact offsets.

    A chunk ends where a section of the document ends. Only a section shorter than a quarter of
    `chunk_size` shares its chunk with the following sections below the same heading. Within a
    section, LlamaIndex makes chunks of the sentences that `chunking_tokenizer_fn` finds.

    Offsets are computed here, because LlamaIndex gets two cases wrong. It expects chunks to
    overlap, so it may find a repeated text too early. And if a document is split in parts, it
    counts from the start of the part.
    """

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises it."""
        return "PlacedSentenceSplitter"

    def _parse_nodes(
        self,
        nodes: Sequence[BaseNode],
        show_progress: bool = False,
        **kwargs: Any,
    ) -> list[BaseNode]:
        """Split each part between headings, and leave room in its chunks for titles above them."""
        found: list[BaseNode] = []
        for node in nodes:
            bare, text = _bare(node), node.get_content(MetadataMode.NONE)
            headings = headings_of(node) if node.source_node is None else []
            sections, chunks, start = Sections(text, headings), list[str](), 0
            for part in split_at_headings(text, headings, self._is_short):
                paths = sections.paths(start, start + len(part))
                paths += [*map(shared_section, pairwise(paths))]  # of chunks that cross a heading
                shown = [bare, *(self._below(path, bare) for path in dict.fromkeys(paths))]
                longest = max(map(self._get_metadata_str, shown), key=len)
                chunks += self.split_text_metadata_aware(part, longest)
                start += len(part)
            found += build_nodes_from_splits(chunks, bare, id_func=self.id_func)
        return found

    def _below(self, section: str, bare: BaseNode) -> BaseNode:
        """Return a document with the metadata that its chunks in a section embed."""
        if not section or SECTION in bare.metadata:
            return bare
        hidden = bare.excluded_embed_metadata_keys
        metadata, hidden = _in_section(bare.metadata, hidden, section, self.is_prefix)
        update = {"metadata": metadata, "excluded_embed_metadata_keys": hidden}
        return bare.model_copy(update=update)

    def is_prefix(self, titles: str) -> bool:
        """Return whether titles are short enough to be embedded with the chunks below them."""
        return self._token_size(titles) <= self.chunk_size // PREFIX

    def chunks_of(self, document: Document) -> list[Node]:
        """Return the chunks of a document."""
        return self._placed(self._parse_nodes([document]), {document.node_id: document})

    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
    ) -> list[BaseNode]:
        return [*map(to_text_node, self._placed(nodes, parent_doc_map))]

    def _placed(self, nodes: list[BaseNode], parent_doc_map: Mapping[str, Document]) -> list[Node]:
        """Return chunks with their offsets; chunks of whole documents get page and section, too."""
        parents = [parent_doc_map[node.ref_doc_id or ""] for node in nodes]
        bare = {name: _bare(each) for name, each in parent_doc_map.items()}
        nodes = super()._postprocess_parsed_nodes(nodes, bare)
        whole = (each for each in parent_doc_map.values() if each.source_node is None)
        places = {document.node_id: Places(document) for document in whole}
        ends, chunks = dict.fromkeys(parent_doc_map, 0), list[Node]()
        for node, parent in zip(nodes, parents, strict=True):
            name, chunk = parent.node_id, from_text_node(node)
            at = parent.get_content(MetadataMode.NONE).find(chunk.text, ends[name])
            ends[name] = at + len(chunk.text)
            # Offset of the splitter's input in its document.
            start = 0 if name in places else getattr(parent, "start_char_idx", None)
            offsets = (None, None) if start is None else (start + at, start + ends[name])
            chunk.others = {**chunk.others, **dict(zip(OFFSETS, offsets, strict=True))}
            if name in places:
                _place(chunk, places[name], self.is_prefix)
            chunks.append(chunk)
        return chunks

    def _is_short(self, text: str) -> bool:
        """Return whether a text has less than a quarter of a chunk's tokens."""
        shortest = self.chunk_size // 4
        return len(text) < ENOUGH * shortest and self._token_size(text) < shortest

    def _get_metadata_str(self, node: BaseNode) -> str:
        """Return the embedded metadata, so that the file name does not influence the chunks."""
        return node.get_metadata_str(mode=MetadataMode.EMBED)

    def _token_size(self, text: str) -> int:
        """Count the tokens of a text, at least 1.

        LlamaIndex repeats a trailing text of 0 tokens in the next chunk.
        """
        return max(1, super()._token_size(text))


def sentence_splitter(
    embed_model: EmbedLike | None = None, chunk_size: int | None = None
) -> SentenceSplitter:
    """Return a sentence splitter whose chunks by default fit the embedding model's window.

    Parameters
    ----------
    embed_model : BaseEmbedding or callable, optional
        Model whose tokenizer counts tokens; the bundled model by default.
    chunk_size : int, optional
        Maximum number of tokens in a chunk, embedded metadata included. By default as many as fit
        the model's window together with its special tokens, or 256 if the window is unknown.

    Returns
    -------
    SentenceSplitter
        Chunks end at headings, except that several short sections may share a chunk. Chunks do not
        overlap, so that no sentence is summarised twice.
    """
    embedder = Embedder(load_encoder() if embed_model is None else embed_model)
    known = embedder.window is not None
    return PlacedSentenceSplitter(  # type: ignore[call-arg]
        chunk_size=chunk_size or (embedder.room if known else CHUNK_TOKENS),
        chunk_overlap=0,
        tokenizer=embedder.tokens_of,
        chunking_tokenizer_fn=split_stretches,
    )


def split_documents(
    documents: Sequence[Document], splitter: NodeParser, *, progress: Progress = silent
) -> list[Node]:
    """Split documents into chunks, with their first pages and their sections as metadata.

    Only the splitter of `sentence_splitter` ends chunks at section ends.

    Raises
    ------
    InputError
        If a document cannot be written, see `row_of`; names the document.
    """
    chunks: list[Node] = []
    for i, document in enumerate(documents):
        progress("split", i, len(documents))
        check_keys(document)
        if isinstance(splitter, PlacedSentenceSplitter):
            chunks += splitter.chunks_of(document)
        else:
            found, places = [*map(chunk_of, splitter([_bare(document)]))], Places(document)
            for chunk in found:
                _place(chunk, places)
            chunks += found
    progress("split", len(documents), len(documents))
    return chunks


def _bare(document: DocumentLike) -> DocumentLike:
    """Return a copy of a document with the metadata of its chunks."""
    return document.model_copy(update={"metadata": for_chunks(document.metadata)})


def _place(
    chunk: Node, places: Places, is_prefix: Callable[[str], bool] = lambda titles: False
) -> None:
    """Give a chunk its first page, its section, and the quotes that cite its parts."""
    if (start := chunk.others.get("start_char_idx")) is None:
        return
    chunk.quotes, chunk.maker = places.quotes(chunk.text, start), Maker()
    embed_hidden, llm_hidden = (chunk.others.get(key, []) for key in (EMBED_HIDDEN, LLM_HIDDEN))
    if places.language:
        chunk.metadata[LANGUAGE] = places.language
        embed_hidden, llm_hidden = (_with(LANGUAGE, keys) for keys in (embed_hidden, llm_hidden))
    if places.is_paged:
        chunk.metadata[PAGE] = places.page(start)
        embed_hidden = _with(PAGE, embed_hidden)
    paths = places.sections.paths(start, start + len(chunk.text))
    if section := shared_section(paths):
        chunk.metadata, embed_hidden = _in_section(chunk.metadata, embed_hidden, section, is_prefix)
    hidden = {EMBED_HIDDEN: embed_hidden, LLM_HIDDEN: _with(SECTION, llm_hidden)}
    chunk.others = {**chunk.others, **hidden}


def _in_section(
    metadata: dict[str, Any], hidden: Sequence[str], section: str, is_prefix: Callable[[str], bool]
) -> tuple[dict[str, Any], list[str]]:
    """Return metadata in a section, and the keys that are not embedded, given those outside.

    The title of the document and the section are embedded if they are short; the title is left
    out if the section begins with it. tests/benchmarks/structure.py measures what this finds.
    """
    metadata = {**metadata, SECTION: section}
    title = str(metadata.get(TITLE, ""))
    shown = [SECTION] if section.startswith(title) else [TITLE, SECTION]
    if is_prefix(" ".join(str(metadata[key]) for key in shown)):
        return metadata, [key for key in hidden if key not in shown]
    return metadata, _with(SECTION, hidden)


def _with(key: str, keys: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*keys, key]))


def split_stretches(text: str) -> list[str]:
    r"""Split a text into sentences and table rows; a single sentence or row is split into lines.

    Joined, the parts are the text.

    >>> split_stretches("It is so. It was.\n| a. | B |")
    ['It is so. ', 'It was.\n', '| a. | B |']
    """
    parts, at = list[str](), 0
    for row in ROW.finditer(text):
        parts += _sentences(text[at : row.start()])
        parts.append(row.group())
        at = row.end()
    parts += _sentences(text[at:])
    if parts == [text]:  # too long for a chunk
        # Not at form feeds: tokenizers drop them and join the words beside them.
        return _sentences(text) if "|" in text else LINE.findall(text)
    return parts


def _sentences(text: str) -> list[str]:
    """Cut a text at the starts of its sentences, except the first."""
    # As one paragraph: cuts before the turns of meetings found less (qmsum).
    starts = [at for at, _ in bounds_in_prose(text, 0, len(text))][1:]
    return [text[at:to] for at, to in pairwise([0, *starts, len(text)]) if at < to]
