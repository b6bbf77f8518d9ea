"""The tree as a folder of Markdown: a folder for each group, a file for each document."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from hierindex import __version__
from hierindex.core.titles import first_words, listed, without_shared_prefix
from hierindex.errors import InputError
from hierindex.export.files import ordered_nodes, writing
from hierindex.index import HierarchicalIndex
from hierindex.node import Node, Span, place_of, shared_section, titles_of, to_json
from hierindex.read.files import file_in
from hierindex.text.blocks import quoted_blocks
from hierindex.text.characters import folded
from hierindex.text.markup import displayed
from hierindex.text.sentences import split_sentences
from hierindex.unsafe import UNSAFE, visible

MANIFEST = ".hierindex.json"  # by path, the document and the digests of a file
Written = dict[str, int | list[str]]  # what an export did
MAX_ENTRIES = 400  # of a folder; more are divided into parts by the digests of their documents
PARTS = 37  # which hold 14,800 entries
UNNAMED = rf"(?:[\s!-/:-@\[-`{{-\x7f]|{UNSAFE.pattern})+"  # what names do not have
# Names that the format has for other files, or Windows for devices.
RESERVED = re.compile(r"(?:index|log|con|prn|aux|nul|com\d|lpt\d)(?:\.|$)")
LINE_START = re.compile(r"^[ \t]*(?:(?:>|[-*+\u2022](?=\s)|#{1,6}(?=\s))[ \t]*)+", re.MULTILINE)
# What Markdown, GitHub or Obsidian would not show as it is, within a line and at its start.
MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|$)|[`~$]|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_|_(?![^\W_])|<(?=[\w/!?])"
    r"|&(?=#?\w+;)|\[(?=[\[^])|(?<=\^)\[|\](?=[(\[:])|(?<!\S)#(?=\w)|(?<= )#(?=#*$)|=(?==)|%(?=%)"
    r"|^[#>=|]|^[-+:](?=\s|$|-)"
)
FORMULA = re.compile(r"(\$(?=\S)(?=[^$]{,300}[\\^_{])[^$]{1,300}(?<=\S)\$(?!\d))")
NUMBER = re.compile(r"^(\d{1,9})(?=[.)](?:\s|$))")  # which would begin a list


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
        lines = (_on_one_line(text) for *_, kind, text, _ in _passages(self) if kind == "paragraph")
        return next((split_sentences(line)[0].text for line in lines), self.title)


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
        Folder to write to; missing folders are created. Its `.hierindex.json` holds digests of what
        was written, and the file of each document, so that names stay when titles change.
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
        If there is no index, it is empty, a link in the folder leads outside, its `.hierindex.json`
        is damaged, or the folder cannot be written.
    """
    with writing(folder):
        return _update(index, Path(folder).absolute(), force)


def _update(index: HierarchicalIndex, folder: Path, force: bool) -> Written:
    snapshot, manifest = index.table.snapshot(), folder / MANIFEST
    nodes, held = ordered_nodes(snapshot), dict[str, list[str]]()
    try:
        read = json.loads(manifest.read_bytes()) if manifest.exists() else {}
        held |= {path: [first, *map(str, rest)] for path, (first, *rest) in read.items()}
    except (AttributeError, TypeError, ValueError) as error:
        message = f"{str(manifest)!r} is damaged; restore it, or export to an empty folder."
        raise InputError(message) from error
    generated = {"by": f"hierindex/{__version__}", "at": snapshot.details().get("time", "")}
    sources = {node.documents[0]: node.read_from for node in nodes if node.read_from}
    files = {document: file_in(source, document) for document, source in sources.items()}
    entries = {e.path: e for e in _named(_tree(nodes), "", {held[path][0]: path for path in held})}
    ours, changes, kept = held.copy(), dict[str, str](), list[str]()
    for path in sorted({*entries, *held}):
        file, entry, (_, *known) = folder / path, entries.get(path), held.get(path, [""])
        if not file.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{str(file)!r} is outside of {str(folder)!r}; remove the link.")
        text = _page(entry, folder, files, generated) if entry else ""
        before = _digest(file.read_text("utf-8", "replace")) if file.exists() else ""
        after = _digest(text) if text else ""
        if before in ("", after, *known) or (force and text and known):
            changes |= {path: text} if before != after else {}
            ours[path] = [entry.document if entry else "", after]
        else:
            kept.append(path)
    both = {path: [*digests, *held.get(path, [])[1:]] for path, digests in ours.items()}
    ours = {path: digests for path, digests in ours.items() if digests[-1]}
    if changes or ours != held:
        # The manifest knows files of before and after while they change, which may be broken off.
        first, last = (json.dumps(each, indent=0, sort_keys=True) for each in (both, ours))
        for path, text in ((MANIFEST, first), *changes.items(), (MANIFEST, last)):
            _write(folder, path, text)
    removed = [*changes.values()].count("")
    written = len(changes) - removed
    return {"nodes": len(nodes), "written": written, "removed": removed, "kept": kept}


def _tree(nodes: Sequence[Node]) -> Entry:
    """Return the groups and documents of an index, each under its strongest parent."""
    entries, under = {"": Entry("Contents")}, dict[str, list[Node]]()
    homes = Counter[tuple[str, str]]()  # chunks by document and group
    for node in reversed(nodes):  # parents first
        document, home = node.documents[0], node.parents[0][0] if node.parents else ""
        if len(node.documents) > 1:
            entries[node.id] = Entry(node.title, [node])
            entries[home].entries.append(entries[node.id])
        else:
            under.setdefault(document, []).append(node)
            homes[document, home] += node.n_chunks if home in entries else 0
    home_of = dict[str, str]()
    for (document, home), _ in homes.most_common():
        home_of.setdefault(document, home)
    for each, home in sorted(home_of.items(), reverse=True):
        first, *rest = sorted(under[each], key=lambda n: (not n.whole_document, n.start, -n.level))
        said = [first, *(n for n in rest if n.kind != "chunk" or not first.whole_document)]
        entries[home].entries.append(Entry(first.document_name or each, said, each))
    (top,) = _pruned(entries[""])
    return entries[""] if top.document else top


def _pruned(entry: Entry) -> list[Entry]:
    """Return a document, a group of at least two entries, or otherwise the entries themselves."""
    entry.entries = [each for below in reversed(entry.entries) for each in _pruned(below)]
    if len(entry.entries) > MAX_ENTRIES:
        parts = dict[int, list[Entry]]()
        for each in entry.entries:
            first = each.document or each.nodes[0].documents[0]
            parts.setdefault(int(_digest(first), 16) % PARTS + 1, []).append(each)
        entry.entries = [Entry(f"Part {n}", entries=part) for n, part in sorted(parts.items())]
    return [entry] if entry.document or len(entry.entries) > 1 else entry.entries


def _named(entry: Entry, folder: str, stood: Mapping[str, str]) -> list[Entry]:
    """Return a group and its entries, with the names that most of their documents had before."""
    entry.path, found = f"{folder}index.md", [entry]
    votes, names = Counter[tuple[Entry, str]](), dict[Entry, str]()
    for below in entry.entries:
        for before in (stood.get(each, "") for node in below.nodes[:1] for each in node.documents):
            name, slash, _ = before.removeprefix(folder).partition("/")
            votes[below, name] += before.startswith(folder) and bool(slash) != bool(below.document)
    for (below, name), n in votes.most_common():
        if n and name and below not in names and name not in names.values():
            names[below] = name
    for below in entry.entries:
        suffix, taken, room = ".md" * bool(below.document), {*names.values()}, 116 - len(folder)
        words = re.sub(UNNAMED, " ", folded(below.title).lower()).strip() or "untitled"
        slug = first_words(words, min(60, room) if suffix else max(8, min(24, room // 4))).replace(
            " ", "-"
        )
        tries = [slug + suffix, *(f"{slug}-{i}{suffix}" for i in range(2, len(taken) + 4))]
        free = (name for name in tries if name not in taken and not RESERVED.match(name))
        below.up, below.path = entry, folder + names.setdefault(below, next(free))
        found += _named(below, f"{below.path}/", stood) if below.entries else [below]
    return found


def _page(entry: Entry, folder: Path, files: Mapping[str, Path | None], generated: object) -> str:
    """Return the text of a file."""

    def link(text: str, path: str | Path, anchor: str = "") -> str:
        address = Path(os.path.relpath(folder / path, folder / entry.path / "..")).as_posix()
        link = quote(os.fsencode(address)) + anchor
        label = re.sub(r"(?<!\\)[][]", r"\\\g<0>", _escaped(text))
        return f"[{label}]({link})" if text else link

    def place(span: Span) -> str:
        name = place_of(span._replace(section="", anchor="").to_json())
        file, page = files.get(span.document), f"#page={span.page}" * bool(span.page)
        shown = link(name, file, page) if file else _escaped(name)
        return f"{shown}, characters {span.start}-{span.end}"

    head = "" if entry.up else 'okf_version: "0.2"\n'  # which the topmost index has
    if entry.document:
        file, source = files.get(entry.document), {"id": entry.document}
        source |= {"resource": link("", file)} if file else {}
        values = ("Document", entry.title, entry.line, [source], generated, "stable")
        pairs = zip("type title description sources generated status".split(), values, strict=True)
        head = "".join(f"{key}: {UNSAFE.sub(' ', to_json(value))}\n" for key, value in pairs)
    up, beside = entry.up, [None, *(entry.up.entries if entry.up else [entry]), None]
    at, notes = beside.index(entry), dict[Span, int]()
    near = zip(("Up", "Previous", "Next"), (up, beside[at - 1], beside[at + 1]), strict=True)
    items = [(link(e.title, e.path), _escaped(e.line) * (e.line != e.title)) for e in entry.entries]
    parts = [
        head and f"---\n{head}---",
        f"# {_escaped(entry.title)}",
        " · ".join(link(word, to.path) for word, to in near if to),
        *_body(entry, notes),
        "\n".join("- " + ": ".join(filter(None, item)) for item in items),
        "\n".join(f"[^{n}]: {place(span)}" for span, n in notes.items()),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _body(entry: Entry, notes: dict[Span, int]) -> list[str]:
    """Return what a page says, everything once: in order under the headings, if it has any."""
    parts, said = list[str](), {*[below.line for below in entry.entries]}
    above, before = list[str](), ("", "", "")  # the headings, and the place and kind of the last
    found = [*_passages(entry)]
    if titled := any(place.section for place, *_ in found):
        found.sort(key=lambda each: each[0].start)
    for (_, _, _, _, section, *_), node, kind, text, span in found:
        line = _on_one_line(text)
        if (key := str(span[:3]) if span and entry.document else line) in said:
            continue
        said.add(key)
        titles = titles_of(section)[titles_of(section)[:1] == [entry.title] :]
        pairs = zip([*titles, None], [*above, ""], strict=False)
        shared = next(i for i, (title, last) in enumerate(pairs) if title != last)
        parts += [
            f"{'#' * min(level, 6)} {_escaped(title)}"
            for level, title in enumerate(titles[shared:], shared + 2)
        ]
        start = {"item": "- ", "row": "- ", "code": "```"}.get(kind, "") * bool(entry.document)
        note = f"[^{notes.setdefault(span, len(notes) + 1)}]" if span else ""
        shown = f"{start}{_escaped(line)}{note}"
        if start == "```":
            fence = "`" * (3 + text.count("`"))
            shown = f"{fence}\n{visible(text, lines=True)}\n{fence}\n{note}"
        here = section, "" if titled else node.id, start
        if here == before and start == "- ":
            parts[-1] += f"\n{shown}"
        elif here == before and not start and node.kind != "chunk":
            parts[-1] += f" {shown}"
        else:
            parts.append(shown)
        above, before = titles, here
    return parts


def _passages(entry: Entry) -> Iterator[tuple[Span, Node, str, str, Span | None]]:
    """Yield the quotes of nodes: position among headings, node, kind of block, text and source."""
    for node in entry.nodes:
        whole = Span("", node.start, 0, section=shared_section(s.section for s in node.citations))
        for part in node.quotes:
            for block in [*quoted_blocks(node.text, part)][: 1 if node.level else None]:
                to = part.to if node.level else block.end  # a quote of a summary is a sentence
                text = displayed(node.text[block.start : to].strip("|"))
                source = part.part(block.start, to).source
                place = source if source and part.verbatim and entry.document else whole
                if block.kind not in ("heading", "front matter") and re.search(r"\w", text):
                    yield place, node, block.kind, text, source


def _on_one_line(text: str) -> str:
    return " ".join(UNSAFE.sub(" ", LINE_START.sub("", text)).split())


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
