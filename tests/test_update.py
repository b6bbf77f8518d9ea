"""An updated index equals a fresh build of its documents, and pays for changes alone."""

from dataclasses import replace
from pathlib import Path
from zlib import crc32

import pytest
from fakes import HashingEmbedding
from histories import Texts, history
from llama_index.core.schema import MetadataMode, NodeRelationship

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    NodeRecord,
    RaptorHierarchy,
    SemanticHierarchy,
)
from hierindex.hierarchy.hierarchy import Hierarchy

KINDS = pytest.mark.parametrize("kind", [SemanticHierarchy, RaptorHierarchy, DocumentHierarchy])


def hierarchy_of(kind=SemanticHierarchy, **options):
    model = HashingEmbedding(model_name="known")
    return kind(model, **{"max_children": 3, "summary_tokens": 40, **options})


def built(sources, uri: Path, hierarchy=None) -> HierarchicalIndex:
    hierarchy = hierarchy or hierarchy_of()
    return HierarchicalIndex.build(sources, uri, hierarchy=hierarchy, chunk_size=30)


def as_plain(index: HierarchicalIndex) -> list[dict]:
    """All that is known of each node, by id."""
    nodes = index.store.get_nodes()
    return sorted((node.to_dict() for node in nodes), key=lambda node: node["id_"])


def guaranteed(index: HierarchicalIndex, kind: type[Hierarchy]) -> list[dict]:
    """All that an update leaves as a fresh build makes it: documents' trees, or the chunks.

    What places them among others, such as parents across documents, is left out.
    """
    nodes = {node.node_id: node for node in index.store.get_nodes()}
    records = {i: NodeRecord.from_metadata(node.metadata) for i, node in nodes.items()}
    plain = []
    for i, node in sorted(nodes.items()):
        record = records[i]
        if len(record.documents) > 1 or (kind is RaptorHierarchy and record.level):
            continue
        inside = record.parents and len(records[record.parents[0][0]].documents) == 1
        if kind is RaptorHierarchy or not inside:
            record = replace(record, parents=(), level_max=record.level, title="")
            node.relationships.pop(NodeRelationship.PARENT, None)
        node.metadata |= record.to_metadata()
        plain.append(node.to_dict())
    return plain


def write(folder: Path, texts: Texts) -> None:
    """Make the files of a folder these, with Markdown and subfolders among them."""
    names = {}
    for name, content in texts.items():
        kind = crc32(name.encode()) % 3
        names[("", "deep/", "a/b/")[kind] + (name if kind else f"{name[:-4]}.md")] = content
    for path in [*folder.rglob("*")]:
        if path.is_file() and path.relative_to(folder).as_posix() not in names:
            path.unlink()
    for name, content in names.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def embedded(index: HierarchicalIndex) -> set[str]:
    return {node.get_content(MetadataMode.EMBED) for node in index.store.get_nodes()}


@KINDS
@pytest.mark.parametrize("seed", range(3))
def test_any_history_of_a_folder(tmp_path, kind, seed):
    folder, hierarchy = tmp_path / "texts", hierarchy_of(kind)
    folder.mkdir()
    index = None
    for i, texts in enumerate(history(seed, 6)):
        write(folder, texts)
        if index is None:
            index = built(folder, tmp_path / "index", hierarchy)
        else:
            known = embedded(index)
            hierarchy.embed_model.batches.clear()
            index.update()
            asked = {text for batch in hierarchy.embed_model.batches for text in batch}
            assert not asked & known, f"state {i}"
        fresh = built(folder, tmp_path / f"fresh {i}", hierarchy_of(kind))
        assert guaranteed(index, kind) == guaranteed(fresh, kind), f"state {i}"
