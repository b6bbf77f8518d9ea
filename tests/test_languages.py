"""Documents and questions in several languages, with the multilingual model."""

from collections.abc import Callable
from pathlib import Path

import indexes
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import BaseNode, Document, MetadataMode

from hierindex import (
    HierarchicalIndex,
    SemanticHierarchy,
    load_embed_model,
    sentence_splitter,
)

FERRY = {
    "en": "The ferry to the island leaves every morning at half past seven. In winter it stays in "
    "the harbour when the waves are higher than two metres.",
    "de": "Die Fähre zur Insel fährt jeden Morgen um halb acht ab. Im Winter bleibt sie im Hafen, "
    "wenn die Wellen höher als zwei Meter sind.",
    "es": "El transbordador a la isla sale todas las mañanas a las siete y media. En invierno se "
    "queda en el puerto cuando las olas superan los dos metros.",
    "zh": "去岛上的渡轮每天早上七点半开船。冬天浪高超过两米时, 渡轮停在港口。",
}
BREAD = {
    "en": "The baker kneads the dough for ten minutes and lets it rest overnight. Rye bread is in "
    "the oven for an hour.",
    "de": "Der Bäcker knetet den Teig zehn Minuten lang und lässt ihn über Nacht ruhen. Roggenbrot "
    "ist eine Stunde im Ofen.",
    "es": "El panadero amasa la masa durante diez minutos y la deja reposar toda la noche. El pan "
    "de centeno está una hora en el horno.",
    "zh": "面包师揉面十分钟, 然后让面团静置一夜。黑麦面包要在烤箱里烤一个小时。",
}
WHEN = {
    "en": "When does the boat to the island depart?",
    "de": "Wann fährt das Schiff zur Insel?",
    "es": "¿Cuándo sale el barco a la isla?",
    "zh": "去岛上的船什么时候开?",
}
HOW_LONG = {
    "en": "How long is rye bread baked?",
    "de": "Wie lange wird Roggenbrot gebacken?",
    "es": "¿Cuánto tiempo se hornea el pan de centeno?",
    "zh": "黑麦面包要烤多久?",
}
ELSEWHERE = {
    "en": "Which parties are in the parliament of Norway?",
    "de": "Welche Parteien sitzen im Parlament von Norwegen?",
    "es": "¿Qué partidos están en el parlamento de Noruega?",
    "zh": "挪威议会有哪些政党?",
}
WHOLE = {
    "en": "What are these documents about?",
    "de": "Wovon handeln die Dokumente?",
    "es": "¿De qué tratan los documentos?",
    "zh": "这些文件是关于什么的?",
}
LANGUAGES = [*FERRY]

Build = Callable[..., HierarchicalIndex]


@pytest.fixture(scope="module")
def model() -> BaseEmbedding:
    return load_embed_model("multilingual")


@pytest.fixture(scope="module")
def build(model: BaseEmbedding, tmp_path_factory: pytest.TempPathFactory) -> Build:
    def built(*languages: str) -> HierarchicalIndex:
        texts = {
            f"{name}.{language}": texts[language]
            for language in languages
            for name, texts in (("ferry", FERRY), ("bread", BREAD))
        }
        return indexes.built(texts, tmp_path_factory.mktemp("index"), model=model)

    return built


@pytest.fixture(scope="module")
def of_all(build: Build) -> HierarchicalIndex:
    return build(*LANGUAGES)


@pytest.fixture(scope="module", params=LANGUAGES)
def of_one(request: pytest.FixtureRequest, build: Build) -> HierarchicalIndex:
    return build(request.param)


@pytest.mark.spread
@pytest.mark.parametrize("language", LANGUAGES)
class TestQuestions:
    def test_of_any_language_find_the_answer_in_another(
        self, of_one: HierarchicalIndex, language: str
    ) -> None:
        for questions, name in ((WHEN, "ferry"), (HOW_LONG, "bread")):
            best = of_one.as_retriever(level=0).retrieve(questions[language])[0]
            assert best.node.ref_doc_id.startswith(name)

    def test_without_an_answer_are_refused(self, of_one: HierarchicalIndex, language: str) -> None:
        assert of_one.ask(ELSEWHERE[language]).refused

    def test_about_the_whole_have_an_outline(
        self, of_one: HierarchicalIndex, language: str
    ) -> None:
        answer = of_one.ask(WHOLE[language])
        assert "outline" in (answer.why or "")
        assert {c.document.partition(".")[0] for c in answer.citations} == {"ferry", "bread"}

    def test_in_its_own_language_are_answered(
        self, of_all: HierarchicalIndex, language: str
    ) -> None:
        answer = of_all.ask(WHEN[language], filters=indexes.where(language=language))
        assert not answer.refused
        assert [c.document for c in answer.citations] == [f"ferry.{language}"]


def root_of(index: HierarchicalIndex) -> BaseNode:
    (root,) = index.tree(depth=0)["nodes"]
    return index.node(root["id"])


def languages_by_document(index: HierarchicalIndex) -> dict[str, str]:
    nodes = index.store.get_nodes()
    return {node.ref_doc_id: node.metadata["language"] for node in nodes if node.ref_doc_id}


def test_each_document_has_its_language_and_a_summary_those_below(
    of_all: HierarchicalIndex,
) -> None:
    found = languages_by_document(of_all)
    assert {name: language for name, language in found.items() if "." in name} == {
        f"{name}.{language}": language for language in LANGUAGES for name in ("ferry", "bread")
    }
    assert sorted(root_of(of_all).metadata["language"]) == sorted(LANGUAGES)


def test_what_the_user_calls_a_language_stays(tmp_path: Path) -> None:
    given: list[object] = ["python", "de-AT", ["de", "en"], 5]
    documents = [
        Document(text=BREAD["en"], id_=str(i), metadata={"language": language})
        for i, language in enumerate(given)
    ]
    index = HierarchicalIndex.build([*documents, Document(text="Jack Ruby", id_="4")], tmp_path)
    nodes = {node.ref_doc_id: node for node in index.store.get_nodes() if node.ref_doc_id}
    assert [nodes[str(i)].metadata.get("language") for i in range(5)] == [*given, None]
    assert "language: python" in nodes["0"].get_content(MetadataMode.EMBED)


def test_words_count_unless_the_language_is_known_to_be_another(tmp_path: Path) -> None:
    def score(language: str) -> float | None:
        document = Document(text=FERRY["en"], metadata={"language": language})
        index = HierarchicalIndex.build([document], tmp_path / language)
        return index.ask("What is said of the ferry and the harbour?").score

    assert score("python") == score("en") != score("de")


def test_a_file_that_is_translated_changes_its_language(tmp_path: Path) -> None:
    folder, file = tmp_path / "notes", tmp_path / "notes" / "ferry.md"
    folder.mkdir()
    file.write_text(FERRY["en"])
    (folder / "bread.md").write_text(BREAD["en"])
    index = HierarchicalIndex.build(folder, tmp_path / "index")
    assert set(languages_by_document(index).values()) == {"en"}
    file.write_text(FERRY["de"])
    index.update(folder)
    assert languages_by_document(index)["ferry.md"] == "de"
    assert sorted(root_of(index).metadata["language"]) == ["de", "en"]


def test_a_pipeline_notes_it_without_embedding_it(model: BaseEmbedding) -> None:
    steps = [sentence_splitter(model), SemanticHierarchy(embed_model=model)]
    document = Document(text=FERRY["es"], id_="ferry")
    nodes = IngestionPipeline(transformations=steps).run(documents=[document])
    assert {node.metadata["language"] for node in nodes} == {"es"}
    assert not any("language" in node.get_content(MetadataMode.EMBED) for node in nodes)
