"""The tree as a folder of Markdown: a folder for each group, a file for each document."""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

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

MANIFEST = ".hierindex.json"  # the document and the digest of each file
Written = dict[str, int | list[str]]  # what an export did
MAX_ENTRIES = 400  # of a folder; more are divided into parts by the digests of their documents
PARTS = 37  # which hold 14,800 entries
UNNAMED = rf"(?:[\s!-/:-@\[-`{{-\x7f]|{UNSAFE.pattern})+"  # what names do not have
# Names that the format has for other files, or Windows for devices.
RESERVED = re.compile(r"(?:index|log|con|prn|aux|nul|com\d|lpt\d)(?:\.|$)")
FORMS = {"item": "item", "row": "item", "code": "code"}  # of a block; others are text
LINE_START = re.compile(r"^[ \t]*(?:(?:>|[-*+\u2022](?=\s)|#{1,6}(?=\s))[ \t]*)+", re.MULTILINE)
# What Markdown, GitHub or Obsidian would not show as it is, within a line and at its start.
MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|$)|[`~$]|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_|_(?![^\W_])|<(?=[\w/!?])"
    r"|&(?=#?\w+;)|\[(?=[\[^])|(?<=\^)\[|\](?=[(\[:])|(?<!\S)#(?=\w)|(?<= )#(?=#*$)|=(?==)|%(?=%)"
    r"|^[#>=|]|^[-+:](?=\s|$|-)"
)
FORMULA = re.compile(r"(\$(?=\S)(?=[^$]{,300}[\\^_{])[^$]{1,300}(?<=\S)\$(?!\d))")
NUMBER = re.compile(r"^(\d{1,9})(?=[.)](?:\s|$))")  # which would begin a list


class Passage(NamedTuple):
    """A quote of a node, as it is displayed.

    `place` is its position among headings, `kind` that of its block, and `source` what it quotes.
    """

    place: Span
    node: Node
    kind: str
    text: str
    source: Span | None

    @property
    def line(self) -> str:
        """The text on one line."""
        return " ".join(UNSAFE.sub(" ", LINE_START.sub("", self.text)).split())


@dataclass(eq=False)
class Entry:
    """A document, or a group of documents and groups (`entries`).

    `nodes` are the nodes whose text is written to its file.
    """

    title: str
    nodes: Sequence[Node] = ()
    document: str = ""
    entries: list["Entry"] = field(default_factory=list)
    path: str = ""
    up: "Entry | None" = None

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
                for block in blocks[:1] if node.level else blocks:
                    to = part.to if node.level else block.end  # a quote of a summary is a sentence
                    text = displayed(node.text[block.start : to].strip("|"))
                    source = part.part(block.start, to).source
                    place = source if source and part.verbatim and self.document else whole
                    if block.kind not in ("heading", "front matter") and re.search(r"\w", text):
                        yield Passage(place, node, block.kind, text, source)


def to_markdown(index: HierarchicalIndex, folder: str | Path, *, force: bool = False) -> Written:
    """Write the tree as a folder of Markdown, or bring such a folder up to date.

    Each group of documents is a folder with an `index.md`, and each document one file, under its
    strongest parent. Front matter is in the Open Knowledge Format 0.2. Only files whose content
    changed are written, so `generated` has the time and version of the last change. Files that no
    longer belong to the tree are removed.

    Parameters
    ----------
    index : HierarchicalIndex
    folder : str or Path
        Folder to write to; missing folders are created. Its ``.hierindex.json`` holds the digest
        and the document of each file, so that names stay when titles change.
    force : bool
        Whether to overwrite files of the tree that were edited since; by default they are kept.
        Files that were not written by an export are never touched.

    Returns
    -------
    dict
        Numbers of `nodes`, and of files `written` and `removed`; and the paths of the files that
        were `kept`, because somebody else wrote or edited them.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, it is empty, a link in the folder leads outside, its
        ``.hierindex.json`` is damaged, or the folder cannot be written.
    """
    with writing(folder):
        return _update(index, Path(folder).absolute(), force)


def _update(index: HierarchicalIndex, folder: Path, force: bool) -> Written:
    snapshot = snapshot_of(index)
    nodes, before = ordered_nodes(snapshot), _manifest(folder / MANIFEST)
    paths = {document: path for path, (document, _) in before.items()}
    entries = {entry.path: entry for entry in _named(_tree(nodes), "", paths)}
    read_from = {node.documents[0]: node.read_from for node in nodes if node.read_from}
    files = {document: file_in(source, document) for document, source in read_from.items()}
    generated = {"by": f"hierindex/{__version__}", "at": snapshot.details().get("time", "")}
    manifest, changes, kept = before.copy(), dict[str, str](), list[str]()
    for path in sorted({*entries, *before}):
        file, entry = folder / path, entries.get(path)
        if not file.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{str(file)!r} is outside of {str(folder)!r}; remove the link.")
        text = _page(entry, folder, files, generated) if entry else ""
        digest = _digest(text) if entry else ""  # of no file
        found = _digest(file.read_text("utf-8", "replace")) if file.exists() else ""
        _, last = before.get(path, ("", ""))
        if found not in ("", digest, last) and not (force and entry and path in before):
            kept.append(path)
            continue
        if found != digest:
            changes[path] = text
        manifest.pop(path, None)
        if entry:
            manifest[path] = entry.document, digest
    if manifest != before:  # a run that is killed must not leave files that nobody owns
        _write(folder, MANIFEST, _dumped({**manifest, **before}))
    for path, text in changes.items():
        _write(folder, path, text)
    if manifest != before:
        _write(folder, MANIFEST, _dumped(manifest))
    removed = [*changes.values()].count("")
    return {
        "nodes": len(nodes),
        "written": len(changes) - removed,
        "removed": removed,
        "kept": kept,
    }


def _dumped(manifest: Mapping[str, tuple[str, str]]) -> str:
    return json.dumps(manifest, indent=0, sort_keys=True)


def _manifest(file: Path) -> dict[str, tuple[str, str]]:
    """Return the document and the digest of each file that the last export wrote."""
    try:
        held = json.loads(file.read_bytes()) if file.exists() else {}
        return {path: (str(document), str(digest)) for path, (document, digest) in held.items()}
    except (AttributeError, TypeError, ValueError) as error:
        message = f"{str(file)!r} is damaged; restore it, or export to an empty folder."
        raise InputError(message) from error


def _tree(nodes: Sequence[Node]) -> Entry:
    """Return the groups and documents of an index, each under its strongest parent."""
    groups = {node.id: Entry(node.title, [node]) for node in nodes if len(node.documents) > 1}
    groups[""] = Entry("Contents")
    by_document = defaultdict[str, list[Node]](list)
    n_chunks = defaultdict[str, Counter[str]](Counter)  # of a document, by group
    for node in reversed(nodes):
        if node.id not in groups:
            (document,), parent = node.documents, _parent(node)
            by_document[document].append(node)
            if parent in groups:
                n_chunks[document][parent] += node.n_chunks
    for document, of_it in sorted(by_document.items()):
        first, *rest = sorted(of_it, key=lambda n: (not n.whole_document, n.start, -n.level))
        said = [first, *(n for n in rest if n.kind != "chunk" or not first.whole_document)]
        ((home, _),) = n_chunks[document].most_common(1)
        groups[home].entries.append(Entry(first.document_name or document, said, document))
    for node in nodes:
        if node.id in groups:
            groups[_parent(node)].entries.append(groups[node.id])
    (top,) = _pruned(groups[""])
    return groups[""] if top.document else top


def _parent(node: Node) -> str:
    """Return the id of the strongest parent, "" if there is none."""
    return node.parents[0][0] if node.parents else ""


def _pruned(entry: Entry) -> list[Entry]:
    """Return a document, a group of at least two entries, or otherwise the entries themselves."""
    if entry.document:
        return [entry]
    entry.entries = [each for below in entry.entries for each in _pruned(below)]
    if len(entry.entries) > MAX_ENTRIES:
        parts = defaultdict[int, list[Entry]](list)
        for each in entry.entries:
            first = each.document or each.nodes[0].documents[0]
            parts[int(_digest(first), 16) % PARTS + 1].append(each)
        entry.entries = [Entry(f"Part {n}", entries=part) for n, part in sorted(parts.items())]
    return [entry] if len(entry.entries) > 1 else entry.entries


def _named(entry: Entry, folder: str, before: Mapping[str, str]) -> list[Entry]:
    """Set the paths of a group and of what is in it, and return all of them.

    An entry keeps the name that most of its documents had `before`.
    """
    entry.path, found = f"{folder}index.md", [entry]
    names, votes = dict[Entry, str](), Counter[tuple[Entry, str]]()
    for below in entry.entries:
        for document in below.nodes[0].documents if below.nodes else ():
            path = before.get(document, "")
            name, *inside = path.removeprefix(folder).split("/", 1)
            if name and path.startswith(folder) and bool(inside) != bool(below.document):
                votes[below, name] += 1
    for (below, name), _ in votes.most_common():
        if below not in names and name not in names.values():
            names[below] = name
    for below in entry.entries:
        suffix, taken = ".md" if below.document else "", {*names.values()}
        words = re.sub(UNNAMED, " ", folded(below.title).lower()).strip() or "untitled"
        slug = first_words(words, 60 if below.document else 24).replace(" ", "-")
        tries = (f"{slug}-{n}{suffix}" if n > 1 else f"{slug}{suffix}" for n in count(1))
        free = (name for name in tries if name not in taken and not RESERVED.match(name))
        name = names.get(below) or next(free)
        names[below], below.up, below.path = name, entry, f"{folder}{name}"
        found += _named(below, f"{below.path}/", before) if below.entries else [below]
    return found


def _page(
    entry: Entry, folder: Path, files: Mapping[str, Path | None], generated: Mapping[str, str]
) -> str:
    """Return the text of a file."""

    def address(path: str | Path) -> str:
        here = folder / entry.path
        return quote(os.fsencode(Path(os.path.relpath(folder / path, here.parent)).as_posix()))

    def place(span: Span) -> str:
        name = place_of(span._replace(section="", anchor="").to_json())
        file, page = files.get(span.document), f"#page={span.page}" if span.page else ""
        shown = _link(name, address(file) + page) if file else _escaped(name)
        return f"{shown}, characters {span.start}-{span.end}"

    def item(below: Entry) -> str:
        link = _link(below.title, address(below.path))
        return f"- {link}" if below.line == below.title else f"- {link}: {_escaped(below.line)}"

    head = "" if entry.up else 'okf_version: "0.2"\n'  # which the topmost index has
    if entry.document:
        file, source = files.get(entry.document), {"id": entry.document}
        if file:
            source["resource"] = address(file)
        values = {
            "type": "Document",
            "title": entry.title,
            "description": entry.line,
            "sources": [source],
            "generated": generated,
            "status": "stable",
        }
        head = "".join(f"{k}: {UNSAFE.sub(' ', to_json(value))}\n" for k, value in values.items())
    near = list[tuple[str, Entry | None]]()
    if entry.up:
        beside = [None, *entry.up.entries, None]
        at = beside.index(entry)
        near = [("Up", entry.up), ("Previous", beside[at - 1]), ("Next", beside[at + 1])]
    notes = dict[Span, int]()
    parts = [
        head and f"---\n{head}---",
        f"# {_escaped(entry.title)}",
        " · ".join(_link(word, address(to.path)) for word, to in near if to),
        *_body(entry, notes),
        "\n".join(map(item, entry.entries)),
        "\n".join(f"[^{n}]: {place(span)}" for span, n in notes.items()),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _link(text: str, address: str) -> str:
    label = re.sub(r"(?<!\\)[][]", r"\\\g<0>", _escaped(text))
    return f"[{label}]({address})"


def _body(entry: Entry, notes: dict[Span, int]) -> list[str]:
    """Return the parts of a page, everything once and under its headings, if there are any.

    The source of each passage is added to `notes`, with its number.
    """
    parts, said = list[str](), {below.line for below in entry.entries}
    above, before = list[str](), ("", "", "")  # the headings, place and kind of the last passage
    found = [*entry.passages()]
    has_headings = any(passage.place.section for passage in found)
    if has_headings:
        found.sort(key=lambda passage: passage.place.start)
    for passage in found:
        source, section = passage.source, passage.place.section
        key = str(source[:3]) if source and entry.document else passage.line
        if key in said:
            continue
        said.add(key)
        titles = titles_of(section)
        if titles[:1] == [entry.title]:
            titles = titles[1:]
        same = [title == last for title, last in zip(titles, above, strict=False)]
        shared = [*same, False].index(False)
        for level, title in enumerate(titles[shared:], shared + 2):
            parts.append(f"{'#' * min(level, 6)} {_escaped(title)}")
        note = f"[^{notes.setdefault(source, len(notes) + 1)}]" if source else ""
        form = FORMS.get(passage.kind, "text") if entry.document else "text"
        shown = f"{_escaped(passage.line)}{note}"
        if form == "item":
            shown = f"- {shown}"
        elif form == "code":
            fence = "`" * (3 + passage.text.count("`"))
            shown = f"{fence}\n{visible(passage.text, lines=True)}\n{fence}\n{note}"
        here = section, "" if has_headings else passage.node.id, form
        if here == before and form == "item":
            parts[-1] += f"\n{shown}"
        elif here == before and form == "text" and passage.node.kind != "chunk":
            parts[-1] += f" {shown}"
        else:
            parts.append(shown)
        above, before = titles, here
    return parts


def _escaped(text: str) -> str:
    r"""Return a text on one line as Markdown that displays it unchanged.

    >>> print(_escaped(r"# a_b *c* [[d]] 2 * 3 [e] $\alpha_1$ costs $5, x_y $6"))
    \# a_b \*c\* \[[d]] 2 * 3 [e] $\alpha_1$ costs \$5, x_y \$6
    """
    line = " ".join(UNSAFE.sub(" ", text).split())
    parts = FORMULA.split(line)  # which programs show by their own rules
    parts[::2] = [MARKUP.sub(lambda found: "\\" + found[0], part) for part in parts[::2]]
    return NUMBER.sub(r"\1\\", "".join(parts))


def _write(folder: Path, path: str, text: str) -> None:
    """Write a file, or remove it together with folders that become empty."""
    file = folder / path
    if text:
        file.parent.mkdir(parents=True, exist_ok=True)
        (part := folder / f"{MANIFEST}.part").write_bytes(text.encode())
        part.replace(file)
    else:
        file.unlink()
        while not any((file := file.parent).iterdir()):
            file.rmdir()


def _digest(text: str) -> str:
    """Return the digest of a text without its `generated` line, which alone is no change."""
    return sha256(re.sub(r"(?m)^generated: \{.*$", "", text, count=1).encode()).hexdigest()
