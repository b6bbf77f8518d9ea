"""Share of the words that another tool finds in files that our readers find, too, by format.

The other tool is PDFium's plain text of a PDF, the text in the XML of Word, PowerPoint and EPUB
files, all text of an HTML page outside `nav`, `script` and the like, and the plain parts of an
e-mail. Both sides are compared as words in NFKC without case, and each word counts as often as it
stands there. Files with fewer than 20 words are left out. Of files with a share below 0.98, the
most frequent words that are missing are printed.

Usage: python tests/benchmarks/words_read.py FOLDER
"""

import re
import sys
import unicodedata
from collections import Counter, defaultdict
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from statistics import mean, median
from zipfile import ZipFile

import pypdfium2
from lxml import etree, html

from hierindex.read.documents import read_files
from hierindex.read.files import files_of

LEAST_WORDS = 20
EXPLAINED = 0.98
N_MISSING = 12
NO_CONTENT = "script", "style", "noscript", "template", "nav", "head"
PARTS = {  # of the archive, by suffix, and the element whose text counts
    ".docx": (r"word/document\.xml", "t"),
    ".pptx": (r"ppt/slides/slide\d+\.xml", "t"),
    ".epub": (r".*\.x?html?", None),
}
BREAKS = {"p", "br", "tab", "tr"}


def words(text: str) -> Counter[str]:
    """Count the words of a text."""
    plain = unicodedata.normalize("NFKC", text).replace("\xad", "").casefold()
    return Counter(re.findall(r"\w+", plain))


def of_pdf(path: Path) -> str:
    """Return PDFium's text of all pages; a hyphen at a line end goes with the line end."""
    with pypdfium2.PdfDocument(path) as pdf:
        return "\n".join(page.get_textpage().get_text_range() for page in pdf).replace("\ufffe", "")


def of_parts(path: Path) -> str:
    """Return the text in the XML of an archive's parts."""
    name, tag = PARTS[path.suffix.lower()]
    with ZipFile(path) as archive:
        parts = [archive.read(part) for part in archive.namelist() if re.fullmatch(name, part)]
    if tag is None:
        return "\n".join(" ".join(html.fromstring(part).itertext()) for part in parts)
    texts = []
    for part in parts:
        for element in etree.fromstring(part).iter(etree.Element):
            local = etree.QName(element).localname
            texts.append((element.text or "") if local == tag else " " * (local in BREAKS))
    return "".join(texts)


def of_html(path: Path) -> str:
    """Return all text of a page but for what is never its content."""
    page = html.fromstring(path.read_bytes())
    for element in [*page.iter(*NO_CONTENT)]:
        element.drop_tree()
    return " ".join(page.itertext())


def of_mail(path: Path) -> str:
    """Return the plain parts of an e-mail."""
    message = message_from_bytes(path.read_bytes(), policy=default)
    return "\n".join(
        p.get_content() for p in message.walk() if p.get_content_type() == "text/plain"
    )


OTHER = {
    ".pdf": of_pdf,
    **dict.fromkeys(PARTS, of_parts),
    **dict.fromkeys((".html", ".htm"), of_html),
    ".eml": of_mail,
}


def missing_of(path: Path) -> tuple[Counter[str], int, str]:
    """Return the words that are missing, how many there are, and what the reader says of it."""
    theirs = words(OTHER[path.suffix.lower()](path))
    documents, skipped = read_files(files_of([str(path)]))
    ours = sum((words(document.text) for document in documents), Counter[str]())
    said = [each.reason for each in skipped]
    said += [str(phrase) for d in documents for phrase in d.metadata.get("left_out", ())]
    return theirs - ours, sum(theirs.values()), "; ".join(said)


def main(folder: Path) -> None:
    """Print a row for each format, and a line for each file that lacks words."""
    shares, lacking, n_failed = defaultdict[str, list[float]](list), list[str](), 0
    for path in sorted(each for each in folder.rglob("*") if each.suffix.lower() in OTHER):
        try:
            missing, n_words, said = missing_of(path)
        except Exception as error:  # noqa: BLE001  # of the other tool, on broken files
            n_failed += 1
            print(f"{path}: {type(error).__name__}", file=sys.stderr)
            continue
        if n_words < LEAST_WORDS:
            continue
        share = 1 - missing.total() / n_words
        shares[path.suffix.lower()].append(share)
        if share < EXPLAINED:
            lost = " ".join(word for word, _ in missing.most_common(N_MISSING))
            lacking.append(f"{share:.3f}  {path}  {said}  {lost}")
    print("format  files  median   mean  under 0.98")
    for suffix, of in sorted(shares.items()):
        under = sum(share < EXPLAINED for share in of)
        print(f"{suffix:6}  {len(of):5}  {median(of):6.4f}  {mean(of):.3f}  {under:10}")
    print(f"{n_failed} files that the other tool cannot read\n", *sorted(lacking), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
