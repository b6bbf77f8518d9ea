"""An index through any sequence of edits, writes, faults and rollbacks, beside a model of it."""

import random
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from edited_index import KINDS, EditedIndex, Planned, Tree
from faulty_writes import ALL, TO_TABLE, failing_writes
from histories import EDITS, Texts
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from indexes import Hierarchy

from hierindex import HierarchicalIndex, HierindexError
from hierindex.errors import GenerationError
from hierindex.tree import earlier

pytestmark = pytest.mark.filterwarnings("ignore:.* now has .* roots")

TABLE = st.tuples(st.just(TO_TABLE), st.integers(0, 8))
KILLS = TABLE | st.tuples(st.just(ALL), st.integers(0, 40))
"""Which writes count, and after how many of them the writer is killed."""


class AnyHistory(RuleBasedStateMachine):
    """Each write may be killed, if the rule before says so."""

    def __init__(self) -> None:
        super().__init__()
        self.place, self.patch = Path(tempfile.mkdtemp()), pytest.MonkeyPatch()
        self.kill: tuple[Any, int] | None = None  # of the next write
        self.was_killed = False  # the last write
        self.is_checked = False  # since then
        self.pinned: tuple[Any, dict[str, list]] | None = None

    def teardown(self) -> None:
        self.patch.undo()
        shutil.rmtree(self.place)

    @initialize(
        kind=st.sampled_from(KINDS),
        seed=st.integers(0, 99),
        kill=st.none() | KILLS,
        few=st.sampled_from([3, earlier.FEW]),  # larger levels are searched, not read as a whole
    )
    def first_build(self, kind: type[Hierarchy], seed: int, kill: Any, few: int) -> None:
        self.patch.setattr(earlier, "FEW", few)
        self.index = EditedIndex(self.place, Tree(kind), seed)
        self.kill = kill
        self.build()
        if not self.index.now.held:
            self.build()

    def act(self, planned: Planned, refusal: str = "$^") -> bool:
        """Write, or be killed while writing; the index then is what it was or as it is to be.

        Return whether the write was refused in words that match `refusal`.
        """
        write, after = planned
        self.is_checked = False
        (methods, at), self.kill = self.kill or (ALL, None), None
        with failing_writes(ZeroDivisionError(), at, methods=methods) as writes:
            try:
                write()
            except ZeroDivisionError:
                pass
            except HierindexError as error:
                if not re.search(refusal, str(error)):
                    raise
                return True
        self.was_killed = writes.have_failed
        self.index.note(after, killed=self.was_killed)
        return False

    def chosen(self, data: st.DataObject, names: Any) -> str:
        return data.draw(st.sampled_from(sorted(names)))

    @rule(kill=KILLS)
    def kill_the_next_writer(self, kill: tuple[Any, int]) -> None:
        self.kill = kill

    @rule(edit=st.sampled_from(EDITS), n=st.integers(1, 2))
    def edit(self, edit: Callable[[random.Random, Texts], None], n: int) -> None:
        for _ in range(n):
            self.index.edit(edit)

    @rule()
    def build(self) -> None:
        self.act(self.index.build())

    @rule()
    def update(self) -> None:
        planned = self.index.update()
        if self.act(planned, "update would remove|Nothing to index"):
            assert self.index.most_files_are_gone or not planned[1].held

    @rule(data=st.data())
    def update_one_file(self, data: st.DataObject) -> None:
        self.act(self.index.update_file(self.chosen(data, self.index.files)))

    @rule(document=st.sampled_from("xy"))
    def insert(self, document: str) -> None:
        self.act(self.index.insert(document))

    @rule(data=st.data(), from_store=st.booleans())
    @precondition(lambda self: len(self.index.now.held) > 1)
    def delete(self, data: st.DataObject, from_store: bool) -> None:
        document = self.chosen(data, self.index.now.held)
        delete = self.index.delete_from_store if from_store else self.index.delete
        self.act(delete(document))
        if not self.was_killed:
            assert len(self.index.generations()) == 1

    @rule(data=st.data())
    @precondition(lambda self: not {*"uvw"} <= self.index.now.held.keys())
    def add_by_a_pipeline(self, data: st.DataObject) -> None:
        self.act(self.index.add(self.chosen(data, {*"uvw"} - self.index.now.held.keys())))

    @rule()
    def regrow(self) -> None:
        self.act(self.index.regrow())

    @rule()
    def roll_back(self) -> None:
        planned = self.index.roll_back()
        if self.act(planned, "holds no generation before"):
            # A deletion that was killed is ended by the next writer.
            assert not planned[1].held or self.was_killed

    @rule()
    def repair(self) -> None:
        before = self.index.generations()
        assert HierarchicalIndex(self.index.store).verify(repair=True).repaired == ()
        assert self.index.generations() == before
        self.is_checked = False

    @rule()
    def pin(self) -> None:
        snapshot = self.index.store.snapshot()
        self.pinned = snapshot, snapshot.select("id", "text", "vector")

    @invariant()
    def holds(self) -> None:
        if not self.is_checked:
            self.index.check()
            self.is_checked = True

    @invariant()
    def a_pinned_reader_sees_its_own_generation(self) -> None:
        if self.pinned is None:
            return
        snapshot, seen = self.pinned
        try:
            assert snapshot.select("id", "text", "vector") == seen
        except GenerationError:
            assert snapshot.generation < max(self.index.states)
            self.pinned = None


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(
    max_examples=3 * settings().max_examples // 8, stateful_step_count=10
)
