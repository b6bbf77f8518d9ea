"""Mistakes that type checkers report to users: to ignore one that they miss is an error, too."""

from collections.abc import Sequence

from hierindex import HierarchicalIndex, HierarchyStore, RaptorHierarchy
from hierindex.evaluate import evaluate
from hierindex.export import to_html
from hierindex.serve import serve
from hierindex.summarize import Rewriter, TwoStageSummarizer


class WithoutBudget:
    """A rewriter that lacks an argument."""

    name = "without-budget"

    def to_dict(self) -> dict[str, str]:
        return {}

    def rewrite(self, texts: Sequence[str]) -> list[str]:
        return [*texts]


def mistakes() -> None:
    index = HierarchicalIndex.open(1)  # type: ignore[arg-type]
    index = HierarchicalIndex.build("docs", "index", chunk_sizes=64)  # type: ignore[call-arg]
    index = HierarchicalIndex.build("docs", "index", hierarchy="raptor")  # type: ignore[arg-type]
    index.ask(b"Why?")  # type: ignore[arg-type]
    print(index.ask("Why?").answers)  # type: ignore[attr-defined]
    index.ask("Why?").citations[0].end.upper()  # type: ignore[attr-defined]
    index.ask("Why?", response_mode=1)  # type: ignore[arg-type]
    print(index.last_build.added)  # type: ignore[union-attr]
    index.sources("id", 100)  # type: ignore[call-arg]
    index.store = HierarchyStore("index")  # type: ignore[misc]
    index.verify(repair="yes")  # type: ignore[arg-type]
    RaptorHierarchy(scope="chapter")  # type: ignore[arg-type]
    rewriter: Rewriter = WithoutBudget()  # type: ignore[assignment]
    TwoStageSummarizer(rewriter, strict="no")  # type: ignore[arg-type]
    to_html(index)  # type: ignore[call-arg]
    evaluate("data", against=10)  # type: ignore[arg-type]
    with serve(index, "8734") as server:  # type: ignore[arg-type]
        print(server.url.port)  # type: ignore[attr-defined]
