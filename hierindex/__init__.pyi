from .core.breakpoints import Cosine as Cosine
from .core.breakpoints import Gradient as Gradient
from .core.breakpoints import Interquartile as Interquartile
from .core.breakpoints import Percentile as Percentile
from .core.breakpoints import StandardDeviation as StandardDeviation
from .core.breakpoints import TargetSize as TargetSize
from .core.mixture import Mixture as Mixture
from .core.optimal import Optimal as Optimal
from .embed.load import load_embed_model as load_embed_model
from .embed.onnx import OnnxEmbedding as OnnxEmbedding
from .errors import FallbackWarning as FallbackWarning
from .errors import FormatError as FormatError
from .errors import HierindexError as HierindexError
from .errors import IndexNotFoundError as IndexNotFoundError
from .errors import InputError as InputError
from .errors import LevelError as LevelError
from .errors import LimitError as LimitError
from .errors import ModelError as ModelError
from .errors import SourceError as SourceError
from .errors import SummaryError as SummaryError
from .errors import WindowWarning as WindowWarning
from .estimate import Estimate as Estimate
from .export.document_summary import (
    persist_document_summary_index as persist_document_summary_index,
)
from .export.document_summary import to_document_summary_index as to_document_summary_index
from .export.langchain import to_langchain_documents as to_langchain_documents
from .export.langchain import to_langchain_retriever as to_langchain_retriever
from .export.parquet import to_parquet as to_parquet
from .export.tree import to_json as to_json
from .export.tree import to_tree as to_tree
from .hierarchy.pooled import PooledEmbedding as PooledEmbedding
from .hierarchy.transforms import DocumentHierarchy as DocumentHierarchy
from .hierarchy.transforms import RaptorHierarchy as RaptorHierarchy
from .hierarchy.transforms import SemanticHierarchy as SemanticHierarchy
from .index import HierarchicalIndex as HierarchicalIndex
from .read import FileReader as FileReader
from .read import read_documents as read_documents
from .record import NodeRecord as NodeRecord
from .record import Span as Span
from .respond.extractive import ExtractiveSynthesizer as ExtractiveSynthesizer
from .respond.tree import BoundedTreeSummarize as BoundedTreeSummarize
from .retrieve.found import Found as Found
from .retrieve.retriever import HierarchyRetriever as HierarchyRetriever
from .split import sentence_splitter as sentence_splitter
from .store.lance import HierarchyStore as HierarchyStore
from .summarize.bert import BertExtractor as BertExtractor
from .summarize.extractive import ExtractiveSummarizer as ExtractiveSummarizer
from .summarize.extractive import SalientSentences as SalientSentences
from .summarize.grounding import EmbeddingGrounding as EmbeddingGrounding
from .summarize.llm import LLMRewriter as LLMRewriter
from .summarize.nli import NliGrounding as NliGrounding
from .summarize.seq2seq import Seq2SeqRewriter as Seq2SeqRewriter
from .summarize.two_stage import TwoStageSummarizer as TwoStageSummarizer
from .summarize.vectors import InputEmbeddings as InputEmbeddings

__version__: str
