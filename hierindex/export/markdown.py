"""The tree as a folder of Markdown: a folder for each group, a file for each document."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count, groupby
from pathlib import Path
from statistics import mode
from typing import Any, NamedTuple
from urllib.parse import quote

from pydantic import TypeAdapter

from hierindex import __version__
from hierindex.core.titles import first_words, listed, without_shared_prefix
from hierindex.errors import InputError
from hierindex.export.files import ordered_nodes, snapshot_of, writing
from hierindex.index import HierarchicalIndex
from hierindex.node import Node, Span, place_of, shared_section, titles_of, to_json
from hierindex.read.files import file_in
from hierindex.text.blocks import quoted_blocks
from hierindex.text.characters import folded
from hierindex.text.display import displayed
from hierindex.text.sentences import split_sentences
from hierindex.unsafe import UNSAFE, visible

MANIFEST = ".hierindex.json"
UNNAMED = rf"(?:[\s!-/:-@\[-`{{-\x7f]|{UNSAFE.pattern})+"  # what names do not have
# Names that the format has for other files, or Windows for devices.
RESERVED = re.compile(r"(?:index|log|con|prn|aux|nul|com\d|lpt\d)(?:\.|$)")
LINE_START = re.compile(r"^[ \t]*(?:(?:>|[-*+\u2022](?=\s)|#{1,6}(?=\s))[ \t]*)+", re.MULTILINE)
# What Markdown, GitHub or Obsidian would not show as it is, within a line and at its start; and
# formulas, which they show by their own rules.
MARKUP = re.compile(
    r"(?P<formula>\$(?=\S)(?=[^$]{,300}[\\^_{])[^$]{1,300}(?<=\S)\$(?!\d))"
    r"|\\(?=[!-/:-@\[-`{-~]|$)|[`~$]|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_|_(?![^\W_])|<(?=[\w/!?])"
    r"|&(?=#?\w+;)|\[(?=[\[^])|(?<=\^)\[|\](?=[(\[:])|(?<!\S)#(?=\w)|(?<= )#(?=#*$)|=(?==)|%(?=%)"
    r"|^[#>=|]|^[-+:](?=\s|$|-)|(?:(?<=^\d)|(?<=^\d\d)|(?<=^\d{3})|(?<=^\d{4}))[.)](?=\s|$)"
)

Json = dict[str, Any]
Manifest = dict[str, tuple[str, str]]  # the document and the digest of each file
Written = dict[str, int | list[str]]  # what an export did


class Passage(NamedTuple):
    """A quote of a node, as it is displayed.

    `place` is its position among headings, `source` what it quotes, `line` its text on one line,
    `shown` its Markdown, and `joint` what is between it and the next of its kind.
    """

    place: Span
    source: Span | None
    node: str
    kind: str
    line: str
    shown: str
    joint: str


@dataclass(eq=False)
class Entry:
    """A document, or a group of documents and groups (`entries`).

    `nodes` are the nodes whose text is written to its file, and `near` are entries to link to.
    """

    title: str
    nodes: Sequence[Node] = ()
    document: str = ""
    entries: list["Entry"] = field(default_factory=list)
    path: str = "index.md"
    near: Mapping[str, "Entry | None"] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The titles of a group's entries that fit, or a document's first sentence."""
        if self.entries:
            return listed(without_shared_prefix([entry.title for entry in self.entries]), 200)
        lines = (passage.line for passage in self.passages() if passage.kind == "paragraph")
        return next((split_sentences(line)[0].text for line in lines), self.title)

    def passages(self) -> Iterator[Passage]:
        """Yield the quotes of the nodes, without headings."""
        for node in self.nodes:
            section = shared_section(span.section for span in node.citations)
            whole = Span("", node.start, 0, section=section)
            for part in node.quotes:
                blocks = [*quoted_blocks(node.text, part)]
                if node.level:  # a quote of a summary is a sentence
                    blocks = [block._replace(end=part.to) for block in blocks[:1]]
                for start, end, kind in blocks:
                    text = displayed(node.text[start:end].strip("|"))
                    if kind in ("heading", "front matter") or not re.search(r"\w", text):
                        continue
                    source = part.part(start, end).source
                    place = source if source and part.verbatim and self.document else whole
                    line = " ".join(UNSAFE.sub(" ", LINE_START.sub("", text)).split())
                    shown, joint = _escaped(line), " " if node.level else "\n\n"
                    if self.document and kind in ("item", "row"):
                        shown, joint = f"- {shown}", "\n"
                    elif self.document and kind == "code":
                        fence = "`" * (3 + text.count("`"))
                        shown, joint = f"{fence}\n{visible(text, lines=True)}\n{fence}\n", "\n\n"
                    yield Passage(place, source, node.id, kind, line, shown, joint)


def to_markdown(index: HierarchicalIndex, folder: str | Path, *, force: bool = False) -> Written:
    """Write the tree as a folder of Markdown, or bring such a folder up to date.

    Each group of documents is a folder with an `index.md`, and each document one file, under the
    parent with the highest weight. Front matter is in the Open Knowledge Format 0.2. Only files
    whose content changed are written; `generated` in the front matter has the time of that change
    and the version of hierindex. Files that no longer belong to the tree are removed.

    Parameters
    ----------
    index : HierarchicalIndex
    folder : str or Path
        Folder to write to; missing folders are created. Its ``.hierindex.json`` holds the digest
        and the document id of each file, so that files keep their names when titles change.
    force : bool
        Whether to overwrite exported files that were edited later; by default they are kept.
        Files that were not written by an export are never touched.

    Returns
    -------
    dict
        Counts of `nodes`, and of files `written` and `removed`; and the paths of the files that
        were `kept`, because they were edited or not written by an export.

    Raises
    ------
    IndexNotFoundError, InputError
        If the index is missing or empty, a symbolic link in the folder points outside it, its
        ``.hierindex.json`` is damaged, or the folder cannot be written.
    """
    with writing(folder):
        return _update(index, Path(folder).absolute(), force)


def _update(index: HierarchicalIndex, folder: Path, force: bool) -> Written:
    snapshot = snapshot_of(index)
    nodes, before = ordered_nodes(snapshot), _manifest(folder / MANIFEST)
    entries = [*_named(_tree(nodes), {document: path for path, (document, _) in before.items()})]
    read_from = {node.documents[0]: node.read_from for node in nodes if node.read_from}
    files = {document: file_in(source, document) for document, source in read_from.items()}
    generated = {"by": f"hierindex/{__version__}", "at": snapshot.details().get("time", "")}
    pages = {entry.path: _page(entry, folder, files, generated) for entry in entries}
    after = {entry.path: (entry.document, _digest(pages[entry.path])) for entry in entries}
    changes, kept = dict[str, str](), list[str]()
    for path in sorted({*after, *before}):
        file = folder / path
        if not file.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{str(file)!r} is outside of {str(folder)!r}; remove the link.")
        (_, last), (_, new) = before.get(path, ("", "")), after.get(path, ("", ""))
        found = _digest(file.read_text("utf-8", "replace")) if file.exists() else ""
        if found not in ("", last, new) and not (force and last and new):
            kept.append(path)
        elif found != new:
            changes[path] = pages.get(path, "")
    manifest = {path: known for path, known in after.items() if path not in kept}
    manifest |= {path: known for path, known in before.items() if path in kept}
    # The first manifest has all files that a run may leave if it is killed.
    both, ours = (json.dumps(m, indent=0, sort_keys=True) for m in (manifest | before, manifest))
    for path, text in ((MANIFEST, both), *changes.items(), (MANIFEST, ours)):
        _write(folder, path, text)
    removed = [*changes.values()].count("")
    written = len(changes) - removed
    return {"nodes": len(nodes), "written": written, "removed": removed, "kept": kept}


def _manifest(file: Path) -> Manifest:
    """Return the document and the digest of each file that the last export wrote."""
    try:
        return TypeAdapter(Manifest).validate_json(file.read_bytes() if file.exists() else "{}")
    except ValueError as error:
        message = f"{str(file)!r} is damaged; restore it, or export to an empty folder."
        raise InputError(message) from error


def _tree(nodes: Sequence[Node]) -> Entry:
    """Return the groups and documents of an index, each under its strongest parent."""
    groups = {node.id: Entry(node.title, [node]) for node in nodes if len(node.documents) > 1}
    groups[""] = Entry("Contents")
    parent = {node.id: node.parents[0][0] if node.parents else "" for node in nodes}
    inside = [node for node in reversed(nodes) if node.id not in groups]
    inside.sort(key=lambda node: node.documents)
    for (document,), found in groupby(inside, lambda node: node.documents):
        of_it = [*found]
        above = (parent[n.id] for n in of_it for _ in range(n.n_chunks))
        home = groups[mode(group for group in above if group in groups)]
        first, *rest = sorted(of_it, key=lambda n: (not n.whole_document, n.start, -n.level))
        said = [first, *(n for n in rest if n.level or not first.whole_document)]
        home.entries.append(Entry(first.document_name or document, said, document))
    for node in nodes:  # children before their parents
        if node.id in groups:
            group = groups[node.id]
            groups[parent[node.id]].entries += [group] if len(group.entries) > 1 else group.entries
    top, *others = groups[""].entries
    return groups[""] if others or top.document else top


def _named(entry: Entry, before: Mapping[str, str]) -> Iterator[Entry]:
    """Set the paths of what is in a group, and yield the group and all of it.

    An entry keeps the name that most of its documents had `before`.
    """
    yield entry
    folder = entry.path.removesuffix("index.md")
    votes = Counter(
        (below, before[document].removeprefix(folder).split("/")[0])
        for below in entry.entries
        for document in (below.nodes[0].documents if below.nodes else ())
        if document in before and before[document].startswith(folder)
    )
    names = dict[Entry, str]()
    for (below, name), _ in votes.most_common():
        if name.endswith(".md") == bool(below.document) and name not in names.values():
            names.setdefault(below, name)
    beside = [None, *entry.entries, None]
    for below, previous, following in zip(entry.entries, beside, beside[2:], strict=False):
        suffix, taken = ".md" if below.document else "", {*names.values()}
        words = re.sub(UNNAMED, " ", folded(below.title).lower()).strip() or "untitled"
        slug = first_words(words, 60 if below.document else 24).replace(" ", "-")
        tries = (f"{slug}-{n}{suffix}" if n > 1 else f"{slug}{suffix}" for n in count(1))
        free = (name for name in tries if name not in taken and not RESERVED.match(name))
        name = names.setdefault(below, next(free))
        below.path = f"{folder}{name}" if below.document else f"{folder}{name}/index.md"
        below.near = {"Up": entry, "Previous": previous, "Next": following}
        yield from _named(below, before)


def _page(entry: Entry, folder: Path, files: Mapping[str, Path | None], generated: Json) -> str:
    """Return the text of a file."""

    def address(path: str | Path) -> str:
        here = (folder / entry.path).parent
        return quote(os.fsencode(Path(os.path.relpath(folder / path, here)).as_posix()))

    def link(text: str, path: str | Path, page: str = "") -> str:
        label = re.sub(r"(?<!\\)[][]", r"\\\g<0>", _escaped(text))
        return f"[{label}]({address(path)}{page})"

    def place(span: Span) -> str:
        name = place_of(span._replace(section="", anchor="").to_json())
        file, page = files.get(span.document), f"#page={span.page}" if span.page else ""
        shown = link(name, file, page) if file else _escaped(name)
        return f"{shown}, characters {span.start}-{span.end}"

    def item(below: Entry) -> str:
        line = "" if below.line == below.title else f": {_escaped(below.line)}"
        return f"- {link(below.title, below.path)}{line}"

    head = "" if entry.near else 'okf_version: "0.2"\n'  # which the topmost index has
    if entry.document:
        source, file = {"id": entry.document}, files.get(entry.document)
        if file:
            source["resource"] = address(file)
        values: Json = {"type": "Document", "title": entry.title, "description": entry.line}
        values |= {"sources": [source], "generated": generated, "status": "stable"}
        head = "".join(f"{k}: {UNSAFE.sub(' ', to_json(value))}\n" for k, value in values.items())
    notes = dict[Span, int]()
    parts = [
        head and f"---\n{head}---",
        f"# {_escaped(entry.title)}",
        " · ".join(link(word, to.path) for word, to in entry.near.items() if to),
        *_body(entry, notes),
        "\n".join(map(item, entry.entries)),
        "\n".join(f"[^{n}]: {place(span)}" for span, n in notes.items()),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _body(entry: Entry, notes: dict[Span, int]) -> Iterator[str]:
    """Yield the parts of a page, everything once and under its headings, if there are any.

    The source of each passage is added to `notes`, with its number.
    """
    passages, above = [*entry.passages()], list[str]()
    has_headings = any(passage.place.section for passage in passages)
    if has_headings:
        passages.sort(key=lambda passage: passage.place.start)
    once = dict[object, Passage]()
    for passage in passages:
        once.setdefault((entry.document and passage.source) or passage.line, passage)
    for below in entry.entries:
        once.pop(below.line, None)

    def run(passage: Passage) -> tuple[str, str, str]:
        return passage.place.section, "" if has_headings else passage.node, passage.joint

    def note(source: Span | None) -> str:
        return f"[^{notes.setdefault(source, len(notes) + 1)}]" if source else ""

    for (section, _, joint), together in groupby(once.values(), run):
        titles = titles_of(section)
        if titles[:1] == [entry.title]:
            del titles[0]
        for n, title in enumerate(titles, 1):
            if titles[:n] != above[:n]:
                yield f"{'#' * min(n + 1, 6)} {_escaped(title)}"
        above = titles
        yield joint.join(passage.shown + note(passage.source) for passage in together)


def _escaped(text: str) -> str:
    r"""Return a text on one line as Markdown that displays it unchanged.

    >>> print(_escaped(r"# a_b *c* [[d]] 2 * 3 [e] $\alpha_1$ costs $5, x_y $6"))
    \# a_b \*c\* \[[d]] 2 * 3 [e] $\alpha_1$ costs \$5, x_y \$6
    """
    return MARKUP.sub(
        lambda m: m[0] if m["formula"] else "\\" + m[0], " ".join(UNSAFE.sub(" ", text).split())
    )


def _write(folder: Path, path: str, text: str) -> None:
    """Write a file if its text is new, or remove it together with folders that become empty."""
    file = folder / path
    if not text:
        file.unlink()
        while not any((file := file.parent).iterdir()):
            file.rmdir()
    elif not file.exists() or file.read_bytes() != text.encode():
        file.parent.mkdir(parents=True, exist_ok=True)
        (part := folder / f"{MANIFEST}.part").write_bytes(text.encode())
        part.replace(file)


def _digest(text: str) -> str:
    """Return the digest of a text without its `generated` line, which alone is no change."""
    return sha256(re.sub(r"(?m)^generated: \{.*$", "", text, count=1).encode()).hexdigest()
