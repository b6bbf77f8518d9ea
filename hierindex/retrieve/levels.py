"""The option `level`: parsing, checks, and the nodes of levels."""

from collections.abc import Sequence
from typing import Literal, get_args

from hierindex.core.arguments import require
from hierindex.errors import InputError, LevelError
from hierindex.retrieve.search import cuts
from hierindex.retrieve.selection import WHOLE
from hierindex.store.filters import Filters, Prefilter
from hierindex.store.snapshot import Snapshot, once

Word = Literal["top", "documents", "chunks"]
Level = int | Word
WORDS: tuple[Word, ...] = get_args(Word)
DOCUMENTS: Word = "documents"  # nodes of several levels
WITH_LEVEL = ("level", "traversal")


def levels_of(level: Level | Sequence[Level] | None) -> tuple[Level, ...]:
    """Return the distinct levels: numbers in ascending order ("chunks" is 0), then words.

    Raises
    ------
    InputError
        If one is neither an integer nor a word, or cannot be combined with others.

    Examples
    --------
    >>> levels_of(["top", "chunks", 1])
    (0, 1, 'top')
    """
    given = (level,) if isinstance(level, str) else level
    levels = () if given is None else tuple(given) if isinstance(given, Sequence) else (given,)
    are_known = all(type(each) is int or each in WORDS for each in levels)
    one_of = f"a whole number, one of {', '.join(WORDS)}, or a sequence of them"
    require(are_known, "level", one_of, level)
    distinct: set[Level] = {0 if each == "chunks" else each for each in levels}
    if len(distinct) > 1 and DOCUMENTS in distinct:
        raise InputError(f"level 'documents' cannot be combined with others, got {list(levels)}.")
    return tuple(sorted(distinct, key=lambda each: (isinstance(each, str), each)))


def check_mode(mode: str, levels: Sequence[Level]) -> None:
    """Raise InputError if a mode does not support these levels."""
    if levels and mode not in WITH_LEVEL:
        raise InputError(f"level needs mode {' or '.join(WITH_LEVEL)}, got mode {mode!r}.")
    if mode == "level" and not levels:
        raise InputError("mode 'level' needs a level; pass level=0 (--level 0) for the chunks.")
    if mode == "traversal" and (len(levels) > 1 or DOCUMENTS in levels):
        raise InputError(
            f"mode 'traversal' takes one number, top or chunks as level, got {list(levels)}; "
            "omit mode."
        )


def ids_at(snapshot: Snapshot, level: Level) -> frozenset[str]:
    """Return the ids of the nodes of a level.

    Raises
    ------
    InputError
        If `level` is not a valid level.
    LevelError
        If the tree does not have the level.
    """
    return frozenset(snapshot.ids(cut_of(snapshot, levels_of(level)), Prefilter()))


def numbers(snapshot: Snapshot, levels: Sequence[Level]) -> list[int]:
    """Return the levels with "top" replaced by its number.

    Raises
    ------
    LevelError
        If there is a tree and it lacks one of the levels.
    """
    highest = snapshot.highest_level()
    found = [each if isinstance(each, int) else highest for each in levels]
    for level in found if snapshot.exists else ():
        if not 0 <= level <= highest:
            raise LevelError(f"The index has levels 0 to {highest}, got level {level}.")
    return found


def cut_of(snapshot: Snapshot, levels: Sequence[Level]) -> Filters:
    """Return the filters of the nodes of these levels.

    Raises
    ------
    LevelError
        If there is a tree and it lacks one of the levels.
    """
    if not snapshot.exists or DOCUMENTS not in levels:
        return cuts(numbers(snapshot, levels))
    documents, lacking = documents_lacking_a_node(snapshot)
    if lacking:
        raise LevelError(
            f"level 'documents' needs a summary of each document, which {lacking} of {documents} "
            "lack; build with method semantic or document, or use top, chunks or a level from 0 "
            f"to {snapshot.highest_level()}."
        )
    return Filters((WHOLE,))


@once
def documents_lacking_a_node(snapshot: Snapshot) -> tuple[int, int]:
    """Return the number of documents, and how many have no node over exactly their chunks."""
    import pyarrow.compute as pc

    rows = snapshot.select("documents", "whole_document")
    documents = {*pc.list_flatten(rows["documents"]).unique().to_pylist()}
    whole = {*rows["whole_document"].unique().to_pylist()}
    return len(documents), len(documents - whole)
