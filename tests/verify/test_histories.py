"""An index passes all checks after any history."""

import pytest
from fakes import HashingEmbedding
from guarantees import inconsistent
from histories import documents, history

from hierindex import DocumentHierarchy, HierarchicalIndex, RaptorHierarchy, SemanticHierarchy


def check(folder, seed: int, kind, n_edits: int, **options) -> None:
    model = HashingEmbedding(model_name="known")
    hierarchy = kind(model, max_children=3, summary_tokens=40, **options)
    for i, texts in enumerate(history(seed, n_edits)):
        index = HierarchicalIndex.build(
            documents(texts), folder, hierarchy=hierarchy, chunk_size=30
        )
        index.store.replace(index.store.get_nodes(), {"settings": hierarchy.to_dict()})
        assert not index.verify().failed, f"seed {seed}, state {i}"
        assert not inconsistent(index), f"seed {seed}, state {i}"
    for name in list(texts)[1:]:
        index.store.delete(name)
        assert not index.verify().failed, f"seed {seed}, without {name}"


@pytest.mark.parametrize("kind", [SemanticHierarchy, RaptorHierarchy, DocumentHierarchy])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 20))]
)
def test_any_history(tmp_path, kind, seed) -> None:
    check(tmp_path, seed, kind, n_edits=2)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (SemanticHierarchy, {"max_levels": 1}),
        (RaptorHierarchy, {"scope": "document"}),
        (DocumentHierarchy, {"group_documents": False}),
    ],
)
def test_trees_of_several_roots(tmp_path, kind, options) -> None:
    check(tmp_path, 4, kind, n_edits=1, **options)
