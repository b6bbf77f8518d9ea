"""Generations of a store: what is published, what is seen, and what remains in the files."""

import json
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from shutil import rmtree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lancedb.index import Bitmap
from lancedb.table import LanceTable
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from records import replace_all, revise
from store.trees import columns_of

from hierindex import HierarchyStore
from hierindex.errors import GenerationError, IndexNotFoundError, InputError
from hierindex.store import connection, search, snapshot, table
from hierindex.store.connection import HOLDER
from hierindex.store.generations import SLACK, published


def node(node_id="a", text=None):
    return TextNode(id_=node_id, text=text or f"text of {node_id}", embedding=[1.0, 0.0])


def nodes(ids):
    return [node(node_id) for node_id in ids]


def held(store):
    return "".join(sorted(columns_of(store, "id")["id"]))


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class KilledError(BaseException):
    """In place of SIGKILL."""


@contextmanager
def killed_before_publishing():
    """A write that is killed after its rows and indices are written."""

    def kill(*_):
        raise KilledError

    with pytest.MonkeyPatch.context() as patch, suppress(KilledError):
        patch.setattr(table, "publish", kill)
        yield
        pytest.fail("it was not killed")


@pytest.fixture
def store(tmp_path):
    return HierarchyStore(tmp_path)


def test_each_write_publishes_one_generation(store):
    assert store.snapshot().generation == 0
    assert store.generations() == []
    store.add(nodes("ab"))
    store.add(nodes("bc"))
    assert replace_all(store, nodes("de"), {"changes": {"added": 2}}) == 3
    assert store.snapshot().generation == 3
    second, third = store.generations()
    assert second == {
        "generation": 2,
        "time": second["time"],
        "documents": 3,
        "levels": 1,
        "nodes": 3,
        "what": "add",
        "changes": {"nodes_added": 1, "nodes_changed": 1},
    }
    assert (third["what"], third["nodes"], third["changes"]) == ("build", 2, {"added": 2})
    assert abs(datetime.now(UTC) - datetime.fromisoformat(third["time"])).total_seconds() < 60


@pytest.mark.parametrize("kill", [False, True], ids=["whole", "killed"])
def test_rebuilds_do_not_let_the_folder_grow(tmp_path, kill):
    store = HierarchyStore(tmp_path)
    replace_all(store, [node(str(i), f"text {i} " * 9) for i in range(200)])
    once = size(tmp_path)
    for build in range(4):
        rows = [node(str(i), f"text {i} {build} " * 9) for i in range(200)]
        if kill:
            with killed_before_publishing():
                replace_all(store, rows)
        else:
            replace_all(store, rows)
    assert size(tmp_path) < 3.2 * once


def test_files_of_a_killed_writer_are_removed(tmp_path, store):
    store.add(nodes("a"))
    stray = tmp_path / "nodes.lance" / "data" / "0123456789abcdef.lance"
    stray.write_bytes(b"rows that were never committed")
    (tmp_path / HOLDER).write_text("{}")
    store.add(nodes("b"))
    assert not stray.exists()
    assert held(store) == "ab"
    assert not (tmp_path / HOLDER).exists()


def test_recovery_moves_a_generation_to_another_version_which_is_then_read(tmp_path, store):
    store.add(nodes("a"))
    before = store.snapshot().require().version
    with killed_before_publishing():
        HierarchyStore(tmp_path).add(nodes("b"))
    with store.table.writing("update"):
        read = store.snapshot().require()
        assert read.version == published(read)[1] > before
        assert held(store) == "a"


def test_additions_are_cleaned_up_once_they_are_joined(tmp_path, store, monkeypatch):
    monkeypatch.setattr(search, "SMALL_FRAGMENTS", 4)
    sizes = []
    for i in range(9):
        store.add([node(str(i))])
        sizes.append(len(store.client.open_table("nodes").list_versions()))
    assert max(sizes) < 20
    stats = store.client.open_table("nodes").stats()
    assert stats["fragment_stats"]["num_fragments"] < 4
    assert stats["num_rows"] == len(store.get_nodes()) == 9


@pytest.mark.parametrize("keep", [1, 3])
def test_the_last_generations_are_kept(tmp_path, keep):
    store = HierarchyStore(tmp_path, keep_generations=keep)
    for i in range(4):
        replace_all(store, nodes("abcd"[: i + 1]), {"n": i})
    kept = [*range(5 - keep, 5)]
    assert [each["generation"] for each in store.generations()] == kept
    for n in kept:
        pinned = store.snapshot(n)
        assert (pinned.generation, pinned.report()) == (n, {"n": n - 1})
        assert len(store.get_nodes()) == 4
    with pytest.raises(
        GenerationError, match=rf"not hold generation {4 - keep}; it holds {kept[0]}"
    ):
        store.snapshot(4 - keep)
    again = HierarchyStore.from_dict(json.loads(json.dumps(store.to_dict())))
    assert again.keep_generations == keep


def test_batches_have_each_row_once_after_writes_that_leave_gaps(store, monkeypatch):
    monkeypatch.setattr(snapshot, "BATCH", 5)
    store.add([node(f"{i:02}") for i in range(23)])
    for i in range(6):
        revise(store, [node(f"new {i}"), node(f"{3 * i:02}", "changed")], [f"{3 * i + 1:02}"])
        reader = store.snapshot()
        read = [row for batch in reader.batches("id", "text") for row in batch.to_pylist()]
        assert read == reader.select("id", "text").to_pylist()
        assert len(read) == 23


class TestRollback:
    def test_an_earlier_generation_is_published_anew(self, store):
        replace_all(store, nodes("ab"), {"by": "first"})
        replace_all(store, nodes("cd"), {"by": "second"})
        assert store.rollback() == 3
        assert (held(store), store.snapshot().report()) == ("ab", {"by": "first"})
        assert store.generations()[-1]["changes"] == {"generation": 1}
        mode = VectorStoreQueryMode.TEXT_SEARCH
        words = VectorStoreQuery(query_str="text", similarity_top_k=9, mode=mode)
        assert sorted(store.query(words).ids) == ["a", "b"]
        assert store.rollback(2) == 4
        assert held(store) == "cd"
        assert replace_all(store, nodes("e")) == 5
        store.add(nodes("f"))
        assert held(store) == "ef"

    def test_the_number_must_be_that_of_an_earlier_one(self, store):
        with pytest.raises(IndexNotFoundError):
            store.rollback()
        store.add(nodes("a"))
        with pytest.raises(InputError, match=r"holds no generation before 1\.$"):
            store.rollback()
        store.add(nodes("b"))
        with pytest.raises(
            InputError, match=r"Generation 2 .* is the current one; name one of 1\."
        ):
            store.rollback(2)
        with pytest.raises(GenerationError, match=r"not hold generation 7; it holds 1, 2\.$"):
            store.rollback(7)
        assert store.snapshot().generation == 2

    def test_after_a_deletion_there_is_no_way_back(self, store):
        store.add(nodes("a"))
        store.add(nodes("b"))
        store.delete_nodes(["b"])
        with pytest.raises(InputError, match="before 3, as a write or a deletion removed"):
            store.rollback()


class TestReaders:
    def test_a_pinned_reader_is_told_once_its_generation_is_removed(self, store):
        replace_all(store, nodes("ab"))
        pinned = store.snapshot()
        time.sleep(SLACK[1])  # a slow machine needs it, which keeps what is younger
        replace_all(store, nodes("cd"))
        assert [n.id for n in pinned.nodes()] == ["a", "b"]
        replace_all(store, nodes("ef"))
        reads = [
            lambda: pinned.nodes(),
            lambda: pinned.select("text"),
            lambda: store.at(pinned).query(VectorStoreQuery([1.0, 0.0])),
            lambda: pinned.maker(),
            lambda: pinned.has_key("author"),
            lambda: next(pinned.batches("id")),
        ]
        for read in reads:
            with pytest.raises(GenerationError, match=r"Generation 1 of .* was removed by a later"):
                read()

    def test_a_deletion_leaves_nothing_to_read(self, store, monkeypatch):
        monkeypatch.setattr(snapshot, "BATCH", 2)
        store.add(nodes("abcde"))
        batches = store.snapshot().batches("id")
        next(batches)
        store.delete_nodes([*"abcd"])
        with pytest.raises(GenerationError, match="removed"):
            next(batches)
        assert [batch["id"].to_pylist() for batch in store.snapshot().batches("id")] == [["e"]]

    def test_a_pinned_store_is_not_written(self, store):
        replace_all(store, nodes("ab"))
        pinned = store.at(store.snapshot())
        replace_all(store, nodes("cd"))
        writes = [
            lambda: pinned.add(nodes("e")),
            lambda: pinned.delete("a.txt"),
            lambda: pinned.delete_nodes(["a"]),
            lambda: pinned.rollback(1),
            lambda: pinned.clear(),
        ]
        for write in writes:
            with pytest.raises(InputError, match="read-only"):
                write()
        assert [n.id for n in store.snapshot().nodes()] == ["c", "d"]

    def test_a_question_whose_generation_is_removed_is_asked_again(self, tmp_path):
        writer = HierarchyStore(tmp_path)
        replace_all(writer, nodes("ab"))

        class Slow(HierarchyStore):
            def snapshot(self, generation=None):
                snapshot = super().snapshot(generation)
                if len(taken) < 2:
                    for ids in ("cd", "ef"):
                        replace_all(writer, nodes(ids))
                taken.append(snapshot.generation)
                return snapshot

        taken = []
        assert sorted(Slow(tmp_path).query(VectorStoreQuery([1.0, 0.0], 9)).ids) == ["e", "f"]
        assert taken == [1, 3, 5]
        taken.clear()
        assert len(Slow(tmp_path).get_nodes()) == 2

    def test_a_damaged_table_is_not_taken_for_a_removed_generation(self, tmp_path, store):
        replace_all(store, nodes("ab"))
        for file in (tmp_path / "nodes.lance" / "data").iterdir():
            file.unlink()
        with pytest.raises(RuntimeError, match="Not found"):
            store.get_nodes()


class TestWriters:
    def test_the_second_is_told_who_writes(self, tmp_path, store):
        store.add(nodes("a"))
        with store.table.writing("build"):
            store.add(nodes("b"))
            assert store.generations()[-1]["what"] == "build"  # what the outermost does
            with (
                pytest.raises(
                    InputError, match=r"process \d+ on .* \(build, since \d\d:\d\d\); try"
                ),
                HierarchyStore(tmp_path).table.writing("update"),
            ):
                pass
            assert held(HierarchyStore(tmp_path)) == "ab"
        with HierarchyStore(tmp_path).table.writing("update"):
            pass

    def test_an_addition_waits_no_longer_than_a_minute(self, tmp_path, store, monkeypatch):
        monkeypatch.setattr(connection, "PATIENCE", 0.01)
        with (
            store.table.writing("build"),
            pytest.raises(InputError, match="is being written by process"),
        ):
            HierarchyStore(tmp_path).add(nodes("a"))

    @pytest.mark.parametrize("folder", [".", "new", "new/and/newer"])
    def test_a_writer_that_writes_nothing_leaves_nothing(self, tmp_path, folder):
        def write_nothing():
            with HierarchyStore(tmp_path / folder).table.writing("build"):
                raise InputError("Nothing to index.")

        with pytest.raises(InputError, match="Nothing"):
            write_nothing()
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_is_deleted_while_it_is_written(self, tmp_path):
        store = HierarchyStore(tmp_path / "index")
        with store.table.writing("build"):
            rmtree(tmp_path / "index")
        store.add(nodes("a"))
        assert held(store) == "a"

    def test_a_failed_recovery_frees_the_lock(self, tmp_path, store, monkeypatch):
        def fail(*_):
            raise KilledError

        store.add(nodes("a"))
        (tmp_path / HOLDER).write_text("{}")
        with monkeypatch.context() as patch:
            patch.setattr(store._table.lock, "_recover", fail)
            with pytest.raises(KilledError):
                store.add(nodes("b"))
        store.add(nodes("c"))
        assert held(store) == "ac"


SECRET = "the keeper buried zanzibar gold beneath the lighthouse stairs"


def mentions(folder, text):
    """The files that contain a text."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if text.encode() in path.read_bytes()]


def test_a_deletion_leaves_no_byte_of_the_text(tmp_path, store):
    store.add([node("a", SECRET), *(node(f"{i}") for i in range(40))])
    store.add([node("later")])
    words = VectorStoreQuery(query_str="zanzibar", mode=VectorStoreQueryMode.TEXT_SEARCH)
    assert store.query(words).ids == ["a"]
    assert mentions(tmp_path, SECRET)
    store.delete_nodes(["a"])
    assert store.query(words).ids == []
    assert not mentions(tmp_path, SECRET)
    assert not mentions(tmp_path, "zanzibar")
    opened = store.client.open_table("nodes")
    for version in opened.list_versions():
        opened.checkout(version["version"])
        assert "a" not in opened.to_arrow()["id"].to_pylist()
    assert len(store.get_nodes()) == 41


def test_what_cannot_be_purged_is_told(store, monkeypatch, caplog):
    def refuse(*_, **__):
        raise RuntimeError("a file is in use")

    store.add(nodes("ab"))
    with monkeypatch.context() as patch:
        patch.setattr("lancedb.table.LanceTable.optimize", refuse)
        store.delete_nodes(["a"])
    assert "still contain deleted text" in caplog.text
    assert held(store) == "b"
    store.add(nodes("c"))


def test_a_purge_is_done_though_an_index_is_improved_after_it(tmp_path, store, monkeypatch, caplog):
    optimize = LanceTable.optimize

    def improving(table, **options):
        optimize(table, **options)
        table.create_index("kind", config=Bitmap())  # as LanceDB splits parts of vectors

    store.add([node("a", SECRET), node("b")])
    with monkeypatch.context() as patch:
        patch.setattr(LanceTable, "optimize", improving)
        store.delete_nodes(["a"])
    assert not mentions(tmp_path, SECRET)
    assert "deleted text" not in caplog.text
    store.add(nodes("c"))
    assert held(store) == "bc"


kinds = st.sampled_from(["add", "replace", "delete", "rollback", "killed add", "killed replace"])


@given(st.lists(st.tuples(kinds, st.sampled_from(["a", "b", "cd", "ad"])), max_size=5))
@example([("add", "a"), ("killed add", "cd"), ("add", "b")])
@example([("add", "a"), ("add", "b"), ("killed replace", "cd"), ("add", "ad")])
def test_any_history_is_that_of_its_whole_writes(tmp_path_factory, history):
    folder = tmp_path_factory.mktemp("index")
    store, kept = HierarchyStore(folder), list[set]()
    for kind, ids in history:
        match kind.split():
            case ["killed", name]:
                with killed_before_publishing():
                    write = store.add if name == "add" else lambda some: replace_all(store, some)
                    write(nodes(ids))
            case ["add"]:
                store.add(nodes(ids))
                kept.append({*(kept or [set()])[-1], *ids})
            case ["replace"]:
                replace_all(store, nodes(ids))
                kept.append({*ids})
            case ["delete"] if kept and kept[-1] & {*ids}:
                store.delete_nodes([*ids])
                kept = [kept[-1] - {*ids}]
            case ["rollback"] if len(kept) > 1:
                store.rollback()
                kept.append(kept[-2])
        kept = kept[-2:]
        assert held(store) == "".join(sorted(kept[-1] if kept else ""))
        assert len(store.generations()) == len(kept)


OF_ANOTHER = {
    "add": lambda other, _: other.add(nodes("c")),
    "the same again": lambda other, _: other.add(nodes("a")),
    "delete": lambda other, _: other.delete_nodes(["a"]),
    "roll back": lambda other, _: other.rollback(),
    "clear": lambda other, _: other.clear(),
    "build anew": lambda other, _: (other.clear(), other.add(nodes("xyz"))),
    "keep fewer": lambda _, folder: HierarchyStore(folder, keep_generations=1).add(nodes("d")),
    "delete the folder": lambda _, folder: rmtree(folder, ignore_errors=True),
    "another folder": lambda _, folder: (
        rmtree(folder, ignore_errors=True),
        HierarchyStore(folder, keep_generations=3).add(nodes("w")),
    ),
}


def test_a_generation_of_another_process_is_read_at_once(tmp_path) -> None:
    other, reader = HierarchyStore(tmp_path, keep_generations=3), HierarchyStore(tmp_path)
    other.add(nodes("a"))
    other.add(nodes("b"))
    for write in [*OF_ANOTHER, "add"]:
        reader.snapshot()
        with suppress(InputError):  # nothing is left to roll back or to delete
            OF_ANOTHER[write](other, tmp_path)
        fresh = HierarchyStore(tmp_path)
        assert reader.snapshot() == fresh.snapshot()
        assert held(reader) == held(fresh)
