"""What one edit costs, beside the build that it saves.

Builds an index of a folder by each method, without a tenth of its files. Then changes one
paragraph of a file and updates, for ten files; then adds the tenth and updates. Prints the
summaries that were written and the seconds, each also as a share of the build; of the ten edits,
the mean and the most.

Usage: python tests/benchmarks/update.py FOLDER [METHOD...]   (semantic, raptor and document)
"""

import shutil
import sys
import time
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from llama_index.core.embeddings import BaseEmbedding

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    RaptorHierarchy,
    SemanticHierarchy,
    load_embed_model,
)
from hierindex.summarize import ExtractiveSummarizer

Hierarchy = SemanticHierarchy | RaptorHierarchy | DocumentHierarchy
METHODS = {kind.method: kind for kind in (SemanticHierarchy, RaptorHierarchy, DocumentHierarchy)}
N_EDITS = 10
ADDED = "The committee met again on Tuesday, and nobody could say where the red ledger had gone."


class Counting(ExtractiveSummarizer):
    """Counts the summaries that it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.n_written = 0

    def summarize(self, groups, budget, resources=None):
        self.n_written += len(groups)
        return super().summarize(groups, budget, resources)


def measured(work, hierarchy: Hierarchy) -> tuple[HierarchicalIndex, int, float]:
    counting = hierarchy.summarizer
    before, start = counting.n_written, time.perf_counter()
    index = work()
    return index, counting.n_written - before, time.perf_counter() - start


def main(folder: str, *methods: str) -> None:
    model: BaseEmbedding = load_embed_model()
    model.get_text_embedding("loaded")
    files = sorted(file for file in Path(folder).rglob("*") if file.is_file())
    for method in methods or METHODS:
        with TemporaryDirectory() as temporary:
            measure(files, METHODS[method](model, Counting()), Path(temporary))


def measure(files: list[Path], hierarchy: Hierarchy, folder: Path) -> None:
    texts, uri = folder / "texts", folder / "index"
    texts.mkdir()
    rest = files[9::10]
    first = [file for file in files if file not in rest]
    for file in first:
        shutil.copy(file, texts)
    index, n_built, seconds = measured(
        lambda: HierarchicalIndex.build(texts, uri, hierarchy=hierarchy), hierarchy
    )
    print(f"{hierarchy.method}: {len(first)} files, {n_built} summaries, {seconds:.1f} s")
    shares, times = [], []
    for file in first[:: len(first) // N_EDITS][:N_EDITS]:
        change_a_paragraph(texts / file.name)
        _, n_written, spent = measured(lambda: index.update(hierarchy=hierarchy), hierarchy)
        shares.append(n_written / n_built)
        times.append(spent / seconds)
    print(
        f"  one paragraph: summaries {fmean(shares):.1%}, at most {max(shares):.1%}; seconds "
        f"{fmean(times):.1%}, at most {max(times):.1%} ({max(times) * seconds:.2f} s)",
        flush=True,
    )
    for file in rest:
        shutil.copy(file, texts)
    _, n_written, spent = measured(lambda: index.update(hierarchy=hierarchy), hierarchy)
    print(
        f"  a tenth of files: {n_written} summaries ({n_written / n_built:.1%}), "
        f"{spent:.1f} s ({spent / seconds:.1%})",
        flush=True,
    )


def change_a_paragraph(file: Path) -> None:
    paragraphs = file.read_text(encoding="utf-8").split("\n\n")
    paragraphs[len(paragraphs) // 2] = ADDED
    file.write_text("\n\n".join(paragraphs), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
