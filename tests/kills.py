"""Writers that are killed at random moments, one after the other, and what is then left."""

import random
import tempfile
import traceback
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from edited_index import EditedIndex, Planned, Tree
from histories import EDITS
from readers_beside import Seen, read
from writers import Told, Writer

AT = {  # weights of the stages at which writers are killed
    "begin": 1,
    "grow": 2,
    "write": 4,
    "index": 3,
    "publish": 4,
    "clean up": 4,
    "recover": 2,
    "sweep": 2,
}
WRITES = {"build": 3, "update": 5, "insert": 2, "delete": 3, "delete_from_store": 1, "add": 2}
WRITES |= {"roll_back": 2, "regrow": 1}
A_MOMENT = 0.005  # seconds of a stage that has not been seen yet


class Growth(NamedTuple):
    """Of the folder of an index, in folders of a fresh build of its documents."""

    most_bytes: float
    most_files: float
    last_bytes: float
    last_files: float


@dataclass
class Figures:
    """What a soak has counted; `lost` and `repeated` must be empty and 0.

    `killed` is by stage, `published` says how many of these had published before, `written` is by
    what was done in full. `paid` are results of models that are in the cache, `repeated` those that
    a killed writer had put there and the next one paid for again. `lost` says what was wrong with
    an index after a kill.
    """

    killed: Counter[str] = field(default_factory=Counter)
    published: int = 0
    written: Counter[str] = field(default_factory=Counter)
    paid: int = 0
    repeated: int = 0
    lost: list[str] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)


class Soak:
    """Kills writers of one index after the other, each beside a reader.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.figures = Figures()
        self._lasted: dict[str, list[float]] = defaultdict(list)  # seconds, by stage

    def of_one_index(self, tree: Tree, n_kills: int) -> None:
        """Kill so many writers of a new index, or until it is lost; it is checked each time."""
        with tempfile.TemporaryDirectory() as place:
            index = EditedIndex(Path(place), tree, self.draw.randrange(1000))
            reader = Writer(read, index.uri)
            try:
                self._many(index, self.figures.killed.total() + n_kills)
            except Exception as error:  # noqa: BLE001  # it is reported
                self.figures.lost.append("".join(traceback.format_exception(error, limit=-4)))
            (index.uri.parent / "stop").touch()
            told = reader.ended()
            if told.error:
                self.figures.lost.append(f"The reader: {told.error}")
            else:
                self.figures.seen.append(told.result)

    def _many(self, index: EditedIndex, n_kills: int) -> None:
        sizes = []
        while self.figures.killed.total() < n_kills:
            self._one(index, self._planned(index))
            sizes.append(size(index.uri))
        self._complete(index, index.build())
        sizes.append(size(index.uri))
        self.figures.growth.append(self._growth(index, sizes))

    def _growth(self, index: EditedIndex, sizes: list[tuple[int, int]]) -> Growth:
        with tempfile.TemporaryDirectory() as place:
            alone = replace(index.write("build"), uri=Path(place))
            alone()
            n_bytes, n_files = size(alone.uri)
        last, most = sizes[-1], [max(each) for each in zip(*sizes, strict=True)]
        return Growth(most[0] / n_bytes, most[1] / n_files, last[0] / n_bytes, last[1] / n_files)

    def _planned(self, index: EditedIndex) -> Planned:
        """What to do next; the folder is edited before."""
        for _ in range(self.draw.randint(0, 2)):
            index.edit(self.draw.choice(EDITS))
        held, may = sorted(index.now.held), dict(WRITES)
        if not held:
            return index.build()
        if index.most_files_are_gone or not index.update()[1].held:  # which would be refused
            del may["update"]
        if len(index.generations()) < 2:
            del may["roll_back"]
        if len(held) < 2:
            del may["delete"], may["delete_from_store"]
        if "u" in held:
            del may["add"]
        (what,) = self.draw.choices([*may], [*may.values()])
        match what:
            case "delete" | "delete_from_store":
                return getattr(index, what)(self.draw.choice(held))
            case "insert":
                return index.insert(self.draw.choice("xy"))
            case "add":
                return index.add("u")
        return getattr(index, what)()

    def _one(self, index: EditedIndex, planned: Planned) -> None:
        """Kill a writer at a random moment, check what it left, and do again what it did not do."""
        write, after = planned
        (at,) = self.draw.choices([*AT], [*AT.values()])
        lasted = median(self._lasted[at][-20:] or [A_MOMENT])
        told = Writer(write).ended(at, self.draw.uniform(0, lasted))
        self.figures.paid += len(told.paid)
        if not told.killed:
            self._note_stages(told)
            self._finished(index, planned, told)
            return
        stage = told.stages[-1][1] if told.stages else "begin"
        self.figures.killed[stage] += 1
        published = index.note(after, killed=True)
        index.check()
        if published:
            self.figures.published += 1
        elif self.draw.random() < 0.8:  # else something else is done next
            again = self._complete(index, planned)
            self.figures.repeated += len({*told.paid} & {*again.paid})

    def _complete(self, index: EditedIndex, planned: Planned) -> Told:
        told = Writer(planned[0]).ended()
        self.figures.paid += len(told.paid)
        self._finished(index, planned, told)
        return told

    def _finished(self, index: EditedIndex, planned: Planned, told: Told) -> None:
        write, after = planned
        if write.what == "roll_back" and "holds no generation before" in told.error:
            return  # a deletion that was killed is ended by the next writer
        assert not told.error, f"{write.what}: {told.error}"
        index.note(after, killed=False)
        index.check()
        self.figures.written[write.what] += 1

    def _note_stages(self, told: Told) -> None:
        for (start, stage), (end, _) in zip(told.stages, told.stages[1:], strict=False):
            self._lasted[stage].append(end - start)


def size(folder: Path) -> tuple[int, int]:
    """Bytes and number of the files of a folder."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(sizes), len(sizes)
