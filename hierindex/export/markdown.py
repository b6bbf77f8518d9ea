"""The tree as a folder of Markdown: a folder for each group, a file for each document."""

import json
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path, PurePath
from posixpath import dirname, join, relpath
from typing import Any
from urllib.parse import quote

import hierindex
from hierindex.errors import InputError
from hierindex.export.files import ordered_nodes
from hierindex.index import HierarchicalIndex
from hierindex.node import Node, Span
from hierindex.text.display import counted
from hierindex.unsafe import UNSAFE, beginning

MANIFEST = ".hierindex.json"  # digests of the files that are ours
PARTIAL = ".hierindex.part"  # the file that is being written
INDEX = "index.md"
MOST_ENTRIES = 400  # of a folder; more are divided into parts by digests of their names
LINE = 200  # characters of a one-line summary
NAME = 60  # characters of a name of a file or folder
RESERVED = re.compile("con|prn|aux|nul|com[0-9]|lpt[0-9]|index|log")  # log.md is the format's
RANDOM = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4,}){2,}")  # ids that say nothing to people
GENERATED = re.compile("^generated: .*$", re.MULTILINE)
# What Markdown, GitHub or Obsidian would not show as it is, within a line and at its start.
INLINE = re.compile(
    r"[\\`*\[\]~$]|(?<!\w)_|_(?!\w)|<(?=[\w/!?])|&(?=#?\w+;)|(?<!\S)#(?=\w)|#(?=#*$)"
    r"|=(?==)|(?<==)=|%(?=%)|(?<=%)%"
)
START = re.compile(r"^(\d*)(?=[#>+=:|.)-])")


@dataclass(frozen=True)
class Written:
    """What an export did: `nodes` of the tree, files `written`, `removed` and `unchanged`.

    `kept` are the files that were left as they are because somebody else wrote or edited them.
    """

    nodes: int
    written: int
    removed: int
    unchanged: int
    kept: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return asdict(self)


@dataclass(eq=False)
class Entry:
    """A group with its entries, or a document, which has none; the nodes hold its summary."""

    title: str
    nodes: list[Node] = field(default_factory=list)
    entries: list["Entry"] = field(default_factory=list)
    document: str = ""
    path: str = ""

    @property
    def line(self) -> str:
        """The first sentence."""
        first = next((text for node in self.nodes for text, _ in _sentences(node)), "")
        return beginning(first, LINE)


def to_markdown(index: HierarchicalIndex, folder: str | Path, *, force: bool = False) -> Written:
    """Write the tree as a folder of Markdown, or bring such a folder up to date.

    Each group of documents is a folder with an `index.md`, and each document one file, under its
    strongest parent. Front matter is in the Open Knowledge Format 0.2. Only files whose content
    changed are written, so that a file whose other content is the same keeps the time and version
    in `generated` of when it was written. Files that no longer belong to the tree are removed.

    Parameters
    ----------
    index : HierarchicalIndex
    folder : str or Path
        Folder to write to; missing folders are created. Its `.hierindex.json` holds digests of
        what was written.
    force : bool
        Whether to overwrite files of the tree that were edited since; by default they are kept.
        Files that were not written by an export are never touched.

    Returns
    -------
    Written
        Numbers of nodes and files, and the paths of files that were kept.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, it is empty, or the folder cannot be written.
    """
    snapshot = index.table.snapshot()
    nodes = ordered_nodes(snapshot)
    tree = _Tree(nodes, Path(folder).absolute(), snapshot.details().get("time", ""))
    try:
        return Written(len(nodes), *_Folder(Path(folder)).bring_up_to_date(tree.files(), force))
    except OSError as error:
        raise InputError(f"{str(folder)!r} cannot be written: {error}.") from error


class _Tree:
    """The entries of an index and their pages."""

    def __init__(self, nodes: Sequence[Node], folder: Path, time: str) -> None:
        self._folder = folder
        self._generated = {"by": f"hierindex/{hierindex.__version__}", "at": time}
        self._nodes = {node.id: node for node in nodes}
        self._under = defaultdict[str, list[Node]](list)
        files = {n.documents[0]: _file(n.read_from, n.documents[0]) for n in nodes if n.read_from}
        self._sources = {document: file for document, file in files.items() if file}
        tops = defaultdict[str, list[Node]](list)
        for node in nodes:
            parent = self._parent(node)
            if len(node.documents) == 1 and (parent is None or len(parent.documents) > 1):
                tops[node.documents[0]].append(node)
            if parent is not None:
                self._under[parent.id].append(node)
        for parent_id, children in self._under.items():
            place = {child: i for i, child in enumerate(self._nodes[parent_id].children)}
            children.sort(key=lambda node: place.get(node.id, len(place)))
        self._homes = defaultdict[str, list[Entry]](list)
        for document, found in tops.items():
            sizes = Counter[str]()
            for node in found:
                sizes[node.parents[0][0] if self._parent(node) else ""] += node.n_chunks
            title = next((n.document_name for n in found if n.document_name), document)
            home = sizes.most_common(1)[0][0]
            self._homes[home].append(Entry(title, found, document=document))
        groups = [n for n in nodes if len(n.documents) > 1 and self._parent(n) is None]
        top = self._divided([*filter(None, map(self._group, groups)), *self._homes[""]])
        self.top = top[0] if len(top) == 1 and top[0].entries else Entry("Contents", entries=top)
        _name(self.top, "")

    def _parent(self, node: Node) -> Node | None:
        return self._nodes.get(node.parents[0][0]) if node.parents else None

    def _group(self, node: Node) -> Entry | None:
        """Return the entry of a group; that of its only entry if it has but one."""
        documents = {entry.nodes[0].id: entry for entry in self._homes[node.id]}
        entries = [
            entry
            for child in self._under[node.id]
            if (entry := documents.pop(child.id, None) or self._group_of(child))
        ]
        entries += documents.values()
        if len(entries) < 2:
            return entries[0] if entries else None
        return Entry(node.title, [node], self._divided(entries))

    def _group_of(self, node: Node) -> Entry | None:
        return self._group(node) if len(node.documents) > 1 else None

    def _divided(self, entries: list[Entry], depth: int = 0) -> list[Entry]:
        """Return the entries, in parts if they are too many for one folder."""
        if len(entries) <= MOST_ENTRIES:
            return entries
        parts = defaultdict[str, list[Entry]](list)
        for entry in entries:
            parts[_digest((entry.document or entry.title).encode())[: depth + 1]].append(entry)
        return [
            Entry(f"Part {key}", entries=self._divided(part, depth + 1))
            for key, part in sorted(parts.items())
        ]

    def files(self) -> dict[str, str]:
        """Return the text of each file by its path."""
        return dict(self._pages(self.top, None, []))

    def _pages(
        self, entry: Entry, up: Entry | None, beside: Sequence[Entry]
    ) -> Iterator[tuple[str, str]]:
        page = _Page(entry.path, self._folder, self._sources)
        links = [("Up", up)] if up else []
        if entry in beside:
            at = beside.index(entry)
            links += [("Previous", e) for e in beside[:at][-1:]]
            links += [("Next", e) for e in beside[at + 1 : at + 2]]
        page.add(f"# {_escaped(entry.title)}")
        page.add(" · ".join(f"{word}: {page.link(to)}" for word, to in links))
        seen = set[str]()
        several = len(entry.nodes) > 1
        for node in entry.nodes:
            if several and node.title:
                page.add(f"## {_escaped(node.title)}")
            page.add_text(node, seen, 1 if several and node.kind == "chunk" else None)
            if entry.document:
                self._add_sections(page, node, seen, 3 if several else 2)
        if entry.entries:
            page.add("\n".join(f"- {page.link(e)}{_count(e)}{_after(e)}" for e in entry.entries))
        head = self._head(entry, up is None)
        yield entry.path, head + page.text()
        for below in entry.entries:
            yield from self._pages(below, entry, entry.entries)

    def _add_sections(self, page: "_Page", node: Node, seen: set[str], level: int) -> None:
        """Add the sections under a node that say what was not said above."""
        for child in self._under[node.id]:
            if child.kind != "chunk":
                n = len(page.parts)
                page.add_text(child, seen)
                self._add_sections(page, child, seen, level + 1)
                if len(page.parts) > n:
                    page.parts.insert(n, f"{'#' * min(level, 6)} {_escaped(child.title)}")

    def _head(self, entry: Entry, is_top: bool) -> str:
        """Return the front matter, which the format has in the topmost index and in documents."""
        if not entry.document:
            return '---\nokf_version: "0.2"\n---\n\n' if is_top else ""
        source = {"id": entry.document, "title": entry.title}
        if path := self._sources.get(entry.document):
            source["resource"] = _relative(path, self._folder / dirname(entry.path))
        fields = {
            "type": "Document",
            "title": entry.title,
            "description": entry.line,
            "sources": [source],
            "generated": self._generated,
            "status": "stable",
        }
        # JSON is YAML
        lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()]
        return "\n".join(["---", *(UNSAFE.sub(" ", line) for line in lines), "---\n\n"])


class _Page:
    """The body of a file: its parts, and its footnotes."""

    def __init__(self, path: str, folder: Path, sources: dict[str, str]) -> None:
        self._path, self._folder, self._sources = path, folder, sources
        self.parts = list[str]()
        self._notes = dict[Span, int]()

    def add(self, part: str) -> None:
        """Add a part that is not empty."""
        self.parts += [part] if part else []

    def add_text(self, node: Node, seen: set[str], most: int | None = None) -> None:
        """Add the first sentences of a node that are not among those seen."""
        sentences = [(text, span) for text, span in _sentences(node)[:most] if text not in seen]
        seen.update(text for text, _ in sentences)
        self.add(
            " ".join(
                f"{_escaped(text, i == 0)}{self._note(span)}"
                for i, (text, span) in enumerate(sentences)
            )
        )

    def _note(self, span: Span | None) -> str:
        return "" if span is None else f"[^{self._notes.setdefault(span, len(self._notes) + 1)}]"

    def link(self, to: Entry) -> str:
        """Return a link to another file."""
        return f"[{_escaped(to.title)}]({quote(relpath(to.path, dirname(self._path) or '.'))})"

    def text(self) -> str:
        """Return the parts and the footnotes."""
        notes = [f"[^{n}]: {self._place(span)}" for span, n in self._notes.items()]
        return "\n\n".join([*self.parts, *(["\n".join(notes)] if notes else [])]) + "\n"

    def _place(self, span: Span) -> str:
        name, path = _escaped(span.document), self._sources.get(span.document)
        page = span.page_label or span.page
        if path:
            anchor = f"#page={span.page}" if span.page else ""
            name = f"[{name}]({_relative(path, self._folder / dirname(self._path))}{anchor})"
        shown = f", page {_escaped(str(page))}" if page else ""
        return f"{name}{shown}, characters {span.start}-{span.end}"


class _Folder:
    """A folder of files, with a manifest of the digests of those that are ours."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._ours: dict[str, list[str]] = json.loads((folder / MANIFEST).read_bytes())
        except FileNotFoundError:
            self._ours = {}
        except ValueError as error:
            message = f"{str(folder / MANIFEST)!r} is damaged ({error}); restore or remove it."
            raise InputError(message) from error

    def bring_up_to_date(
        self, files: dict[str, str], force: bool
    ) -> tuple[int, int, int, list[str]]:
        """Write and remove files; return how many of each, how many stay, and which were kept.

        While files change, the manifest has their digests of before and after, so that a next
        export knows them after this one was killed.
        """
        write, after = dict[str, bytes](), dict[str, list[str]]()
        remove, kept = list[str](), list[str]()
        for path in sorted({*files, *self._ours}):
            held = self._read(path)
            is_ours = held is None or _digest(held) in self._ours.get(path, ())
            if path not in files:
                if held is not None:
                    (remove if is_ours else kept).append(path)
                    after |= {} if is_ours else {path: self._ours[path]}
                continue
            text = _with_time_of(files[path], held).encode()
            if held is not None and _digest(held) == _digest(text):
                after[path] = [_digest(text)]
            elif is_ours or (force and path in self._ours):
                write[path], after[path] = text, [_digest(text)]
            else:
                kept.append(path)
                after |= {path: self._ours[path]} if path in self._ours else {}
        try:
            if write or remove:
                between = {
                    p: [*self._ours.get(p, ()), *after.get(p, ())] for p in self._ours | after
                }
                self._write(MANIFEST, _json(between))
            for path, data in write.items():
                self._write(path, data)
            for path in remove:
                self._remove(path)
            if after != self._ours or write:
                self._write(MANIFEST, _json(after))
        finally:
            (self._folder / PARTIAL).unlink(missing_ok=True)
        return len(write), len(remove), len(files.keys() - write.keys() - {*kept}), kept

    def _read(self, path: str) -> bytes | None:
        """Return what a file holds, None if there is none."""
        file = self._folder / path
        if not file.resolve().is_relative_to(self._folder.resolve()):
            raise InputError(f"{str(file)!r} is outside of {str(self._folder)!r}; remove the link.")
        return file.read_bytes() if file.exists() else None

    def _write(self, path: str, data: bytes) -> None:
        (self._folder / PARTIAL).write_bytes(data)
        (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self._folder / PARTIAL).replace(self._folder / path)

    def _remove(self, path: str) -> None:
        """Remove a file, and the folders that are empty without it."""
        file = self._folder / path
        file.unlink()
        for folder in file.relative_to(self._folder).parents:
            if str(folder) == "." or any((self._folder / folder).iterdir()):
                break
            (self._folder / folder).rmdir()


def _name(entry: Entry, path: str) -> None:
    """Give an entry its path, and those under it names that differ on every system."""
    entry.path = path if entry.document else join(path, INDEX)
    names = [_slug(below) for below in entry.entries]
    often = Counter(names)
    for below, name in zip(entry.entries, names, strict=True):
        if often[name] > 1 or RESERVED.fullmatch(name):
            key = below.document or "\n".join(below.nodes[0].documents if below.nodes else ())
            name = f"{name}-{_digest(key.encode())[:8]}"
        _name(below, join(path, name + ".md" * bool(below.document)))


def _slug(entry: Entry) -> str:
    """Return the letters and digits of a document's id, or its title if that says nothing."""
    text = entry.title
    if entry.document and not RANDOM.fullmatch(entry.document):
        text = str(PurePath(entry.document).with_suffix(""))
    text = unicodedata.normalize("NFKC", text).casefold()
    kept = (c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in text)
    words = "-".join("".join(kept).split())
    name = words.encode()[: 2 * NAME].decode(errors="ignore")[:NAME].strip("-")
    return name if name == words and name else f"{name or 'document'}-{_digest(text.encode())[:8]}"


def _sentences(node: Node) -> list[tuple[str, Span | None]]:
    """Return the sentences of a text, each on one line, with their best sources."""
    parts = [(node.text[q.at : q.to], q.source) for q in node.quotes] or [(node.text, None)]
    lines = [(" ".join(UNSAFE.sub(" ", text).split()), span) for text, span in parts]
    return [(text, span) for text, span in lines if text]


def _escaped(text: str, at_start: bool = False) -> str:
    r"""Return a text on one line as Markdown that shows it as it is.

    >>> print(_escaped("# a_b *c* [[d]]", at_start=True))
    \# a_b \*c\* \[\[d\]\]
    """
    text = INLINE.sub(lambda found: "\\" + found[0], " ".join(UNSAFE.sub(" ", text).split()))
    return START.sub(r"\1\\", text) if at_start else text


def _file(source: str, document: str) -> str:
    """Return the path of a document that was read from a file or folder; "" if it is not there."""
    places = (Path(source, document), Path(source))
    return next((str(place) for place in places if place.is_file()), "")


def _relative(path: str, folder: Path) -> str:
    """Return the address of a file from a folder; the whole one if they are on two drives."""
    try:
        return quote(Path(os.path.relpath(path, folder)).as_posix())
    except ValueError:
        return Path(path).as_uri()


def _count(entry: Entry) -> str:
    return f" ({counted(len(entry.entries), 'entry')})" if entry.entries else ""


def _after(entry: Entry) -> str:
    return f": {_escaped(entry.line)}" if entry.line else ""


def _with_time_of(text: str, held: bytes | None) -> str:
    """Return what a file holds if only the generation differs, else the text."""
    before = "" if held is None else held.decode(errors="replace").replace("\r\n", "\n")
    if (line := GENERATED.search(before)) is None:
        return text
    same = GENERATED.sub(lambda _: line[0], text, count=1)
    return same if same == before else text


def _digest(data: bytes) -> str:
    """Return the digest of a text, in which the kind of line breaks does not count."""
    return sha256(data.replace(b"\r\n", b"\n")).hexdigest()


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=0, sort_keys=True) + "\n").encode()
