"""What `build --dry-run` says beside what the build then takes, on folders of documents.

A server on loopback writes the summaries, some 110 words each from all over the passages, and
counts tokens as LlamaIndex does. Real embedding model; vectors of the dry run are those of the
build.

Usage: python tests/benchmarks/estimate.py FOLDER [FOLDER...]
"""

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from clients import llm_of
from llama_index.core.utils import get_tokenizer
from loopback import LoopbackServer
from update import METHODS

import hierindex
from hierindex.summarize import LLMRewriter, TwoStageSummarizer
from hierindex.text.sentences import split_sentences

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
    calls = f"{'dry calls':>12}{'real':>7}{'':>7}"
    print(f"{'':<26}{calls}{'dry tokens':>12}{'real':>10}")
    for folder in folders:
        for method, kind in METHODS.items():
            with (
                tempfile.TemporaryDirectory() as uri,
                LoopbackServer(reply=written, count=lambda text: len(count(text))) as server,
            ):
                rewriter = LLMRewriter(llm_of(server, model="loopback"), concurrency=8)
                hierarchy = kind(model, summarizer=TwoStageSummarizer(rewriter))
                build = hierindex.HierarchicalIndex.build
                dry = build(folder, uri, hierarchy=hierarchy, dry_run=True).last_build.usage
                assert not server.requests
                report = build(folder, uri, hierarchy=hierarchy).last_build
            calls, tokens = report.usage.llm_calls, report.usage.prompt_tokens
            print(
                f"{Path(folder).name + ' ' + method:<26}"
                f"{dry.llm_calls:>12}{calls:>7}{dry.llm_calls / calls - 1:>7.1%}"
                f"{dry.prompt_tokens:>12,}{tokens:>10,}{dry.prompt_tokens / tokens - 1:>7.1%}",
                flush=True,
            )


if __name__ == "__main__":
    if len(sys.argv) < 2 or not all(Path(folder).is_dir() for folder in sys.argv[1:]):
        sys.exit("Usage: python tests/benchmarks/estimate.py FOLDER [FOLDER...]")
    main(sys.argv[1:])
