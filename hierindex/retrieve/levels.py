"""The option `level`: reading it and checking it against the mode and the tree."""

from collections.abc import Sequence

from hierindex.errors import InputError, LevelError
from hierindex.store.snapshot import Snapshot

WITH_LEVEL = ("level", "traversal")


def levels_of(level: int | Sequence[int] | None) -> tuple[int, ...]:
    """Return the distinct levels in ascending order.

    Raises
    ------
    InputError
        If one is not an integer.
    """
    levels = () if level is None else tuple(level) if isinstance(level, Sequence) else (level,)
    if any(type(each) is not int for each in levels):
        raise InputError(f"level must be a whole number or a sequence of them, got {level!r}.")
    return tuple(sorted(set(levels)))


def check_mode(mode: str, levels: Sequence[int]) -> None:
    """Raise InputError if a mode does not take these levels."""
    if levels and mode not in WITH_LEVEL:
        raise InputError(f"level needs mode {' or '.join(WITH_LEVEL)}, got mode {mode!r}.")
    if mode == "level" and not levels:
        raise InputError("mode 'level' needs a level; pass level=0 (--level 0) for the chunks.")
    if mode == "traversal" and len(levels) > 1:
        raise InputError(f"mode 'traversal' takes one level, got {list(levels)}.")


def check_level(level: int, highest: int) -> None:
    """Raise LevelError if no node reaches a level."""
    if not 0 <= level <= highest:
        raise LevelError(f"The index has levels 0 to {highest}, got level {level}.")


async def check_levels(snapshot: Snapshot, levels: Sequence[int]) -> None:
    """Raise LevelError if the tree, where it exists, lacks one of the levels."""
    if snapshot.exists:
        highest = await snapshot.highest_level()
        for level in levels:
            check_level(level, highest)
