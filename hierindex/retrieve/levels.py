"""The option `level`: parsing, checks, and the nodes of levels."""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, get_args

from hierindex.core.arguments import require
from hierindex.errors import InputError, LevelError
from hierindex.node import SECTION, SECTIONS, shared_section
from hierindex.store.filters import WHOLE, Prefilter, any_of, at_cut, by_ids, having
from hierindex.store.snapshot import Snapshot, once

Word = Literal["top", "documents", "sections", "chunks"]
Level = int | Word
WORDS: tuple[Word, ...] = get_args(Word)
ACROSS = {"documents", "sections"}  # words for nodes of several levels
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
    if len(distinct) > 1 and distinct & ACROSS:
        raise InputError(
            f"level 'documents' or 'sections' cannot be combined with others, got {list(levels)}."
        )
    return tuple(sorted(distinct, key=lambda each: (isinstance(each, str), each)))


def check_mode(mode: str, levels: Sequence[Level]) -> None:
    """Raise InputError if a mode does not support these levels."""
    if levels and mode not in WITH_LEVEL:
        raise InputError(f"level needs mode {' or '.join(WITH_LEVEL)}, got mode {mode!r}.")
    if mode == "level" and not levels:
        raise InputError("mode 'level' needs a level; pass level=0 (--level 0) for the chunks.")
    if mode == "traversal" and (len(levels) > 1 or not ACROSS.isdisjoint(levels)):
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
    return frozenset(snapshot.ids(None, cut_of(snapshot, levels_of(level))))


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


def cut_of(snapshot: Snapshot, levels: Sequence[Level]) -> Prefilter:
    """Return the condition that a node belongs to one of these levels.

    Raises
    ------
    LevelError
        If there is a tree and it lacks one of the levels.
    """
    if not snapshot.exists or ACROSS.isdisjoint(levels):
        return any_of([*map(at_cut, numbers(snapshot, levels))])
    if "documents" in levels:
        documents, lacking = documents_lacking_a_node(snapshot)
        if lacking:
            raise LevelError(
                f"level 'documents' needs a summary of each document, which {lacking} of "
                f"{documents} lack; build with method semantic or document, or use "
                f"{_others(snapshot)}."
            )
        return WHOLE
    sections = condition_of_sections(snapshot)
    if sections is None:
        raise LevelError(
            "level 'sections' needs documents with headings, and no chunk of the index is in a "
            f"section; use {_others(snapshot)}."
        )
    return sections


def _others(snapshot: Snapshot) -> str:
    """Return the levels that every index has."""
    return f"top, chunks or a level from 0 to {snapshot.highest_level()}"


@once
def documents_lacking_a_node(snapshot: Snapshot) -> tuple[int, int]:
    """Return the number of documents, and how many have no node over exactly their chunks."""
    import pyarrow.compute as pc

    rows = snapshot.select("documents", "whole_document")
    documents = {*pc.list_flatten(rows["documents"]).unique().to_pylist()}
    whole = {*rows["whole_document"].unique().to_pylist()}
    return len(documents), len(documents - whole)


@once
def condition_of_sections(snapshot: Snapshot) -> Prefilter | None:
    """Return the condition that a node is the highest of a section, or a chunk under no such node.

    All chunks under the summary of a section are of one document. They are of one section, or share
    more titles than all chunks of the document that are in a section. None if no chunk is in a
    section. Cached: reads the metadata of all nodes in sections, and the parents of all nodes. It
    lists ids, so with 20,000 of them, a search takes about half a second longer.
    """
    columns = ("id", "level", "documents", "metadata")
    rows = snapshot.select(*columns, where=having(SECTION)).to_pylist()
    sections = defaultdict[str, set[str]](set)  # of the chunks, by document
    summaries = list[tuple[str, str, str, bool]]()
    for row in rows:
        metadata, document = json.loads(row["metadata"]), row["documents"][0]
        section = metadata.get(SECTION)
        if not section or not isinstance(section, str):
            continue
        if row["level"] == 0:
            sections[document].add(section)
        elif len(row["documents"]) == 1:
            summaries.append((row["id"], document, section, SECTIONS not in metadata))
    if not sections:
        return None
    shared = {document: shared_section(of) for document, of in sections.items()}
    of = {
        node_id
        for node_id, document, section, is_one in summaries
        if is_one or len(section) > len(shared.get(document, ""))
    }
    there, others = list[str](), list[str]()
    for row in snapshot.select("id", "level", "parent_ids").to_pylist():
        is_there = (row["level"] == 0 or row["id"] in of) and of.isdisjoint(row["parent_ids"])
        (there if is_there else others).append(row["id"])
    return by_ids(there) if len(there) <= len(others) else ~by_ids(others)
