"""Splitting of documents into chunks with exact character offsets."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from llama_index.core.node_parser import NodeParser, SentenceSplitter
from llama_index.core.node_parser.node_utils import build_nodes_from_splits
from llama_index.core.schema import BaseNode, Document, MetadataMode, TextNode

from hierindex.models.embedder import Embedder, EmbedLike
from hierindex.models.load import load_encoder
from hierindex.node import (
    EMBED_HIDDEN,
    LLM_HIDDEN,
    PAGE,
    SECTION,
    TITLE,
    Heading,
    Maker,
    Node,
    for_chunks,
    shared_section,
)
from hierindex.progress import Progress, silent
from hierindex.read.sections import Places, Sections, headings_of, split_at_headings
from hierindex.text.sentences import bounds_in_prose
from hierindex.text.words import LANGUAGE
from hierindex.text_node import check_text_node, chunk_of, from_text_node, to_text_node

CHUNK_TOKENS = 256  # if the window of the model is unknown
PREFIX = 8  # titles are embedded with a chunk if they take at most an eighth of it
DocumentLike = TypeVar("DocumentLike", bound=BaseNode)
ENOUGH = 6  # characters per token; most texts have about four
ROW = re.compile(r"^.*\|.*\n?", re.MULTILINE)  # of a table
LINE = re.compile(r".*\n|.+")


class PlacedSentenceSplitter(SentenceSplitter):
    """A LlamaIndex sentence splitter that splits at headings, without overlap, with exact offsets.

    A chunk ends where a section of the document ends. Only a section shorter than a quarter of
    `chunk_size` shares its chunk with the following sections below the same heading. Within a
    section, LlamaIndex makes chunks of the sentences that `chunking_tokenizer_fn` finds.

    LlamaIndex allows for overlap when it locates chunks, so it locates repeated text too early. If
    a document is split in parts, it counts offsets from the start of the part.
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
        """Split each part between headings by itself."""
        found: list[BaseNode] = []
        for node in nodes:
            bare, text = _bare(node), node.get_content(MetadataMode.NONE)
            headings = headings_of(node) if node.source_node is None else []
            chunks = self._chunks_of(text, headings, bare)
            found += build_nodes_from_splits(chunks, bare, id_func=self.id_func)
        return found

    def _chunks_of(self, text: str, headings: Sequence[Heading], bare: BaseNode) -> list[str]:
        """Split each part between headings, and leave room in its chunks for titles above them."""
        sections, chunks, start = Sections(text, headings), list[str](), 0
        for part in split_at_headings(text, headings, self._is_short):
            end = start + len(part)
            paths = sections.paths(start, end)
            paths += [*map(shared_section, pairwise(paths))]  # of chunks that cross a heading
            shown = [bare, *(self._below(path, bare) for path in dict.fromkeys(paths))]
            longest = max(map(self._get_metadata_str, shown), key=len)
            chunks += self.split_text_metadata_aware(part, longest)
            start = end
        return chunks

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
        parents = [parent_doc_map.get(node.ref_doc_id or "") for node in nodes]
        bare = {name: _bare(each) for name, each in parent_doc_map.items()}
        nodes = super()._postprocess_parsed_nodes(nodes, bare)
        whole = (each for each in parent_doc_map.values() if each.source_node is None)
        places = {document.node_id: Places(document) for document in whole}
        ends, chunks = dict.fromkeys(parent_doc_map, 0), list[Node]()
        for node, parent in zip(nodes, parents, strict=True):
            if parent is not None and isinstance(node, TextNode):
                name, text = parent.node_id, parent.get_content(MetadataMode.NONE)
                at = text.find(node.text, ends[name])
                # Offset of the splitter's input in its document.
                start = 0 if name in places else getattr(parent, "start_char_idx", None)
                if at < 0 or start is None:
                    node.start_char_idx = node.end_char_idx = None
                else:
                    ends[name] = at + len(node.text)
                    node.start_char_idx, node.end_char_idx = start + at, start + ends[name]
            chunks.append(from_text_node(node))
            if parent is not None and parent.node_id in places:
                _place(chunks[-1], places[parent.node_id], self.is_prefix)
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
    """Return a sentence splitter whose chunks fit the embedding model's window.

    Parameters
    ----------
    embed_model : BaseEmbedding or callable, optional
        Model whose tokenizer counts tokens; the bundled model by default.
    chunk_size : int, optional
        Maximum tokens of a chunk, embedded metadata included. By default as many as fit the model's
        window with its special tokens, or 256 if the window is unknown.

    Returns
    -------
    SentenceSplitter
        Chunks end at headings. They do not overlap, so that no sentence is summarised twice.
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
        check_text_node(document)
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
