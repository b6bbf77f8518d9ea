from .embed import load_embed_model as load_embed_model
from .errors import FallbackWarning as FallbackWarning
from .errors import HierindexError as HierindexError
from .errors import IndexNotFoundError as IndexNotFoundError
from .errors import InputError as InputError
from .errors import LevelError as LevelError
from .errors import ModelError as ModelError
from .errors import SourceError as SourceError
from .errors import SummaryError as SummaryError
from .errors import WindowWarning as WindowWarning
from .hierarchy.transforms import DocumentHierarchy as DocumentHierarchy
from .hierarchy.transforms import RaptorHierarchy as RaptorHierarchy
from .hierarchy.transforms import SemanticHierarchy as SemanticHierarchy
from .index import HierarchicalIndex as HierarchicalIndex
from .record import NodeRecord as NodeRecord
from .record import Span as Span
from .respond.extractive import ExtractiveSynthesizer as ExtractiveSynthesizer
from .retrieve.retriever import HierarchyRetriever as HierarchyRetriever
from .split import sentence_splitter as sentence_splitter
from .store.lance import HierarchyStore as HierarchyStore
from .summarize.bert import BertExtractor as BertExtractor
from .summarize.extractive import ExtractiveSummarizer as ExtractiveSummarizer
from .summarize.extractive import SalientSentences as SalientSentences
from .summarize.llm import LLMRewriter as LLMRewriter
from .summarize.seq2seq import Seq2SeqRewriter as Seq2SeqRewriter
from .summarize.two_stage import TwoStageSummarizer as TwoStageSummarizer

__version__: str
