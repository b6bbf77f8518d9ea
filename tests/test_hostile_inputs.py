"""Files that want to stop a build: each is read, or skipped for a reason in our own words."""

import codecs
import json
import os
import re
import socket
import subprocess
import unicodedata
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from indexes import built
from pdfs import locked, pdf_of
from processes import started

from hierindex import HierarchicalIndex, load_embed_model
from hierindex.errors import InputError

GOOD = "The keeper of the lighthouse wrote a letter. The baker mended the oven."
PDF = pdf_of("The first page.\nIt has two lines.", "The second page.")
NEVER = 600  # seconds until a process is taken to wait for ever; it needs some five

REASON = re.compile(
    r"is empty|contains only white space|is not text|is a PDF without text|is an encrypted PDF"
    r"|is a pipe, a socket or a device|is a link to a folder"
    r"|has a line of [\d,]+ characters, more than 1,000,000; divide it into lines"
    r"|has elements nested too deep, or is damaged"
    r"|cannot be read as PDF|cannot be read \([A-Za-z][a-z -]+\)"
)

NAMES = [  # what stands before the suffix
    b"plain",
    b"caf\xe9",
    b"\xff\xfe\x80",
    b"\xed\xa0\x80 half",
    "\u202egnp.exe \u2028 雪 \U0001f600".encode(),
    b"\x1b[2J\x07\x9b",
    b"two\nlines\r\ttab",
    b"-rf --help $(id) `id` ;&|",
    b"%s %n {0} {path!r} [bold]",
    b"C:\\aux \\xff 'quo\"te",
    b" blank ",
    b"a" * 200,
]
ENCODINGS = "utf-8 utf-8-sig utf-16 utf-32 latin-1 koi8-r shift_jis gb18030 utf-7 cp037".split()
CHARACTERS = (
    "word |é|雪|\U0001f600|\n|\r\n|. |\x1b[2J|\a|\f|\x85|\x7f|\u202e|\u2028|\ufeff|e\u0301|?! "
).split("|")
MARKUP = (
    "<div> </div> <p <pre> </pre> <!-- --> <script> </script <title> <a/b=' \" ' = <![CDATA[ ]]> "
    "<? </ < > & &# &lt &#xD800; &#1114112; \x1b[2J text <template> <svg/> <br>"
).split(" ")
MARKUP += [" ", "\n", "9" * 5000]
TOKENS = (
    "|<<|>>|[|]|1 0 R|2 0 R|4 0 R|9 9 R|/Kids|/Length|-1|null|1e999|stream|obj|/Encrypt"
    "|/Filter /FlateDecode|/Filter /No"
).split("|")


def text(path: Path, random: Random) -> None:
    said = "".join(random.choices(CHARACTERS, k=random.randrange(400)))
    path.write_bytes(said.encode(random.choice(ENCODINGS), "replace"))


def broken_text(path: Path, random: Random) -> None:
    data = bytearray("The keeper wrote to Zoë — twice.\n".encode() * random.randrange(1, 40))
    for _ in range(random.randrange(1, 9)):
        data[random.randrange(len(data))] = random.choice(b"\x80\xc3\xff\0\x1b\xed")
    path.write_bytes(data)


def binary(path: Path, random: Random) -> None:
    heads = [b"", b"PK\3\4", b"\x89PNG\r\n", b"\x7fELF", codecs.BOM_UTF16_LE, codecs.BOM_UTF8]
    path.write_bytes(random.choice(heads) + random.randbytes(random.randrange(5000)))


def huge(path: Path, random: Random) -> None:
    """A terabyte of zeros, of which nothing is on the disk."""
    path.write_bytes(random.choice([b"", b"text ", b"%PDF-1.7\n"]))
    os.truncate(path, 2**40)


def long_line(path: Path, random: Random) -> None:
    path.write_bytes(random.choice([b"x", b"word ", b"0,", "雪".encode()]) * 1_100_000)


def blanks(path: Path, random: Random) -> None:
    path.write_text(random.choice(["", " ", "\n", "\t\r\n\x0c", "\ufeff", "\u3000\u2028"]) * 9)


def nested_html(path: Path, random: Random) -> None:
    name, n = (
        random.choice(["div", "b", "p", "pre", "table><tr><td", "ul><li"]),
        random.choice([500, 20_000]),
    )
    path.with_suffix(".html").write_text(f"<{name}>" * n + "text" + "</div>" * n)


def broken_html(path: Path, random: Random) -> None:
    said = "".join(random.choices(MARKUP, k=random.randrange(600)))
    path.with_suffix(".HTM").write_text(said + random.choice(MARKUP) * 5_000)


def broken_pdf(path: Path, random: Random) -> None:
    data = bytearray(random.choice([PDF, locked(PDF, 2), locked(PDF, 5)]))
    for _ in range(random.randrange(9)):
        at = random.randrange(9, len(data))
        data[at : at + random.randrange(20)] = random.choice(TOKENS).encode()
    path.with_suffix(".pdf").write_bytes(data)


def pipe(path: Path, random: Random) -> None:
    os.mkfifo(path.with_suffix(random.choice([".txt", ".html", ".pdf", ""])))


def listening(path: Path, random: Random) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(path.parent, os.O_RDONLY)
        try:  # the whole path may be too long for a socket's
            server.bind(f"/proc/self/fd/{here}/{random.random()}.sock")
        finally:
            os.close(here)


def link(path: Path, random: Random) -> None:
    devices = ["/dev/zero", "/dev/full", "/dev/tty"]
    path.symlink_to(random.choice([*devices, "nowhere", "..", ".", "/", path.name, "a" * 4000]))


def deep(path: Path, random: Random) -> None:
    """Folders down to where no path leads, made from within."""
    names = [path.name[:9], *["d" * random.choice([1, 200])] * random.choice([30, 1500])]
    here = os.open(path.parent, os.O_RDONLY)
    for name in names:
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    file = os.open("deep.txt", os.O_CREAT | os.O_WRONLY, dir_fd=here)
    os.write(file, GOOD.encode())
    os.close(file)
    os.close(here)


def closed(path: Path, random: Random) -> None:
    """What its owner may not read, if that is not root."""
    path.mkdir()
    (path / "a.txt").write_text(GOOD)
    random.choice([path, path / "a.txt"]).chmod(0)


MAKERS = [text, broken_text, binary, huge, long_line, blanks, nested_html, broken_html, broken_pdf]
MAKERS += [pipe, listening, link, deep, closed]


def make(folder: Path, seed: int) -> str:
    """One hostile thing in a folder; what kind it is."""
    random = Random(seed)
    maker = MAKERS[seed % len(MAKERS)]
    suffix = random.choice([b".txt", b".md", b".html", b".pdf", b".htm", b"", b".\xe9"])
    path = folder / os.fsdecode(b"%d " % seed + random.choice(NAMES) + suffix)
    maker(path, random)
    return maker.__name__


@pytest.fixture
def folder(tmp_path):
    """A folder that is deleted whatever it holds; pytest gives up at some depth."""
    (tmp_path / "hostile").mkdir()
    yield tmp_path / "hostile"
    subprocess.run(["rm", "-rf", tmp_path / "hostile"], check=False, stderr=subprocess.DEVNULL)


def fill(folder: Path, seeds: range) -> Counter[str]:
    """One hostile thing for each seed, and a file to index; numbers by kind."""
    (folder / "good.txt").write_text(GOOD)
    return Counter(make(folder, seed) for seed in seeds)


def test_hostile_files_are_read_or_skipped(folder, tmp_path, capfd):
    made = fill(folder, range(len(MAKERS)))
    report = built(folder, tmp_path / "index").last_build
    assert report.added + len(report.skipped) == made.total() + 1
    for skipped in report.skipped:
        assert REASON.fullmatch(skipped.reason)
        assert skipped.path.encode()
    assert capfd.readouterr() == ("", "")


def test_documents_of_any_name_are_updated_and_deleted(folder, tmp_path, capfd):
    paths = [folder / os.fsdecode(name + b".txt") for name in NAMES]
    paths += [folder / unicodedata.normalize(form, "zoë.md") for form in ("NFC", "NFD")]
    paths += [folder / "folder.md" / "in.pdf" / "page.txt"]
    for i, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{GOOD} It was day {i}.")
    index = built(folder, tmp_path / "index")
    assert index.last_build.added == len(paths)
    assert index.update().unchanged == len(paths)
    ids = {node.ref_doc_id for node in index.store.get_nodes() if node.ref_doc_id}
    assert len(ids) == len(paths)
    assert index.delete(*ids - {"folder.md/in.pdf/page.txt"}).removed == len(paths) - 1
    assert index.update().unchanged == 1
    assert index.verify().ok
    assert index.update([*paths[:-1]]).added == len(paths) - 1
    paths[0].write_text("It says something else.")
    assert index.update().changed == 1
    assert index.verify().ok
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", [b"caf\xe9", "C:\\xe9 zoë 雪\n".encode()])
def test_a_source_of_any_name_is_updated(tmp_path, name):
    folder = tmp_path / os.fsdecode(name)
    for inside in ("a.txt", "deep/b.txt", "deep/c.txt"):
        (folder / inside).parent.mkdir(parents=True, exist_ok=True)
        (folder / inside).write_text(f"{GOOD} It was {inside}.")
    index = built(folder, tmp_path / "index")
    for path in (None, folder, folder / "deep", folder / "deep" / "b.txt"):
        assert index.update(path).unchanged == 3
    index.delete("a.txt")
    assert index.update().unchanged == 2
    assert index.update(folder / "a.txt").added == 1
    (folder / "a.txt").unlink()
    assert index.update().removed == 1


@pytest.mark.parametrize("name", [b"caf\xe9", b"two\nlines", b"\x7f"])
def test_an_index_in_a_folder_that_lancedb_refuses(tmp_path, name):
    with pytest.raises(InputError, match="name another folder"):
        HierarchicalIndex.open(tmp_path / os.fsdecode(name) / "index")
    assert not [*tmp_path.iterdir()]


def test_a_document_is_deleted_by_the_name_that_the_shell_gives(folder, tmp_path, run):
    (folder / os.fsdecode(b"caf\xe9.txt")).write_text(GOOD)
    (folder / "b.txt").write_text(f"{GOOD} Twice.")
    built(folder, tmp_path / "index", model=load_embed_model())
    index = str(tmp_path / "index")
    assert run("delete", os.fsdecode(b"caf\xe9.txt"), "--index", index)[0] == 0
    assert HierarchicalIndex.open(index).info()["documents"] == 1


@pytest.mark.slow
def test_300_hostile_inputs_on_the_command_line(folder, tmp_path):
    """In fifteen folders; printed as people read it, then as JSON."""
    made, added, skipped = Counter(), 0, Counter()
    for begin in range(0, 300, 20):
        inputs = folder / str(begin)
        inputs.mkdir()
        made += fill(inputs, range(begin, begin + 20))
        for form in ([], ["--json"]):
            process = started(["build", str(inputs), "--index", f"W{begin}", *form], tmp_path)
            process.join(NEVER)
            assert process.exitcode == 0, (begin, (tmp_path / "err").read_text())
            out, err = (tmp_path / "out").read_bytes().decode(), (tmp_path / "err").read_bytes()
            assert not re.search("[\0-\t\x0b-\x1f\x7f-\x9f]", out + err.decode())
            assert all(line.startswith(b"hierindex: ") for line in err.splitlines())
        report = json.loads(out)
        added += report["unchanged"] - 1
        skipped += Counter(each["reason"] for each in report["skipped"])
        assert all(REASON.fullmatch(each["reason"]) for each in report["skipped"])
    assert added + skipped.total() == made.total() == 300
