"""An index that is edited, beside a model of what each of its generations holds."""

import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from fakes import HashingEmbedding, Replying
from guarantees import guaranteed, inconsistent
from histories import WORDS, Texts, text
from indexes import Hierarchy
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import BaseNode, Document
from loopback import names_words

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    HierarchyStore,
    RaptorHierarchy,
    SemanticHierarchy,
    sentence_splitter,
)
from hierindex.summarize import LLMRewriter, TwoStageSummarizer

KINDS = (SemanticHierarchy, DocumentHierarchy, RaptorHierarchy)
CHUNK_SIZE = 60  # tokens, so that few sentences make a tree
MODEL = HashingEmbedding(model_name="known")
NO_ORIGIN = {"document_hash": "", "read_from": ""}  # a pipeline's documents have none


@dataclass(frozen=True)
class Tree:
    """How an index is built; with `rewritten`, a language model writes its summaries."""

    kind: type[Hierarchy]
    rewritten: bool = False

    def hierarchy(self, **options: Any) -> Hierarchy:
        summarizer = (
            TwoStageSummarizer(LLMRewriter(Replying(reply=names_words))) if self.rewritten else None
        )
        return self.kind(MODEL, summarizer, max_children=3, summary_tokens=60, **options)


def chunks_of(document: str, text: str) -> list[BaseNode]:
    return sentence_splitter(MODEL, CHUNK_SIZE)([Document(text=text, id_=document)])


@dataclass(frozen=True)
class Write:
    """A write to an index, which any process can do.

    `what` is the name of a method; `document` and its `text` are what is written or deleted.
    """

    what: str
    tree: Tree
    uri: Path
    folder: Path
    document: str = ""
    text: str = ""

    def __call__(self) -> None:
        getattr(self, self.what)()

    @property
    def index(self) -> HierarchicalIndex:
        return HierarchicalIndex(HierarchyStore(self.uri), MODEL)

    @property
    def given(self) -> dict[str, Hierarchy]:
        """What the index cannot remember."""
        return {"hierarchy": self.tree.hierarchy()} if self.tree.rewritten else {}

    def build(self) -> None:
        HierarchicalIndex.build(
            self.folder, self.uri, hierarchy=self.tree.hierarchy(), chunk_size=CHUNK_SIZE
        )

    def update(self) -> None:
        sources = self.folder / self.document if self.document else None
        self.index.update(sources, **self.given)

    def insert(self) -> None:
        self.index.insert(Document(text=self.text, id_=self.document), **self.given)

    def delete(self) -> None:
        self.index.delete(self.document, **self.given)

    def delete_from_store(self) -> None:
        HierarchyStore(self.uri).delete(self.document)

    def add(self) -> None:
        hierarchy = self.tree.hierarchy(cache=self.uri)
        pipeline = IngestionPipeline(
            transformations=[hierarchy], vector_store=HierarchyStore(self.uri)
        )
        pipeline.run(nodes=chunks_of(self.document, self.text))

    def regrow(self) -> None:
        self.index.regrow(**self.given)

    def roll_back(self) -> None:
        HierarchyStore(self.uri).rollback()


@dataclass(frozen=True)
class State:
    """What a generation holds: texts by document, and which documents of the folder stay out.

    `grown` says whether its tree is that of a build or an update, with nothing added or deleted
    beside it.
    """

    held: Texts
    left_out: frozenset[str] = frozenset()
    grown: bool = True


Planned = tuple[Write, State]
"""A write, and the state that it publishes."""


class EditedIndex:
    """A folder of files, an index of it and of other documents, and what its generations hold.

    Names of files end with ".txt", those of other documents do not.
    """

    def __init__(self, place: Path, tree: Tree, seed: int) -> None:
        self.tree, self.draw = tree, random.Random(seed)
        self.folder, self.uri = place / "texts", place / "index"
        self.folder.mkdir()
        self.files = {f"{name}.txt": text(self.draw) for name in self.draw.sample(WORDS, 3)}
        self.states = {0: State({})}  # by generation
        self.write_files()

    def edit(self, edit: Callable[[random.Random, Texts], None]) -> None:
        edit(self.draw, self.files)
        self.write_files()

    def write_files(self) -> None:
        for path in self.folder.iterdir():
            if path.name not in self.files:
                path.unlink()
        for name, content in self.files.items():
            (self.folder / name).write_text(content)

    @property
    def store(self) -> HierarchyStore:
        """As another process opens it."""
        return HierarchyStore(self.uri)

    @property
    def now(self) -> State:
        return self.states[max(self.states)]

    @property
    def held_files(self) -> set[str]:
        return {name for name in self.now.held if name.endswith(".txt")}

    @property
    def most_files_are_gone(self) -> bool:
        """Whether an update may be refused, because it would remove most documents."""
        return 2 * len(self.held_files - self.files.keys()) > len(self.now.held)

    def generations(self) -> list[int]:
        return [each["generation"] for each in self.store.generations()]

    def held_in(self, generation: int) -> set[str]:
        """The documents that a generation really holds."""
        rows = self.store.snapshot(generation).select("level", "documents").to_pylist()
        return {row["documents"][0] for row in rows if row["level"] == 0}

    def write(self, what: str, document: str = "", text: str = "") -> Write:
        return Write(what, self.tree, self.uri, self.folder, document, text)

    def build(self) -> Planned:
        return self.write("build"), State(dict(self.files))

    def update(self) -> Planned:
        left_out = self.now.left_out
        others = {d: text for d, text in self.now.held.items() if d not in self.held_files}
        files = {name: text for name, text in self.files.items() if name not in left_out}
        return self.write("update"), State(others | files, left_out)

    def update_file(self, name: str) -> Planned:
        held = self.now.held | {name: self.files[name]}
        return self.write("update", name), State(held, self.now.left_out - {name})

    def insert(self, document: str) -> Planned:
        new = text(self.draw)
        held = self.now.held | {document: new}
        return self.write("insert", document, new), State(held, self.now.left_out)

    def delete(self, document: str) -> Planned:
        left_out = self.now.left_out | ({document} & self.held_files)
        return self.write("delete", document), State(self._without(document), left_out)

    def delete_from_store(self, document: str) -> Planned:
        after = replace(self.now, held=self._without(document), grown=False)
        return self.write("delete_from_store", document), after

    def add(self, document: str) -> Planned:
        new = text(self.draw)
        after = replace(self.now, held=self.now.held | {document: new}, grown=False)
        return self.write("add", document, new), after

    def regrow(self) -> Planned:
        return self.write("regrow"), replace(self.now, grown=True)

    def roll_back(self) -> Planned:
        """To the generation before; to none if the index holds no other."""
        *_, earlier, _ = [0, 0, *self.generations()]
        return self.write("roll_back"), self.states[earlier]

    def _without(self, document: str) -> Texts:
        return {d: text for d, text in self.now.held.items() if d != document}

    def note(self, after: State, *, killed: bool) -> bool:
        """Note what a write published, if it did; a killed one need not. Return whether it did."""
        before, generation = max(self.states), self.store.snapshot().generation
        assert generation in (before, before + 1)
        if generation > before:
            self.states[generation] = after
        elif not killed:  # there was nothing to do, as `check` finds out
            assert (after.held, after.left_out) == (self.now.held, self.now.left_out)
            self.states[generation] = after
        return generation > before

    def check(self, *, may_lack_indices: bool = False) -> None:
        """All that must be true of the index, whatever was done to it."""
        if max(self.states) == 0:
            assert not self.store.snapshot().exists
            return
        index = HierarchicalIndex(self.store, MODEL)
        outcome = index.verify()
        problems = {each.name: each.problems for each in outcome.checks if not each.ok}
        if may_lack_indices:
            problems.pop("indices", None)
        assert not problems, problems
        for generation in self.generations():
            assert self.held_in(generation) == self.states[generation].held.keys()
        if self.now.grown:
            assert inconsistent(index) == []
            trees = guaranteed(index, self.tree.kind, **NO_ORIGIN)
            assert trees == fresh(self.tree, tuple(self.now.held.items()))


@lru_cache(maxsize=1_000)
def fresh(tree: Tree, held: tuple[tuple[str, str], ...]) -> list[dict]:
    """What a fresh build of these documents has in common with an updated index."""
    with tempfile.TemporaryDirectory() as place:
        (folder := Path(place, "texts")).mkdir()
        others = [Document(text=text, id_=d) for d, text in held if not d.endswith(".txt")]
        for name, content in held:
            if name.endswith(".txt"):
                (folder / name).write_text(content)
        sources = [folder, *others] if len(others) < len(held) else others
        index = HierarchicalIndex.build(
            sources, Path(place, "index"), hierarchy=tree.hierarchy(), chunk_size=CHUNK_SIZE
        )
        return guaranteed(index, tree.kind, **NO_ORIGIN)
