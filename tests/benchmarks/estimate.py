"""What `build --dry-run` says beside what the build then takes, on folders of documents.

A server on loopback writes the summaries, some 110 words each from all over the passages, and
counts tokens as LlamaIndex does. Real embedding model; vectors of the dry run are those of the
build. A quick estimate comes first; "held" says whether its ranges hold what the build had, the
nodes of every level included.

Usage: python tests/benchmarks/estimate.py FOLDER [FOLDER...]
"""

import re
import sys
import tempfile
from itertools import zip_longest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from llama_index.core.utils import get_tokenizer
from loopback import LoopbackServer

import hierindex
from hierindex.llm.client import load_llm
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.sentences import split_sentences
from hierindex.summarize.two_stage import TwoStageSummarizer

METHODS = {
    "semantic": hierindex.SemanticHierarchy,
    "document": hierindex.DocumentHierarchy,
    "raptor": hierindex.RaptorHierarchy,
}
WORDS = 110


def written(prompt: str) -> str:
    """Sentences from all over the fenced passages."""
    passages = re.search(r"(?ms)^(=== \w+ ===)$\n(.*?)\n^\1$", prompt)[2]
    sentences = [s.text for s in split_sentences(passages)]
    step = max(1, len(passages.split()) // WORDS)
    return " ".join(" ".join(sentences[::step]).split()[:WORDS]) + "."


def main(folders: list[str]) -> None:
    model = hierindex.load_embed_model()
    count = get_tokenizer()
    calls = f"{'quick calls':>14}{'dry':>7}{'real':>7}{'':>7}"
    print(f"{'':<26}{calls}{'quick prompt tokens':>20}{'dry':>10}{'real':>10}")
    for folder in folders:
        for method, kind in METHODS.items():
            with (
                tempfile.TemporaryDirectory() as uri,
                LoopbackServer(reply=written, count=lambda text: len(count(text))) as server,
            ):
                rewriter = LLMRewriter(load_llm("loopback", server.base_url), concurrency=8)
                hierarchy = kind(model, summarizer=TwoStageSummarizer(rewriter, grounding=None))
                estimate = hierindex.HierarchicalIndex.estimate
                quick = estimate(folder, uri, hierarchy=hierarchy, quick=True)
                dry = estimate(folder, uri, hierarchy=hierarchy)
                assert not server.requests
                build = hierindex.HierarchicalIndex.build
                report = build(folder, uri, hierarchy=hierarchy).last_build
            calls, tokens = report.usage.llm_calls, report.usage.prompt_tokens
            nodes = [level.nodes for level in report.statistics[1:]]
            told = [level["nodes"] for level in quick.levels[1:]]
            ranges = [(calls, quick.llm_calls), (tokens, quick.prompt_tokens)]
            ranges += zip_longest(nodes, told, fillvalue=0)
            held = "held" if all(low <= n <= high for n, (low, high) in ranges) else "missed"
            print(
                f"{Path(folder).name + ' ' + method:<26}"
                f"{'{} to {}'.format(*quick.llm_calls):>14}{dry.llm_calls:>7}{calls:>7}"
                f"{dry.llm_calls / calls - 1:>7.1%}"
                f"{'{:,} to {:,}'.format(*quick.prompt_tokens):>20}{dry.prompt_tokens:>10,}"
                f"{tokens:>10,}{dry.prompt_tokens / tokens - 1:>7.1%}{held:>8}",
                flush=True,
            )


if __name__ == "__main__":
    if len(sys.argv) < 2 or not all(Path(folder).is_dir() for folder in sys.argv[1:]):
        sys.exit("Usage: python tests/benchmarks/estimate.py FOLDER [FOLDER...]")
    main(sys.argv[1:])
