"""Documents to chunks that know where they stand."""

from collections.abc import Sequence

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.node_parser import NodeParser, SentenceSplitter
from llama_index.core.schema import BaseNode, Document, MetadataMode, TextNode

from hierindex.embed import Embedder, load_embed_model
from hierindex.progress import Progress, silent
from hierindex.record import PAGE, PAGE_BREAK, PAGES

CHUNK_TOKENS = 256  # of models whose window is not known


class PlacedSentenceSplitter(SentenceSplitter):
    """LlamaIndex's sentence splitter without overlap, whose chunks know exactly where they stand.

    LlamaIndex looks for a chunk after the first character of the one before, for chunks may
    overlap; where a document repeats itself, that is too early.
    """

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises it."""
        return "PlacedSentenceSplitter"

    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
    ) -> list[BaseNode]:
        nodes = super()._postprocess_parsed_nodes(nodes, parent_doc_map)
        ends = dict.fromkeys(parent_doc_map, 0)
        for node in nodes:
            document = parent_doc_map.get(node.ref_doc_id or "")
            if document is None or not isinstance(node, TextNode):
                continue
            start = document.get_content(MetadataMode.NONE).find(node.text, ends[document.node_id])
            if start >= 0:
                ends[document.node_id] = start + len(node.text)
                node.start_char_idx, node.end_char_idx = start, ends[document.node_id]
        return nodes


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
    )


def split_documents(
    documents: Sequence[Document], splitter: NodeParser, *, progress: Progress = silent
) -> list[BaseNode]:
    """Chunks of documents; those of a document with pages know their first page."""
    chunks: list[BaseNode] = []
    for i, document in enumerate(documents, start=1):
        found = splitter([document])
        if PAGES in document.metadata:
            _number(found, document.text)
        chunks += found
        progress("split", i, len(documents))
    return chunks


def _number(chunks: Sequence[BaseNode], text: str) -> None:
    """Give each chunk its first page, counted from 1."""
    for chunk in chunks:
        if isinstance(chunk, TextNode) and chunk.start_char_idx is not None:
            chunk.metadata[PAGE] = 1 + text.count(PAGE_BREAK, 0, chunk.start_char_idx)
            chunk.excluded_embed_metadata_keys = [*chunk.excluded_embed_metadata_keys, PAGE]
