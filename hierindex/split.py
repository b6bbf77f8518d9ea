"""Documents to chunks that know where they stand."""

import re
from collections.abc import Sequence

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.node_parser import NodeParser, SentenceSplitter
from llama_index.core.node_parser.text.utils import split_by_sentence_tokenizer
from llama_index.core.schema import BaseNode, Document, MetadataMode, TextNode

from hierindex.embed.embedder import Embedder
from hierindex.embed.load import load_embed_model
from hierindex.progress import Progress, silent
from hierindex.record import PAGE, PAGE_BREAK, PAGES

CHUNK_TOKENS = 256  # of models whose window is not known
STRETCH, NEAR_END = 100_000, 5_000  # characters
SENTENCE_END = re.compile(r"[.!?]\s+(?=\S)")
SHORT = 8  # characters
ENOUGH = 16  # characters for a token; most texts have some four


class PlacedSentenceSplitter(SentenceSplitter):
    """LlamaIndex's sentence splitter without overlap, whose chunks know exactly where they stand.

    LlamaIndex looks for a chunk after the first character of the one before, for chunks may
    overlap; where a document repeats itself, that is too early. And the chunks of a node that
    is itself part of a document get their place in the node.
    """

    _sizes: dict[str, int] = PrivateAttr(default_factory=dict)  # of short texts, in tokens

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises it."""
        return "PlacedSentenceSplitter"

    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
    ) -> list[BaseNode]:
        wholes = [parent_doc_map.get(node.ref_doc_id or "") for node in nodes]
        nodes = super()._postprocess_parsed_nodes(nodes, parent_doc_map)
        ends = dict.fromkeys(parent_doc_map, 0)
        for node, whole in zip(nodes, wholes, strict=True):
            if whole is None or not isinstance(node, TextNode):
                continue
            at = whole.get_content(MetadataMode.NONE).find(node.text, ends[whole.node_id])
            start = _start(whole)
            if at < 0 or start is None:
                node.start_char_idx = node.end_char_idx = None
                continue
            ends[whole.node_id] = at + len(node.text)
            node.start_char_idx, node.end_char_idx = start + at, start + ends[whole.node_id]
            if whole.source_node is None:
                _number([node], whole)
        return nodes

    def _get_metadata_str(self, node: BaseNode) -> str:
        """What is embedded with a chunk's text: another file name cuts no other chunks."""
        return node.get_metadata_str(mode=MetadataMode.EMBED)

    def _token_size(self, text: str) -> int:
        """Tokens of a text, or of so much of it that it is too long for a chunk anyway.

        LlamaIndex asks for those of whole files first, and so would count every token twice;
        and for those of each full stop, where a text has a thousand in a row. At least one:
        what ends a chunk and counts nothing, as an accent alone, it would repeat in the next.
        """
        if len(text) <= SHORT:
            if text not in self._sizes:
                self._sizes[text] = max(1, super()._token_size(text))
            return self._sizes[text]
        if len(text) > (enough := ENOUGH * self.chunk_size):
            n_tokens = super()._token_size(text[: max(0, text.rfind(" ", 0, enough))])
            if n_tokens > self.chunk_size:
                return n_tokens
        return max(1, super()._token_size(text))


def _start(whole: BaseNode) -> int | None:
    """Where a splitter's input stands in its document; None where it is not known."""
    if whole.source_node is None:
        return 0
    return getattr(whole, "start_char_idx", None)


def sentence_splitter(
    embed_model: BaseEmbedding | None = None, chunk_size: int | None = None
) -> SentenceSplitter:
    """LlamaIndex's sentence splitter, with chunks that the embedding model reads whole.

    Parameters
    ----------
    embed_model : BaseEmbedding, optional
        Its own tokens are counted; the bundled model by default.
    chunk_size : int, optional
        Tokens of a chunk, its metadata included; by default what the model's window holds.

    Returns
    -------
    SentenceSplitter
        Without overlap, so that no sentence is summarised twice.
    """
    embedder = Embedder(load_embed_model() if embed_model is None else embed_model)
    known = embedder.window is not None
    return PlacedSentenceSplitter(  # type: ignore[call-arg]
        chunk_size=chunk_size or (embedder.room if known else CHUNK_TOKENS),
        chunk_overlap=0,
        tokenizer=embedder.tokens_of,
        chunking_tokenizer_fn=split_stretches,
    )


def split_stretches(text: str) -> list[str]:
    """LlamaIndex's sentences of a text, of a stretch at a time.

    LlamaIndex hands whole files to NLTK, which gives up with a TimeoutError after five
    seconds: on a megabyte of short sentences, for one.

    >>> split_stretches("It is so. It was.")
    ['It is so. ', 'It was.']
    """
    split = split_by_sentence_tokenizer()
    sentences, at = [], 0
    while at < len(text):
        end = len(text)
        if end - at > STRETCH:
            near = at + STRETCH - NEAR_END, at + STRETCH
            ends = [match.end() for match in SENTENCE_END.finditer(text, *near)]
            end = ends[-1] if ends else near[1]
        sentences += split(text[at:end]) or [text[at:end]]  # none of blanks
        at = end
    return sentences


def split_documents(
    documents: Sequence[Document], splitter: NodeParser, *, progress: Progress = silent
) -> list[BaseNode]:
    """Chunks of documents; those of a document with pages know their first page."""
    chunks: list[BaseNode] = []
    for i, document in enumerate(documents, start=1):
        found = splitter([document])
        _number(found, document)
        chunks += found
        progress("split", i, len(documents))
    return chunks


def _number(chunks: Sequence[BaseNode], document: BaseNode) -> None:
    """Give each chunk of a document with pages its first page, counted from 1."""
    if PAGES not in document.metadata:
        return
    text = document.get_content(MetadataMode.NONE)
    for chunk in chunks:
        if isinstance(chunk, TextNode) and chunk.start_char_idx is not None:
            chunk.metadata[PAGE] = 1 + text.count(PAGE_BREAK, 0, chunk.start_char_idx)
            if PAGE not in chunk.excluded_embed_metadata_keys:
                chunk.excluded_embed_metadata_keys = [*chunk.excluded_embed_metadata_keys, PAGE]
