"""Write what hierindex does at its public doors to one JSON file, to be compared with another's.

    python tests/oracle/run.py --corpora DATA --to a.json
    python tests/oracle/run.py --corpora DATA --to b.json --project OLDER-CHECKOUT
    python tests/oracle/compare.py a.json b.json

It uses only the names that `hierindex` exports and the command line, so that it runs on older and
newer commits alike. DATA is a folder with the data sets of `texts.SETS`; without it, only the
papers of the town are built. Paths, times and vectors are left out.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from command_lines import command, commands, environment, flags
from texts import FILES, QUESTIONS, corpora, settled, write

HERE = Path(__file__).resolve()
METHODS = {
    "semantic": "SemanticHierarchy",
    "raptor": "RaptorHierarchy",
    "document": "DocumentHierarchy",
}
WAYS: dict[str, dict[str, Any]] = {
    "auto": {},
    "collapsed": {"mode": "collapsed"},
    "level 0": {"level": 0},
    "level 1": {"level": 1},
    "traversal": {"mode": "traversal"},
    "document": {"mode": "document"},
    **{f"level 0, {by}": {"level": 0, "by": by} for by in ("context", "text", "hybrid")},
    "collapsed, hybrid": {"mode": "collapsed", "by": "hybrid"},
}
KILL_AT = "ORACLE_KILL_AT"  # variable: the request at which the language model kills its process


def tried(do: Callable[[], Any]) -> Any:
    """Return what a function returns, or its error of hierindex by class and first line."""
    from hierindex import HierindexError

    try:
        return do()
    except HierindexError as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


# Trees


def hierarchy(method: str, llm: Any = None, **options: Any) -> Any:
    """Return a method's hierarchy, with summaries by a language model if one is given."""
    import hierindex

    if llm:
        rewriter = hierindex.summarize.LLMRewriter(llm, concurrency=1)
        options["summarizer"] = hierindex.summarize.TwoStageSummarizer(rewriter)
    return getattr(hierindex, METHODS[method])(**options)


def tree(index: Any) -> dict[str, Any]:
    """Return the nodes of an index by id, with their texts, links and quotes."""
    import hierindex

    found, stored = (
        hierindex.export.to_tree(index),
        {node.node_id: node for node in index.store.get_nodes()},
    )
    for node in found["nodes"]:
        del node["citations"]  # they are the places of the quotes
        if hasattr(hierindex, "Node"):
            record = hierindex.Node.of(stored[node["id"]])
        else:  # of an earlier commit
            record = hierindex.NodeRecord.from_metadata(stored[node["id"]].metadata)
        node["quotes"] = [
            [quote.at, quote.to, quote.verbatim, *(source.to_json() for source in quote.sources)]
            for quote in record.quotes
        ]
        node["whole_document"] = record.whole_document
    found["nodes"] = {node.pop("id"): node for node in found["nodes"]}
    return settled(found)


def digests(index: Any) -> dict[str, str]:
    """Return a digest of each node of an index by id."""
    nodes = tree(index)["nodes"].items()
    return {each: sha256(json.dumps(node).encode()).hexdigest()[:12] for each, node in nodes}


# Questions


def answer(index: Any, question: str, **options: Any) -> dict[str, Any]:
    """Return an answer with the ids of its sources."""
    told = index.ask(question, **options).to_json()
    told["sources"] = [[source["id"], source["score"]] for source in told["sources"]]
    return settled(told)


def found(index: Any, question: str, **options: Any) -> list[str]:
    """Return the ids of the nodes that a retriever finds, best first."""
    return [node.node_id for node in index.as_retriever(**options).retrieve(question)]


def asked(index: Any, questions: Sequence[str]) -> dict[str, Any]:
    """Return the answers to questions in each way of asking."""
    return {
        way: {each: tried(partial(answer, index, each, **options)) for each in questions}
        for way, options in WAYS.items()
    }


# Filters


def papers() -> list[Any]:
    """Return documents with metadata of several types, some without."""
    from llama_index.core.schema import Document

    places = [["pier", "sea"], ["school"], [], ["pier", "school"]]
    made = []
    for i in range(12):
        metadata = {"author": f"A{i % 3}", "year": 1990 + i, "price": i / 4}
        metadata["places"] = places[i % 4]
        text = "".join(
            f"Paper {i} tells of day {day} at the {'harbour' if day % 2 else 'mill'}. "
            f"The wind of day {day} was {day * i + 1} knots, and boat {day + i} came home.\n\n"
            for day in range(14)
        )
        made.append(Document(id_=f"paper {i}", text=text, metadata=metadata if i != 5 else {}))
    return made


Passes = Callable[[dict[str, Any]], bool]


def conditions() -> dict[str, tuple[Any, Passes]]:
    """Return filters, each with what a chunk's metadata must be, as a plain predicate.

    A key that a chunk does not have passes only "!=", "nin" and "is_empty".
    """
    from llama_index.core.vector_stores.types import (
        FilterCondition,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
    )

    def one(key: str, sign: str, value: Any) -> Any:
        return MetadataFilter(key=key, value=value, operator=FilterOperator(sign))

    def several(condition: str, *parts: Any) -> Any:
        return MetadataFilters(filters=[*parts], condition=FilterCondition(condition))

    single: list[tuple[str, str, Any, Passes]] = [
        ("author", "==", "A1", lambda m: m.get("author") == "A1"),
        ("author", "!=", "A1", lambda m: m.get("author") != "A1"),
        ("year", ">", 1996, lambda m: m.get("year", 0) > 1996),
        ("year", "==", 1994, lambda m: m.get("year") == 1994),
        ("price", "<=", 1.0, lambda m: m.get("price", 9) <= 1),
        ("author", "in", ["A0", "A2"], lambda m: m.get("author") in ("A0", "A2")),
        ("author", "nin", ["A0"], lambda m: m.get("author") != "A0"),
        ("author", "text_match", "1", lambda m: "1" in m.get("author", "")),
        ("author", "is_empty", None, lambda m: "author" not in m),
        ("places", "contains", "pier", lambda m: "pier" in m.get("places", ())),
        ("places", "any", ["sea", "school"], lambda m: {"sea", "school"} & {*m.get("places", ())}),
        ("places", "all", ["pier", "sea"], lambda m: {"pier", "sea"} <= {*m.get("places", ())}),
    ]
    (_, _, _, mine), late = single[0], single[2][3]
    is_mine, is_late = one("author", "==", "A1"), one("year", ">", 1996)
    either = several("or", is_late, is_mine)
    return {
        **{f"{k} {s} {v}": (several("and", one(k, s, v)), holds) for k, s, v, holds in single},
        "and": (several("and", is_late, is_mine), lambda m: late(m) and mine(m)),
        "or": (either, lambda m: late(m) or mine(m)),
        "not": (several("not", is_late), lambda m: not late(m)),
        "or in and": (
            several("and", either, one("price", ">", 0.3)),
            lambda m: (late(m) or mine(m)) and m.get("price", 0) > 0.3,
        ),
    }


def filtered(place: Path) -> dict[str, Any]:
    """Return what passes each filter, and whether it is what the predicate says."""
    from hierindex import HierarchicalIndex
    from hierindex.export import to_tree

    told = dict[str, Any]()
    for method in METHODS:
        built = HierarchicalIndex.build(papers(), place / method, hierarchy=hierarchy(method))
        nodes = {node["id"]: node for node in to_tree(built)["nodes"]}

        def leaves(node_id: str, nodes: dict[str, Any] = nodes) -> list[dict[str, Any]]:
            below = [m for each in nodes[node_id]["children"] for m in leaves(each, nodes)]
            return below or [nodes[node_id]["metadata"]]

        for name, (filters, predicate) in conditions().items():
            expected = {each for each in nodes if all(map(predicate, leaves(each)))}
            passing = {node.node_id for node in built.store.get_nodes(filters=filters)}
            told[f"{method}, {name}"] = {
                "passing": sorted(passing),
                "as the predicate says": passing == expected,
                "found": found(built, "The wind at the mill", mode="collapsed", filters=filters),
            }
    return told


# A language model


def language_model() -> Any:
    """Return a model that answers with the first sentences of the passages in its prompt."""
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata

    n_requests = 0

    class Quoting(CustomLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(model_name="quoting", context_window=8000, num_output=300)

        def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
            nonlocal n_requests
            n_requests += 1
            if str(n_requests) == os.environ.get(KILL_AT):
                os.kill(os.getpid(), signal.SIGKILL)
            sentences = re.findall(r"[A-Z][^.?!\n]{20,}\.", prompt)
            said = [each for each in sentences if "passages" not in each and "Title" not in each]
            return CompletionResponse(text=f"Title: Paper\n\n{' '.join(said[:3] or ['None.'])}")

        def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
            raise NotImplementedError

    return Quoting()


def written(folder: Path, place: Path) -> dict[str, Any]:
    """Return the trees that a language model has written, and its answers."""
    from hierindex import HierarchicalIndex

    told = dict[str, Any]()
    llm = language_model()
    for method in METHODS:
        index = HierarchicalIndex.build(folder, place / method, hierarchy=hierarchy(method, llm))
        told[method] = {"tree": tree(index), "usage": settled(index.info()["usage"])}
    for mode in ("tree_summarize", "compact", "refine", "simple_summarize", "accumulate"):
        ways = {"": {}, ", level 1": {"level": 1}}
        for name, way in ways.items():
            options = {"llm": llm, "response_mode": mode, **way}
            told[mode + name] = {
                question: tried(partial(answer, index, question, **options))
                for question in QUESTIONS[:3]
            }
    return told


# A history of edits


def history(method: str, place: Path) -> dict[str, Any]:
    """Return what an index says after each of several edits, one of them killed midway."""
    from hierindex import HierarchicalIndex

    folder, uri = write(place / "papers", FILES), place / "index"
    told = dict[str, Any]()

    def note(step: str, report: Any = None) -> None:
        index = HierarchicalIndex.open(uri)
        checked = index.verify()
        told[step] = {
            "report": settled(report),
            "info": settled(index.info()),
            "verify": {"ok": checked.ok, "failed": checked.failed, "nodes": checked.nodes},
            "nodes": digests(index),
        }
        progress(f"  {method}, {step}")

    def report_of(index: Any) -> dict[str, Any]:
        names = ("generation", "added", "changed", "removed", "renamed", "unchanged")
        return {name: getattr(index.last_build, name, None) for name in names}

    def update(step: str) -> None:
        index = HierarchicalIndex.open(uri)
        index.update(llm=language_model(), concurrency=1)
        note(step, report_of(index))

    llm = language_model()
    built = HierarchicalIndex.build(folder, uri, hierarchy=hierarchy(method, llm))
    note("build", report_of(built))
    update("nothing changed")
    write(folder, {"added.txt": "A whale was seen off pier 2. It left before noon.\n" * 12})
    update("added")
    write(folder, {"log.md": FILES["log.md"].replace("310,000", "290,000") + "\nIt rained.\n"})
    update("changed")
    (folder / "letter.txt").rename(folder / "renamed.txt")
    update("renamed")
    (folder / "dues.csv").unlink()
    update("deleted")
    letter = FILES["letter.txt"]
    write(folder, {f"new {i}.txt": letter.replace("oven", f"gate {i}") for i in range(9)})
    given = [sys.executable, str(HERE), "--project", sys.path[0], "--killed", str(uri)]
    killed = subprocess.run(given, env=environment() | {KILL_AT: "3"}, check=False)
    note("killed", killed.returncode)
    update("resumed")
    told["generations"] = command(place, "generations", "--index", str(uri), "--json")
    told["rollback"] = command(place, "rollback", "--index", str(uri), "--json")
    note("rolled back")
    update("updated again")
    index = HierarchicalIndex.open(uri)
    index.delete("minutes.html", llm=llm)
    note("deleted by id", report_of(index))
    (folder / "minutes.html").unlink()
    fresh = HierarchicalIndex.build(folder, place / "fresh", hierarchy=hierarchy(method, llm))
    told["as a fresh build"] = digests(fresh) == told["deleted by id"]["nodes"]
    return told


# All of it


def trees_and_answers(data: Path | None, place: Path) -> dict[str, Any]:
    """Return the tree of each method over each corpus, and its answers."""
    from hierindex import HierarchicalIndex

    told = dict[str, Any]()
    for name, corpus in corpora(data, place).items():
        for i, method in enumerate(METHODS):
            uri, grown = place / "built" / name / method, hierarchy(method)
            index = HierarchicalIndex.build(corpus.folder, uri, hierarchy=grown)
            answers = asked(index, corpus.questions[i :: len(METHODS)])
            told[f"{name}, {method}"] = {"tree": tree(index), "answers": answers}
            progress(f"  {name}, {method}")
    return told


SECTIONS: dict[str, Callable[[Path | None, Path], Any]] = {
    "flags": lambda _, place: flags(place),
    "commands": lambda _, place: commands(place),
    "history": lambda _, place: {method: history(method, place / method) for method in METHODS},
    "filters": lambda _, place: filtered(place),
    "language model": lambda _, place: written(write(place / "town", FILES), place),
    "corpora": trees_and_answers,
}


STARTED = time.monotonic()


def progress(what: str) -> None:
    """Print on standard error what is done, and the seconds that it took so far."""
    past, used = time.monotonic() - STARTED, sum(os.times()[:4])
    print(f"{past:6.1f} s ({used:.1f} s of processors)  {what}", file=sys.stderr)


def main() -> None:
    """Write the file, or be killed while updating an index."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", type=Path, metavar="DATA", help="folder of data sets")
    parser.add_argument("--to", type=Path, metavar="FILE", help="JSON file to write")
    parser.add_argument("--project", type=Path, default=HERE.parents[2], help="checkout to run")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="sections to run")
    parser.add_argument("--killed", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sys.path[0] = str(given.project.resolve())
    if given.killed:
        from hierindex import HierarchicalIndex

        HierarchicalIndex.open(given.killed).update(llm=language_model(), concurrency=1)
        return
    os.environ.update(environment())
    told = dict[str, Any]()
    for name in given.only or SECTIONS:
        with tempfile.TemporaryDirectory() as folder:
            told[name] = SECTIONS[name](given.corpora, Path(folder).resolve())
        progress(name)
    given.to.write_text(json.dumps(told, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
