"""Share of the words that another tool finds in files that our readers find too.

The other tools: PDFium's plain text of a PDF, the text in the XML of Word, PowerPoint and EPUB
files, openpyxl's values, striprtf, the body streams of an Outlook message, the plain parts of an
e-mail (or its HTML, where it has no other), the cells of a notebook, and the characters of CSV and
WebVTT files. Of HTML, `.html` compares with the content that trafilatura finds, and `all html`
with all visible text.

Both sides are words in NFKC without case, and each word counts as often as it stands there. What
the reader reports as left out is subtracted: of a PDF's running lines these very words, of all HTML
as many words as it says (which could hide lost content: `.html` has no such allowance). Files with
fewer than 20 words are left out. Of files with a share below 0.98, it and the longest passage that
is missing are printed.

Usage: pip install striprtf trafilatura; python tests/benchmarks/words_read.py FOLDER
"""

import json
import re
import sys
import unicodedata
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from email import message_from_bytes
from email.policy import default
from itertools import groupby
from pathlib import Path
from statistics import mean, median
from zipfile import ZipFile

import olefile
import openpyxl
import pypdfium2
from lxml import etree, html
from striprtf.striprtf import rtf_to_text
from trafilatura import extract

from hierindex import read_documents
from hierindex.errors import SourceError

LEAST_WORDS = 20
EXPLAINED = 0.98
SHOWN = 25  # words
UTF_16 = BOM_UTF16_LE, BOM_UTF16_BE
NO_CONTENT = "script", "style", "noscript", "template", "nav", "head"
PARTS = {  # of the archive, by suffix, and the elements whose text counts
    ".docx": (r"word/(document|footnotes|endnotes)\.xml", "t"),
    ".pptx": (r"ppt/(slides/slide|notesSlides/notesSlide|diagrams/data)\d+\.xml", "t"),
    ".epub": (r".*\.x?html?", None),
}
BREAKS = {"p", "br", "tab", "tr", "oMath", "num", "den", "e", "sub", "sup"}
RUNNING_LINE = re.compile(r"(a line|page numbers) at the \w+ of ([\d,]+) of .*?(?:: (['\"].*))?$")
N_WORDS = re.compile(r"([\d,]+) words? (?:in menus|not displayed|struck out)")


def words(text: str, between: str = r"\W+") -> list[str]:
    """Return the words of a text without marks, such as soft hyphens and vowel signs."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    letters = "".join(c for c in plain if unicodedata.category(c) not in ("Mn", "Mc", "Cf"))
    return [*filter(None, (re.sub(r"\W", "", word) for word in re.split(between, letters)))]


def decoded(data: bytes) -> str:
    """Return text in one of the encodings that the files of the corpus have."""
    for name in ("utf-16" if data[:2] in UTF_16 else "utf-8-sig", "cp932"):
        try:
            return data.decode(name)
        except UnicodeDecodeError:
            continue
    return data.decode("cp1252", "replace")


def of_pdf(path: Path) -> str:
    """Return PDFium's text of all pages; a hyphen at a line end goes with the line end."""
    with pypdfium2.PdfDocument(path) as pdf:
        return "\n".join(page.get_textpage().get_text_range() for page in pdf).replace("\ufffe", "")


def of_parts(path: Path) -> str:
    """Return the text in the XML of an archive's parts, without `Fallback` elements."""
    name, tag = PARTS[path.suffix.lower()]
    with ZipFile(path) as archive:
        names = [part for part in archive.namelist() if re.fullmatch(name, part)]
        if tag is not None:  # slides are stored in any order
            names.sort(key=lambda part: (len(part), part))
        parts = [archive.read(part) for part in names]
    if tag is None:
        return "\n".join(map(of_page, parts))
    texts = []
    for part in parts:
        page = etree.fromstring(part)
        for fallback in page.findall(".//{*}Fallback"):
            fallback.clear()
        for element in page.iter(etree.Element):
            local = etree.QName(element).localname
            texts.append((element.text or "") if local == tag else " " * (local in BREAKS))
    return "".join(texts)


def of_page(data: bytes) -> str:
    """Return all text of a page but for what is never its content."""
    is_utf8 = "charset" not in str(data[:2048]).casefold() or "utf-8" in str(data[:2048]).casefold()
    page = html.fromstring(data, parser=html.HTMLParser(encoding="utf-8" if is_utf8 else None))
    for element in [*page.iter(*NO_CONTENT)]:
        element.drop_tree()
    return " ".join(page.itertext())


def of_content(path: Path) -> str:
    """Return trafilatura's content of a page."""
    content = extract(path.read_bytes(), include_comments=True, include_tables=True) or ""
    lines = [" ".join(line.split()) for line in content.splitlines()]
    return "\n".join(dict.fromkeys(lines))  # a page of articles comes twice, as comments, too


def of_mail(path: Path) -> str:
    """Return the plain parts of an e-mail, or else its pages."""
    data = path.read_bytes()
    data = decoded(data).encode() if data[:2] in UTF_16 else data
    parts = [*message_from_bytes(data, policy=default).walk()]
    plain = [part.get_content() for part in parts if part.get_content_type() == "text/plain"]
    pages = [part.get_content() for part in parts if part.get_content_type() == "text/html"]
    return "\n".join(plain) or "\n".join(of_page(page.encode()) for page in pages)


def of_message(path: Path) -> str:
    """Return the plain body of an Outlook message."""
    with olefile.OleFileIO(path) as file:
        for stream, encoding in (("1000001F", "utf-16-le"), ("1000001E", "cp1252")):
            if file.exists(f"__substg1.0_{stream}"):
                return file.openstream(f"__substg1.0_{stream}").read().decode(encoding, "replace")
    return ""


def of_workbook(path: Path) -> str:
    """Return the text, dates and numbers without a format of the sheets that are not hidden."""
    values = list[str]()
    for sheet in openpyxl.load_workbook(path, data_only=True).worksheets:
        if sheet.sheet_state != "visible":
            continue
        for cell in (cell for row in sheet.iter_rows() for cell in row):
            value = cell.value
            if isinstance(value, date):
                values.append(str(value.year))
            elif isinstance(value, float):
                values.append(f"{value:.10g}" if cell.number_format == "General" else "")
            elif isinstance(value, str) or (value and cell.number_format == "General"):
                values.append(str(value))
    return "\n".join(values)


def of_notebook(path: Path) -> str:
    """Return the sources of a notebook's cells."""
    cells = json.loads(path.read_bytes())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells)


def of_subtitles(path: Path) -> str:
    """Return the lines after the times of WebVTT cues, without tags."""
    blocks = re.split(r"\n\s*\n", decoded(path.read_bytes()).replace("\r\n", "\n"))
    cues = [block.split("-->")[1].partition("\n")[2] for block in blocks if "-->" in block]
    return re.sub("<[^>]*>", " ", "\n".join(cues))


TOOLS: list[tuple[str, str, Callable[[Path], str]]] = [
    (".pdf", ".pdf", of_pdf),
    *((suffix, suffix, of_parts) for suffix in PARTS),
    (".html", ".html .htm", of_content),
    ("all html", ".html .htm", lambda path: of_page(path.read_bytes())),
    (".eml", ".eml", of_mail),
    (".msg", ".msg", of_message),
    (".xlsx", ".xlsx", of_workbook),
    (".csv", ".csv", lambda path: decoded(path.read_bytes())),
    (".rtf", ".rtf", lambda path: rtf_to_text(path.read_text("latin-1"), errors="ignore")),
    (".ipynb", ".ipynb", of_notebook),
    (".vtt", ".vtt", of_subtitles),
]


def reported(said: Iterable[str], missing: Counter[str], row: str) -> int:
    """Return how many of the missing words the reader says that it left out."""
    rest, n_words = missing.copy(), 0
    for phrase in said:
        if row == "all html" and (found := N_WORDS.match(phrase)):
            n_words += int(found[1].replace(",", ""))
        elif row == ".pdf" and (found := RUNNING_LINE.match(phrase)):
            n_pages = int(found[2].replace(",", ""))
            line = words(found[3] or "1")
            rest -= Counter([*filter(str.isalpha, line)] * n_pages)
            numbers = [*Counter({w: n for w, n in rest.items() if not w.isalpha()}).elements()]
            n_numbers = n_pages * sum(not word.isalpha() for word in line)
            rest -= Counter(numbers[:n_numbers])
    return missing.total() - rest.total() + min(n_words, rest.total())


def longest_missing(theirs: Sequence[str], ours: Sequence[str]) -> str:
    """Return the beginning of the longest passage of which our side has no word left."""
    left, marked = Counter(ours), list[tuple[bool, str]]()
    for word in theirs:
        marked.append((left[word] <= 0, word))
        left[word] -= 1
    runs = [[w for _, w in run] for lost, run in groupby(marked, lambda x: x[0]) if lost]
    return " ".join(max(runs, key=len, default=[])[:SHOWN])


def main(folder: Path) -> None:
    """Print a row for each format, and a line for each file that lacks words."""
    shares: defaultdict[str, list[float]] = defaultdict(list)
    lacking, failed = list[str](), list[str]()
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        text, said = None, list[str]()
        for row, suffixes, other in TOOLS:
            if path.suffix.lower() not in suffixes.split():
                continue
            try:
                between = r"\s+" if row == "all html" else r"\W+"  # as the reader counts
                theirs = words(other(path), between)
            except Exception as error:  # noqa: BLE001  # of the other tool, on broken files
                failed.append(f"{path.name}: {type(error).__name__}")
                continue
            if len(theirs) < LEAST_WORDS:
                continue
            if text is None:
                try:
                    documents, skipped = read_documents(path)
                except SourceError as error:
                    documents, skipped, said = [], [], [str(error)]
                text = "\n".join(document.text for document in documents)
                said += [each.reason for each in skipped]
                said += [str(x) for d in documents for x in d.metadata.get("left_out") or ()]
            ours = words(text, between)
            missing = Counter(theirs) - Counter(ours)
            share = 1 - (missing.total() - reported(said, missing, row)) / len(theirs)
            shares[row].append(share)
            if share < EXPLAINED:
                lost = longest_missing(theirs, ours)
                notes = "; ".join(said)
                lacking.append(f"{row}  {share:.3f}  {path.name}  {notes}  [{lost}]")
    print("format    files  median   mean  under 0.98")
    for row, of in sorted(shares.items()):
        under = sum(share < EXPLAINED for share in of)
        print(f"{row:8}  {len(of):5}  {median(of):6.4f}  {mean(of):.3f}  {under:10}")
    print(f"{len(failed)} files that the other tool cannot read", *failed, sep="\n  ")
    print(*sorted(lacking), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
