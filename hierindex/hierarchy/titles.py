"""Titles of nodes: headings, documents' titles, and phrases that tell nodes from their siblings."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from pathlib import PurePath

from hierindex.core.titles import distinctive_phrases, first_words
from hierindex.hierarchy.nodes import Draft
from hierindex.record import FILE_NAME, SECTION, TITLE, TITLES_BETWEEN, shared_section, titles_of

MAX_GIVEN = 100  # characters of a heading or a document's title


def note_given_titles(drafts: Sequence[Draft], leaves: Mapping[str, Collection[Draft]]) -> None:
    """Set the titles of nodes that documents give.

    A node that is a whole document gets the document's title or the name of its file, and a node
    of all chunks of one section gets its heading. Others keep the title that a language model
    wrote with the summary, if there is one.

    Parameters
    ----------
    drafts : Sequence[Draft]
        With `whole_document` set.
    leaves : Mapping
        See `leaves_of_one_document`. Of other nodes, those that have a title keep it.
    """
    sizes = _sizes_of_sections([draft for draft in drafts if draft.id in leaves])
    for draft in drafts:
        under = leaves.get(draft.id, ())
        if given := _document_title(draft, under) or _heading(draft, under, sizes):
            draft.note(title=given)


def note_phrases(drafts: Sequence[Draft]) -> None:
    """Set the titles that are missing to phrases that tell nodes from their siblings.

    Siblings are the nodes with the same strongest parent, or the roots.

    Parameters
    ----------
    drafts : Sequence[Draft]
        In reading order within each level, with all siblings of those that have no title.
    """
    siblings = defaultdict[str, list[Draft]](list)
    for draft in drafts:
        siblings[next((parent for parent, _ in draft.record.parents), "")].append(draft)
    for group in siblings.values():
        if all(draft.record.title for draft in group):
            continue
        phrases = distinctive_phrases([draft.node.text for draft in group])
        for draft, phrase in zip(group, phrases, strict=True):
            draft.note(title=draft.record.title or phrase)


def _document_title(draft: Draft, leaves: Collection[Draft]) -> str:
    """Return the title or the file name of the document that a node is, or nothing."""
    if not (draft.record.whole_document and leaves):
        return ""
    metadata = next(iter(leaves)).node.metadata
    names = metadata.get(TITLE), PurePath(str(metadata.get(FILE_NAME, ""))).stem
    titles = (first_words(name, MAX_GIVEN) for name in names if isinstance(name, str))
    return next(filter(None, titles), "")


def _heading(draft: Draft, leaves: Collection[Draft], sizes: Mapping[tuple[str, str], int]) -> str:
    """Return the heading of the section whose chunks are exactly those under a node, or nothing."""
    path = shared_section(map(_section, leaves))
    is_section = path and sizes[draft.record.documents[0], path] == len(leaves)
    return first_words(titles_of(path)[-1], MAX_GIVEN) if is_section else ""


def _sizes_of_sections(drafts: Sequence[Draft]) -> Counter[tuple[str, str]]:
    """Count the chunks in each section of each document, those of its subsections included."""
    return Counter(
        (draft.record.documents[0], path)
        for draft in drafts
        if draft.record.level == 0
        for path in accumulate(titles_of(_section(draft)), lambda *two: TITLES_BETWEEN.join(two))
    )


def _section(leaf: Draft) -> str:
    section = leaf.node.metadata.get(SECTION)
    return section if isinstance(section, str) else ""
