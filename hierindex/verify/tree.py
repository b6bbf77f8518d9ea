"""Checks of the links between nodes: ids, levels, parents, neighbours, weights, cycles, cuts."""

from collections.abc import Iterator

import numpy as np

from hierindex.core.membership import Ints1d
from hierindex.verify.links import ABSENT, Links, Mask, Named
from hierindex.verify.report import Findings

MOST_PARENTS = 3  # soft memberships are truncated to so many
TOLERANCE = 1e-6  # of sums of weights


def check_tree(links: Links, *, is_built: bool, one_per_document: bool) -> Iterator[Findings]:
    """Check what the ids and links of the nodes say.

    That every leaf reaches a root follows: each parent exists, is above its children, and there
    is no cycle.

    Parameters
    ----------
    links : Links
    is_built : bool
        Whether one build wrote all nodes; else each run of a pipeline has a tree of its own.
    one_per_document : bool
        Whether each document has a summary, also one of a single chunk.
    """
    valid = _valid_levels(links)
    yield check_ids(links)
    yield check_levels(links, valid)
    yield check_parents(links)
    yield check_neighbours(links)
    yield check_heights(links, valid, is_built=is_built)
    yield check_weights(links)
    yield check_cycles(links)
    yield check_cuts(links, valid, one_per_document=one_per_document)


def check_ids(links: Links) -> Findings:
    """No two rows have one id, and none is empty."""
    found = Findings("ids")
    found.checked = links.n_rows
    found.add_all(links.repeated, links.id, lambda i: "several rows have this id")
    found.add_all(np.flatnonzero(links.is_any("id", "")), links.id, lambda i: "an id is empty")
    return found


def _valid_levels(links: Links) -> Mask:
    level, level_max = links.numbers("level"), links.numbers("level_max")
    return np.asarray((level >= 0) & (level <= level_max))


def check_levels(links: Links, valid: Mask) -> Findings:
    """A node's own level is not negative and not above the highest cut that it belongs to."""
    found = Findings("levels")
    found.checked = len(links)
    level, level_max = links.numbers("level"), links.numbers("level_max")
    wrong = np.flatnonzero(~valid)
    found.add_all(wrong, links.id, lambda i: f"level {level[i]}, but level_max {level_max[i]}")
    return found


def check_parents(links: Links) -> Findings:
    """Parents and children exist and name each other, once."""
    found, n = Findings("parents and children"), len(links)
    up, down = links.named("parent_ids"), links.named("child_ids")
    found.checked = len(up.rows) + len(down.rows)
    _add_absent(found, links, up, "its parent")
    _add_absent(found, links, down, "its child")
    above, below = down.pairs
    of_children, n_up = np.unique(links.key(*up.pairs), return_counts=True)
    of_parents, n_down = np.unique(links.key(below, above), return_counts=True)

    def child(key: int) -> str:
        return links.id(key // n)

    def parent(key: int) -> str:
        return links.id(key % n)

    twice, unnamed = "it names {} twice", "{} does not name it"
    found.add_all(of_children[n_up > 1], child, lambda k: twice.format(f"its parent {parent(k)}"))
    found.add_all(of_parents[n_down > 1], parent, lambda k: twice.format(f"its child {child(k)}"))
    one_sided = np.setdiff1d(of_children, of_parents)
    found.add_all(one_sided, child, lambda k: unnamed.format(f"its parent {parent(k)}"))
    one_sided = np.setdiff1d(of_parents, of_children)
    found.add_all(one_sided, parent, lambda k: unnamed.format(f"its child {child(k)}"))
    return found


def _add_absent(found: Findings, links: Links, named: Named, noun: str) -> None:
    found.add_all(
        named.absent,
        lambda i: links.id(int(named.rows[i])),
        lambda i: f"{noun} {named.ids[i].as_py()} does not exist",
    )


def check_neighbours(links: Links) -> Findings:
    """The previous and the next node exist, name each other and are of one document."""
    found = Findings("previous and next")
    before, after = links.beside("previous_id"), links.beside("next_id")
    found.checked = len(before.rows) + len(after.rows)
    document = first_documents(links)
    for named, back, noun, other in (
        (before, after, "its previous node", "next"),
        (after, before, "its next node", "previous"),
    ):
        _add_absent(found, links, named, noun)
        rows, beside = named.pairs
        answer = np.full(len(links), ABSENT)
        answer[back.rows] = back.named
        _add_pairs(
            found, links, rows, beside, answer[beside] != rows, noun, f"has another {other} node"
        )
        apart = document[rows] != document[beside]
        _add_pairs(found, links, rows, beside, apart, noun, "is of another document")
    return found


def _add_pairs(
    found: Findings, links: Links, rows: Ints1d, others: Ints1d, wrong: Mask, noun: str, what: str
) -> None:
    found.add_all(
        np.flatnonzero(wrong),
        lambda i: links.id(int(rows[i])),
        lambda i: f"{noun} {links.id(int(others[i]))} {what}",
    )


def first_documents(links: Links) -> Ints1d:
    """Return the number of each node's first document; -1 if it has none."""
    rows, documents = links.documents
    first = np.full(len(links), -1)
    first[rows[::-1]] = documents[::-1]
    return first


def check_heights(links: Links, valid: Mask, *, is_built: bool) -> Findings:
    """A parent begins where the highest cut of its children ends; roots share the highest cut."""
    found = Findings("heights")
    child, parent = links.edges
    sound = ~links.in_cycle & valid[child] & valid[parent]
    child, parent = child[sound], parent[sound]
    level, level_max = links.numbers("level"), links.numbers("level_max")
    found.checked = len(child)
    found.add_all(
        np.flatnonzero(level_max[child] + 1 != level[parent]),
        lambda i: links.id(int(child[i])),
        lambda i: (
            f"its level_max is {level_max[child[i]]}, "
            f"but the level of its parent {links.id(int(parent[i]))} is {level[parent[i]]}"
        ),
    )
    roots = _roots(links)
    found.checked += len(roots)
    if is_built and len(roots):
        top = level_max[roots].max()
        found.add_all(
            roots[level_max[roots] < top],
            links.id,
            lambda i: f"it is a root, but its level_max is {level_max[i]}, that of others {top}",
        )
    return found


def _roots(links: Links) -> Ints1d:
    child, _ = links.edges
    named = np.concatenate([child, links.named("parent_ids").rows])
    return np.setdiff1d(np.arange(len(links)), named)


def check_weights(links: Links) -> Findings:
    """Weights are positive, sum to 1, and the strongest of at most three parents is the first."""
    found = Findings("weights")
    rows = links.named("parent_ids").rows
    of, values = links.flat("parent_weights")
    weights = np.asarray(values, dtype=np.float64)
    n_parents, n_weights = (np.bincount(each, minlength=len(links)) for each in (rows, of))
    found.checked = len(weights)
    total = np.bincount(of, weights, minlength=len(links))
    rising = (np.diff(weights) > TOLERANCE) & (np.diff(of) == 0)
    wrong = {
        "its parents and their weights differ in number": n_parents != n_weights,
        f"it has more than {MOST_PARENTS} parents": n_parents > MOST_PARENTS,
        "a weight is not positive": _any_of(of, ~(weights > 0), len(links)),
        "its weights do not sum to 1": (n_weights > 0) & ~(np.abs(total - 1) <= TOLERANCE),
        "its strongest parent is not the first": _any_of(of[1:], rising, len(links)),
    }
    found.add_nodes(links.id, wrong)
    return found


def _any_of(rows: Ints1d, wrong: Mask, n: int) -> Mask:
    marked = np.zeros(n, dtype=np.bool_)
    marked[rows[wrong]] = True
    return marked


def check_cycles(links: Links) -> Findings:
    """No node is above itself."""
    found = Findings("cycles")
    child, parent = links.edges
    found.checked = len(child)
    found.add_all(
        np.flatnonzero(links.in_cycle),
        lambda i: links.id(int(child[i])),
        lambda i: f"its parent {links.id(int(parent[i]))} is also below it",
    )
    return found


def check_cuts(links: Links, valid: Mask, *, one_per_document: bool) -> Findings:
    """Each cut has fewer nodes than the one below, unless nodes wait to be grown again."""
    found = Findings("cuts")
    level, level_max = (np.sort(links.numbers(name)[valid]) for name in ("level", "level_max"))
    if not valid.any() or not links.is_any("stale", "").all():
        return found
    cuts = np.unique(np.concatenate([level, level_max]))
    sizes = np.searchsorted(level, cuts, "right") - np.searchsorted(level_max, cuts, "left")
    found.checked = len(cuts)
    for i, (cut, size) in enumerate(zip(cuts.tolist(), sizes.tolist(), strict=True)):
        if cut != i or cut not in level:
            found.add("", f"no node has the level {i}")
            break
        most = sizes[i - 1] + (one_per_document and cut == 1) if i else size + 1
        if size >= most:
            found.add("", f"cut {cut} has {size} nodes, and the one below {sizes[i - 1]}")
    return found
