"""Writers in processes of their own: killed ones, two at once, and a reader beside them."""

import random

import pytest
from edited_index import EditedIndex, Planned, State, Tree
from histories import EDITS
from llama_index.core.schema import TextNode
from readers_beside import read
from records import replace_all
from writers import STAGES, Writer

from hierindex import DocumentHierarchy, HierarchyStore, RaptorHierarchy, SemanticHierarchy

A_MOMENT = 0.02  # seconds from the start of a stage to a kill, at most
BUSY = "is being written by process"


@pytest.mark.parametrize(
    ("kind", "n_kills"),
    [
        (DocumentHierarchy, 1),
        pytest.param(SemanticHierarchy, 20, marks=pytest.mark.slow),
        pytest.param(RaptorHierarchy, 20, marks=pytest.mark.slow),
    ],
)
def test_writers_that_are_killed(tmp_path, kind, n_kills):
    """Each at a random moment of a stage, beside a reader; what is left is verified.

    A writer may end before its kill, so others follow until enough were killed.
    """
    index, draw = EditedIndex(tmp_path, Tree(kind, rewritten=True), 0), random.Random(0)
    reader, n_killed = Writer(read, index.uri), 0
    for _ in range(20 * n_kills):
        index.edit(draw.choice(EDITS))
        write, after = draw.choice([index.build, index.build, lambda: index.insert("x")])()
        told = Writer(write).ended(draw.choice([*STAGES]), draw.uniform(0, A_MOMENT))
        n_killed += told.killed
        assert told.error == ""
        index.note(after, killed=told.killed)
        index.check()
        if n_killed == n_kills:
            break
    (tmp_path / "stop").touch()
    seen = reader.ended().result
    assert n_killed == n_kills
    assert (seen.mixtures, seen.n_mixtures) == ([], 0)


@pytest.fixture
def index(tmp_path) -> EditedIndex:
    index = EditedIndex(tmp_path, Tree(DocumentHierarchy), 0)
    write, after = index.build()
    write()
    index.note(after, killed=False)
    return index


def at_once(*planned: Planned) -> list[str]:
    """How each of these writes failed, "" if it did not; they are done at the same time."""
    writers = [Writer(write) for write, _ in planned]
    return [writer.ended().error for writer in writers]


@pytest.mark.parametrize("n_rounds", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_two_short_writes_at_once_wait_for_each_other(index, n_rounds):
    for n in range(n_rounds):
        (one, first), (other, second) = index.add(f"u{n}"), index.add(f"v{n}")
        held = index.now.held
        assert at_once((one, first), (other, second)) == ["", ""]
        before, latest = index.generations()
        first_was_first = f"u{n}" in index.held_in(before)
        index.states[before] = first if first_was_first else second
        index.states[latest] = State(held | first.held | second.held, grown=False)
        index.check()


@pytest.mark.parametrize("n_rounds", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_of_two_builds_at_once_the_second_is_refused_or_comes_later(index, n_rounds):
    for _ in range(n_rounds):
        writes = index.build(), index.regrow()
        errors = at_once(*writes)
        assert all(error == "" or BUSY in error for error in errors)
        assert "" in errors
        for _ in range(errors.count("")):
            index.states[1 + max(index.states)] = index.now
        assert index.store.snapshot().generation == max(index.states)
        index.check()


@pytest.mark.parametrize("n_publishes", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_a_reader_through_many_publishes(tmp_path, n_publishes):
    """It reads each generation whole, or is told once that it is gone."""
    store = HierarchyStore(tmp_path / "index")
    reader = None
    for n in range(n_publishes):
        nodes = [
            TextNode(id_=f"{n} {i}", text=f"keeper {n}", embedding=[1.0] + [0.0] * 63)
            for i in range(20)
        ]
        replace_all(store, nodes)
        reader = reader or Writer(read, tmp_path / "index")
    (tmp_path / "stop").touch()
    told = reader.ended()
    assert told.error == ""
    assert (told.result.mixtures, told.result.n_mixtures) == ([], 0)
    assert told.result.n_readings > 0
    assert store.snapshot().generation == n_publishes
