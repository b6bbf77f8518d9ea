"""What is exported and where: all nodes in a reproducible order, and new files and folders."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from uuid import uuid4

from hierindex.errors import InputError
from hierindex.node import Node
from hierindex.store.rows import NODE_COLUMNS, to_nodes
from hierindex.store.snapshot import Snapshot

NO_NODES = "The index is empty: there is nothing to export."


def ordered_nodes(snapshot: Snapshot) -> list[Node]:
    """Return all nodes without vectors, sorted by level, documents, place in them and id.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, or it is empty.
    """
    snapshot.require()
    nodes = to_nodes(snapshot.select(*NODE_COLUMNS))
    if not nodes:
        raise InputError(NO_NODES)
    return sorted(nodes, key=_place)


def _place(node: Node) -> tuple[int, list[str], int, str]:
    return node.level, list(node.documents), node.start, node.id


@contextmanager
def new(target: str | Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield a temporary path, which is renamed to the target on success and deleted on failure.

    Parameters
    ----------
    target : str or Path
        Missing parent folders are created.
    folder : bool
        Whether the target is a folder, which may exist if it is empty.

    Raises
    ------
    InputError
        If the target exists or cannot be written.
    """
    named = Path(target)
    target = named.absolute()
    partial = target.with_name(f".{target.name}-{uuid4().hex[:8]}")
    try:
        is_empty_folder = folder and named.is_dir() and not any(named.iterdir())
        if named.exists() and not is_empty_folder:
            raise InputError(f"{str(named)!r} exists already; choose another path or remove it.")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield partial
            if target.is_dir():
                target.rmdir()
            partial.rename(target)
        finally:
            if partial.is_dir():
                rmtree(partial)
            else:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{str(named)!r} cannot be written: {error}.") from error
