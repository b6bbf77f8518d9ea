"""The verification of an index: all checks, in one pass over ids and links and two over texts."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hierindex.errors import GenerationError, IndexNotFoundError
from hierindex.store.damage import DamagedError, damages
from hierindex.store.schema import NAMES
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import Table
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import wait_for
from hierindex.verify.contents import Contents
from hierindex.verify.documents import check_documents
from hierindex.verify.files import check_cache, check_files, check_indices
from hierindex.verify.links import COLUMNS, Links
from hierindex.verify.quotes import COLUMNS as QUOTED
from hierindex.verify.reading import opened, read
from hierindex.verify.repair import MENDABLE, repair_index
from hierindex.verify.report import Findings, Verification
from hierindex.verify.tree import check_tree


def verify(store: HierarchyStore, *, repair: bool = False) -> Verification:
    """Check the current state of an index against its invariants.

    Memory grows with ids, links and quotes, not with texts: these are read in batches, the
    chunks' twice. Each index of LanceDB is loaded once.

    Parameters
    ----------
    store : HierarchyStore
    repair : bool
        Whether to repair what needs no model, and then to check again.

    Raises
    ------
    IndexNotFoundError
        If there is no index.
    FormatError
        If another version of hierindex wrote it.
    """
    outcome = _verified(store)
    if repair and outcome.failed:
        before = outcome.failed
        # What is damaged is reported again by the checks.
        with store.writing("repair"), suppress(DamagedError):
            repair_index(store, before)
        outcome = _verified(store)
        holding = {check.name for check in outcome.checks if check.ok}
        done = [MENDABLE[name] for name in before if name in holding & MENDABLE.keys()]
        outcome = replace(outcome, repaired=tuple(done))
    return replace(outcome, left=tuple(_left(outcome, store.uri, repair=repair)))


def _verified(store: HierarchyStore) -> Verification:
    files, done = _local_files(store), [check_cache(store.uri)]
    generation = n_nodes = n_stale = 0
    try:
        snapshot = opened(store)
        generation = snapshot.generation
        done.append(_read_indices(store, generation))
        links = Links(read(snapshot, *COLUMNS))
        n_nodes, n_stale = links.n_rows, int(np.sum(~links.is_any("stale", "")))
        done += _check_rows(snapshot, links)
    except DamagedError as error:
        files.add(error.file or _only_file(store), f"rows cannot be read: {error.reason}")
    except (IndexNotFoundError, GenerationError):
        if files.check().ok:
            raise
    checks = [*done, files]
    return Verification(generation, n_nodes, n_stale, tuple(each.check() for each in checks))


def _check_rows(snapshot: Snapshot, links: Links) -> Iterator[Findings]:
    report = snapshot.report()
    settings = report.get("settings", {})
    is_built = snapshot.is_built
    contents = Contents(links, is_built=is_built)
    findings = contents.check(read(snapshot, *NAMES))
    single = "document" in contents.methods
    yield from check_tree(links, is_built=is_built, one_per_document=single)
    yield from check_documents(links, settings, one_per_document=single)
    yield from findings
    yield contents.quotes.check(read(snapshot, *QUOTED))
    yield check_report(report, contents)


def check_report(report: Mapping[str, Any], contents: Contents) -> Findings:
    """What is remembered of the last build has its form and names the model of the nodes."""
    found = Findings("report")
    for name, n in report.get("usage", {}).items():
        found.checked += 1
        if not isinstance(n, int) or n < 0:
            found.add("", f"usage {name!r} is no count: {n!r}")
    held, named = {name for name, _ in contents.models}, report.get("settings", {})
    if held and "embed_model" in named:
        found.checked += 1
        if named["embed_model"] not in held:
            other = f"{named['embed_model']!r}, the nodes {min(held)!r}"
            found.add("", f"its embedding model is {other}")
    return found


def _read_indices(store: HierarchyStore, generation: int) -> Findings:
    """Check the indices through a separate connection, so that its cache is freed afterwards."""
    with damages():
        snapshot = wait_for(Table(*store._table.parameters).snapshot(generation))
    return wait_for(check_indices(snapshot.require()))[0]


def _local_files(store: HierarchyStore) -> Findings:
    if "://" in store.uri:  # an object store, whose files LanceDB alone reads
        return Findings("files")
    return check_files(Path(store.uri).absolute() / f"{store.table_name}.lance")


def _only_file(store: HierarchyStore) -> str:
    """Return the file that holds all rows, or the folder if there are several."""
    folder = Path(f"{store.table_name}.lance") / "data"
    names = [path.name for path in (Path(store.uri) / folder).glob("*.lance")]
    return (folder / names[0] if len(names) == 1 else folder).as_posix()


def _left(outcome: Verification, uri: str, *, repair: bool) -> list[str]:
    """Return what to do about the problems that are left."""
    advice = []
    failed = set(outcome.failed)
    if failed & MENDABLE.keys() and not repair:
        names = ", ".join(name for name in outcome.failed if name in MENDABLE)
        advice.append(f"`hierindex verify --repair --index {uri}` may repair: {names}.")
    if others := [name for name in outcome.failed if repair or name not in MENDABLE]:
        advice.append(
            f"Build the index again, or restore its folder, to repair: {', '.join(others)}."
        )
    if outcome.stale:
        advice.append(
            f"{outcome.stale} nodes lost a parent or a child; `hierindex update --index {uri}` "
            "grows the tree again."
        )
    return advice
