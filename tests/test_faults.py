"""An index survives writers that fail or are killed, a full disk, and a clock that is set back."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from errno import ENOSPC
from pathlib import Path

import pytest
from edited_index import MODEL, EditedIndex, Planned, Tree, chunks_of
from faulty_writes import TO_CACHE, TO_TABLE, failing_writes
from histories import add, insert
from indexes import where
from llama_index.core.schema import Document
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from records import replace_all
from set_clock import run_with_clock

from hierindex import DocumentHierarchy, HierarchicalIndex, HierarchyStore
from hierindex.cache import cache_file
from hierindex.errors import InputError

FULL = f"lance error: LanceError(IO): No space left on device (os error {ENOSPC}), /rustc/x.rs:1"
WORDS_OF_ALL = VectorStoreQuery(
    query_str="met day", similarity_top_k=9, mode=VectorStoreQueryMode.TEXT_SEARCH
)

pytestmark = pytest.mark.filterwarnings("ignore:.* now has .* roots")
NO_SPACE = "The index '{}' cannot be used: No space left on device."
SECRET = "Zanzibar"


@pytest.fixture
def index(tmp_path) -> EditedIndex:
    """An index of two generations."""
    index = EditedIndex(tmp_path, Tree(DocumentHierarchy), 0)
    write(index, index.build())
    index.edit(add)
    write(index, index.update())
    return index


def write(index: EditedIndex, planned: Planned) -> None:
    planned[0]()
    index.note(planned[1], killed=False)
    index.check()


def refusal_of(write: Callable[[], object]) -> str:
    """In which words a write was refused; "" if it was not."""
    try:
        write()
    except InputError as error:
        return str(error)
    return ""


def files_that_mention(folder: Path, word: str) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if word.encode() in path.read_bytes()]


def planned(index: EditedIndex, what: str) -> Planned:
    index.edit(insert)
    match what:
        case "insert" | "add":
            return getattr(index, what)(f"x{len(index.now.held)}")
        case "delete" | "delete_from_store":
            return getattr(index, what)(min(index.now.held))
    return getattr(index, what)()


@pytest.mark.parametrize(
    ("what", "stays_full", "moments"),
    [
        ("delete", True, (1, 4)),
        *(
            pytest.param(what, stays_full, range(20), marks=pytest.mark.slow)
            for what in "add build delete delete_from_store regrow roll_back update".split()
            for stays_full in (False, True)
        ),
    ],
)
def test_a_disk_that_is_full_at_any_write(index, what, stays_full, moments):
    """Each write of it in turn; the next writer finds room."""
    for fails_at in moments:
        attempt = planned(index, what)
        with failing_writes(RuntimeError(FULL), fails_at, on=stays_full, methods=TO_TABLE) as made:
            assert refusal_of(attempt[0]) in ("", NO_SPACE.format(index.uri))
        index.note(attempt[1], killed=True)
        index.check(may_lack_indices="create_index" in made.made)  # LanceDB does without them
        assert index.store.query(WORDS_OF_ALL).ids
        if not made.have_failed:
            break
        write(index, index.insert(f"y{fails_at}"))
    assert made.have_failed == (len(moments) < 20)


@pytest.mark.parametrize(
    ("from_store", "moments"),
    [
        (False, (0, 3)),
        pytest.param(False, range(20), marks=pytest.mark.slow),
        pytest.param(True, range(20), marks=pytest.mark.slow),
    ],
)
def test_a_deletion_that_fails_is_ended_by_the_next_writer(tmp_path, from_store, moments):
    """Of an index of many generations."""
    store = HierarchyStore(tmp_path, keep_generations=5)
    index = HierarchicalIndex(store, MODEL)
    hierarchy = Tree(DocumentHierarchy).hierarchy()
    replace_all(store, hierarchy(chunks_of("kept", "Nothing is secret.")))
    for fails_at in moments:
        index.insert(Document(text=f"{SECRET} lies by the sea, {fails_at}.", id_="secret"))
        with failing_writes(RuntimeError(FULL), fails_at, methods=TO_TABLE) as made:
            refusal_of(lambda: store.delete("secret") if from_store else index.delete("secret"))
        if store.get_nodes(filters=where(documents="secret")):
            index.delete("secret")
        index.insert(Document(text=f"The next writer, {fails_at}.", id_="other"))
        assert not files_that_mention(tmp_path, SECRET)
        if not made.have_failed:
            break
    assert made.have_failed == (len(moments) < 20)


@pytest.mark.parametrize(
    "what",
    [
        "delete_from_store",
        "delete",
        *(pytest.param(what, marks=pytest.mark.slow) for what in ("update", "add")),
    ],
)
def test_a_cache_that_cannot_be_written(index, what):
    """The index is written all the same; the cache goes with deleted text."""
    full = sqlite3.OperationalError("database or disk is full")
    with failing_writes(full, 0, on=True, methods=TO_CACHE) as made:
        write(index, planned(index, what))
    assert made.have_failed
    if what.startswith("delete"):
        assert not cache_file(str(index.uri)).exists()
    write(index, planned(index, "update"))


@pytest.fixture
def disk(tmp_path) -> Iterator[Path]:
    """A disk of 3 MB."""
    (disk := tmp_path / "disk").mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)]
    if sys.platform != "linux" or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("only root can mount a small file system, on Linux")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.parametrize(
    "free",  # kilobytes; an update takes some 120
    [[8, 60], pytest.param([0, *range(4, 160, 8)], marks=pytest.mark.slow)],
)
def test_a_disk_that_is_really_full(disk, free):
    index = EditedIndex(disk, Tree(DocumentHierarchy), 0)
    write(index, index.build())
    ballast, refusals = disk / "ballast", set[str]()
    for n in free:
        attempt = index.insert(f"x{n}")
        ballast.write_bytes(bytes(max(0, shutil.disk_usage(disk).free - 1024 * n)))
        refusals.add(refusal_of(attempt[0]))
        index.note(attempt[1], killed=True)
        index.check(may_lack_indices=True)
        ballast.unlink()
        write(index, index.insert("y"))
    assert NO_SPACE.format(index.uri) in refusals <= {"", NO_SPACE.format(index.uri)}


SET_BACK = """
import random
from pathlib import Path
from llama_index.core.schema import TextNode
from records import replace_all
from set_clock import set_clock
from hierindex import HierarchicalIndex, HierarchyStore

def node(i, text): return TextNode(id_=i, text=text, embedding=[1.0, 0.0])
def files(): return [path for path in Path("i").rglob("*") if path.is_file()]
def secrets(): return sum(b"Zanzibar" in file.read_bytes() for file in files())

store, draw = HierarchyStore("i"), random.Random(0)
store.add([node("a", "Zanzibar lies by the sea."), node("b", "The keeper.")])
for _ in range(6):  # between an hour before and an hour after
    set_clock(draw.randint(-3600, 3600))
    store.add([node("c", f"Text {draw.random()}.")])
    assert not HierarchicalIndex(store).verify().failed
    assert sorted(n.node_id for n in store.get_nodes()) == ["a", "b", "c"]
    assert len(store.generations()) == 2
set_clock(-7200)
store.delete_nodes(["a"])
assert sorted(n.node_id for n in store.get_nodes()) == ["b", "c"]
assert len(store.generations()) == 1
print(secrets())
set_clock(7200)
for _ in range(2):
    replace_all(store, [node("c", "The last.")])
print(secrets(), len(store.client.open_table("nodes").list_versions()))
"""


@pytest.mark.slow
def test_a_clock_that_is_set_back_and_forth(tmp_path):
    """Old files may stay until it is right again; what is held and seen does not depend on it."""
    before, after, n_versions = run_with_clock(SET_BACK, tmp_path).split()
    assert (int(before) > 0, int(after)) == (True, 0)
    assert int(n_versions) < 10
