"""Pipelines that run again and again, and the recipes, run as a reader runs them."""

import asyncio
import importlib.util
import inspect
import re
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import HashingEmbedding
from histories import documents
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.storage.docstore import SimpleDocumentStore
from loopback import LoopbackServer, quotes_sentences
from records import as_plain
from summarize.groups import RewriterOf

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    HierarchyStore,
    Node,
    RaptorHierarchy,
    SemanticHierarchy,
)
from hierindex.cache import cache_file
from hierindex.errors import InputError
from hierindex.summarize import TwoStageSummarizer

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "pipelines").glob("*.py"))
WITH_MODEL = [path for path in RECIPES if "[MODEL BASE_URL]" in path.read_text()]
QUESTION = "What did the baker mend?"
TEXT = "\n\n".join(
    f"On day {i} the {who} mended the {what}. Nobody in the harbour had seen such a {what} before."
    for i in range(4)
    for who, what in (("keeper", "lamp"), ("baker", "oven"), ("sailor", "rudder"))
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "texts"
    source.mkdir()
    for name in ("north", "south", "west"):
        (source / f"{name}.txt").write_text(TEXT.replace("harbour", f"{name} harbour"))
    return source


def run(name: str, *arguments: str) -> None:
    """The recipe's main, as from the command line."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "pipelines" / f"{name}.py")
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    recipe.main(*arguments)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_answers(path, folder, tmp_path, capsys) -> None:
    run(path.stem, str(folder), str(tmp_path / "index"), QUESTION)
    assert "oven" in capsys.readouterr().out


@pytest.fixture
def asked(folder, tmp_path):
    """Runs a recipe with a model; its requests, those of a second run apart."""

    def ask(name: str) -> list[list[str]]:
        runs = []
        for _ in range(2):
            with LoopbackServer(reply=quotes_sentences) as server:
                run(name, str(folder), str(tmp_path / "index"), QUESTION, "m", server.base_url)
            runs.append([request.prompt for request in server.requests])
        return runs

    return ask


@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_MODEL, ids=lambda path: path.stem)
def test_recipe_asks_the_model_that_is_named(path, asked, capsys) -> None:
    first, second = asked(path.stem)
    assert first
    assert "The passages tell of " in capsys.readouterr().out
    # A summary is paid for once.
    assert not any("questions that it answers" in prompt for prompt in second)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_is_short_says_how_to_run_it_and_needs_public_names_alone(path) -> None:
    source = path.read_text()
    assert len(source.splitlines()) < 60
    assert f"python pipelines/{path.name}" in inspect.cleandoc(source.split('"""')[1])
    public = "errors|evaluate|export|rules|scale|serve|summarize|text"
    inner = rf"(?m)^ *(?:from|import) (hierindex\.(?!(?:{public}) )\S+)"
    assert not re.findall(inner, source)


def saying(word: str, n: int = 5) -> str:
    return " ".join(f"On day {i} the keeper of the {word} mended the {word}." for i in range(n))


BEFORE = {name: saying(name) for name in ("anchor", "bell", "crew", "dough", "flour")}
AFTER = {  # a changed, a new and a removed document
    "anchor": saying("anchor"),
    "bell": saying("gate"),
    "dough": saying("dough"),
    "flour": saying("flour"),
    "harbour": saying("harbour", 4),
}


class Ingestion:
    """A pipeline that runs again and again, each time with models and a store of its own."""

    def __init__(self, uri: Path, kind=SemanticHierarchy, strategy="upserts", **options) -> None:
        self.uri, self.kind, self.strategy, self.options = uri, kind, strategy, options
        self.docstore = SimpleDocumentStore()
        self.told: list[str] = []
        """Texts that the last run summarised."""

    def hierarchy(self, **options):
        def written(text: str) -> str:
            self.told.append(text)
            return text

        return self.kind(
            HashingEmbedding(model_name="known"),
            TwoStageSummarizer(RewriterOf(written)),
            max_children=3,
            summary_tokens=40,
            **options,
        )

    def pipeline(self) -> IngestionPipeline:
        self.told.clear()
        self.store, self.model = HierarchyStore(self.uri), HashingEmbedding(model_name="known")
        return IngestionPipeline(
            transformations=[
                SentenceSplitter(chunk_size=30, chunk_overlap=0),
                self.model,
                self.hierarchy(**{"store": self.store, **self.options}),
            ],
            vector_store=self.store,
            docstore=self.docstore,
            docstore_strategy=DocstoreStrategy(self.strategy),
        )

    def run(self, texts: dict[str, str]) -> list:
        return self.pipeline().run(documents=documents(texts))

    async def arun(self, texts: dict[str, str]) -> list:
        return await self.pipeline().arun(documents=documents(texts))

    @property
    def index(self) -> HierarchicalIndex:
        return HierarchicalIndex.open(self.uri, HashingEmbedding(model_name="known"))

    def is_one_tree(self) -> bool:
        info = self.index.info()
        return (len(info["roots"]), info["stale"]) == (1, 0) and self.index.verify().ok

    def says(self, word: str) -> bool:
        """Whether the index or its cache has a word."""
        texts = " ".join(node.get_content() for node in self.store.get_nodes())
        return word in texts or word.encode() in cache_file(str(self.uri)).read_bytes()


KINDS = pytest.mark.parametrize(
    "kind",
    [
        SemanticHierarchy,
        pytest.param(RaptorHierarchy, marks=pytest.mark.slow),
        pytest.param(DocumentHierarchy, marks=pytest.mark.slow),
    ],
)


class TestRunsOneAfterTheOther:
    @KINDS
    @pytest.mark.parametrize("strategy", ["upserts", "upserts_and_delete"])
    def test_each_leaves_the_tree_that_one_run_makes(self, tmp_path, kind, strategy) -> None:
        """Of what the index holds: documents that stay, then those that are changed or new."""
        ingestion = Ingestion(tmp_path / "index", kind, strategy)
        ingestion.run(BEFORE)
        ingestion.run(AFTER)
        names = ["anchor", "crew", "dough", "flour", "bell", "harbour"]
        if strategy == "upserts_and_delete":
            names.remove("crew")
        texts = {name: {**BEFORE, **AFTER}[name] for name in names}
        fresh = Ingestion(tmp_path / "fresh", kind)
        fresh.run(texts)
        assert known_of(ingestion.store) == known_of(fresh.store)
        assert ingestion.is_one_tree()
        assert not ingestion.says("of the bell")
        assert ingestion.says("of the crew") == (strategy == "upserts")

    @KINDS
    def test_one_that_only_removes_leaves_one_tree(self, tmp_path, kind) -> None:
        ingestion = Ingestion(tmp_path, kind, "upserts_and_delete")
        ingestion.run(BEFORE)
        ingestion.run({name: text for name, text in BEFORE.items() if name != "crew"})
        assert ingestion.is_one_tree()
        assert ingestion.index.info()["documents"] == 4
        assert not ingestion.says("of the crew")
        assert ingestion.run({}) == []
        assert ingestion.store.get_nodes() == []
        assert ingestion.run(AFTER)
        assert ingestion.is_one_tree()

    def test_one_without_changes_does_nothing(self, tmp_path) -> None:
        ingestion = Ingestion(tmp_path)
        ingestion.run(BEFORE)
        generations = ingestion.store.generations()
        assert ingestion.run(BEFORE) == []
        assert (ingestion.store.generations(), ingestion.told) == (generations, [])

    def test_what_was_embedded_and_summarised_before_is_not_again(self, tmp_path) -> None:
        ingestion = Ingestion(tmp_path)
        ingestion.run(BEFORE)
        first = len(ingestion.told)
        ingestion.run(AFTER)
        embedded = [text for batch in ingestion.model.batches for text in batch]
        assert embedded
        assert all("gate" in text or "harbour" in text for text in embedded)
        of_documents = [text for text in ingestion.told if not re.search("gate|harbour", text)]
        above = [n for n in ingestion.store.get_nodes() if len(Node.of(n).documents) > 1]
        assert 0 < len(of_documents) <= len(above) < first

    def test_async_ones_make_the_same_tree(self, tmp_path) -> None:
        found = []
        for name in ("sync", "async"):
            ingestion = Ingestion(tmp_path / name)
            for texts in (BEFORE, AFTER):
                ingestion.run(texts) if name == "sync" else asyncio.run(ingestion.arun(texts))
            found.append(known_of(ingestion.store))
        assert found[0] == found[1]

    @pytest.mark.parametrize("strategy", ["duplicates_only", None])
    def test_documents_that_are_given_again_replace_what_is_held(self, tmp_path, strategy) -> None:
        ingestion = Ingestion(tmp_path, strategy=strategy or "upserts")
        for texts in (BEFORE, AFTER):
            if strategy is None:
                ingestion.docstore = None
            ingestion.run(texts)
        assert ingestion.is_one_tree()
        assert ingestion.index.info()["documents"] == 6
        assert not any("of the bell" in node.get_content() for node in ingestion.store.get_nodes())

    def test_a_run_that_fails_takes_nothing_away(self, tmp_path) -> None:
        ingestion = Ingestion(tmp_path, strategy="duplicates_only")
        ingestion.run(BEFORE)
        before = known_of(ingestion.store)
        pipeline = ingestion.pipeline()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TwoStageSummarizer, "summarize", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                pipeline.run(documents=documents(AFTER))
        assert known_of(ingestion.store) == before

    def test_what_is_deleted_while_a_tree_grows_does_not_come_back(self, tmp_path) -> None:
        ingestion = Ingestion(tmp_path)
        ingestion.run(BEFORE)
        hierarchy = ingestion.hierarchy(store=ingestion.store)
        tree = hierarchy(
            SentenceSplitter(chunk_size=30, chunk_overlap=0)(documents({"new": saying("gate")}))
        )
        ingestion.store.delete("crew")
        with pytest.raises(InputError, match="was written to while the tree"):
            ingestion.store.add(tree)
        assert not ingestion.says("of the crew")

    def test_what_a_build_made_is_continued(self, tmp_path) -> None:
        ingestion = Ingestion(tmp_path / "index")
        for name, text in BEFORE.items():
            (tmp_path / f"{name}.txt").write_text(text)
        HierarchicalIndex.build(
            [*tmp_path.glob("*.txt")], tmp_path / "index", hierarchy=ingestion.hierarchy()
        )
        ingestion.run({"harbour": saying("harbour")})
        assert ingestion.is_one_tree()
        assert ingestion.index.info()["documents"] == 6
        report = ingestion.index.update(hierarchy=ingestion.hierarchy())
        assert (report.added, report.changed, report.removed) == (0, 0, 0)


def known_of(store: HierarchyStore) -> list[dict]:
    """All that is known of each node; of its vector six digits."""
    nodes = store.snapshot().nodes()
    return as_plain(replace(node, vector=node.vector.round(6)) for node in nodes)
