"""EPUB files: the text of their chapters."""

import posixpath
from io import BytesIO
from typing import BinaryIO
from urllib.parse import unquote

from hierindex.node import TITLE
from hierindex.read.html import read_html
from hierindex.read.office import DAY, parsed, unpacked
from hierindex.read.text import MAX_TITLE, Reading, UnreadableError, decode

LOCKS = "META-INF/encryption.xml"  # names the parts of a book that are encrypted


def read_epub(file: BinaryIO) -> Reading:
    """Return the text of a book's chapters in their order, and its title, authors and date.

    The chapters are read as the main content of one page of HTML, see `read_html`.
    """
    with unpacked(file, "EPUB") as parts:
        container = parsed(parts.read("META-INF/container.xml"))
        path = container.find(".//{*}rootfile").get("full-path")
        package, folder = parsed(parts.read(path)), posixpath.dirname(path)
        items = {item.get("id"): item for item in package.iterfind(".//{*}manifest/{*}item")}
        names, chapters = set(parts.namelist()), list[str]()
        locks = parts.read(LOCKS) if LOCKS in names else b""
        for reference in package.iterfind(".//{*}itemref"):
            item = items.pop(reference.get("idref"), {})
            name = posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
            is_picture = item.get("media-type", "").startswith("image/")
            if name not in names or is_picture or "nav" in item.get("properties", "").split():
                continue
            if name.encode() in locks:
                raise UnreadableError("is an encrypted book")
            chapters.append(decode(parts.read(name)).text)
        html = "\n".join(["<main>", *chapters, "</main>"])
        text, metadata, headings = read_html(BytesIO(html.encode("utf-8", "replace")))
        authors = ", ".join(name.text or "" for name in package.iterfind(".//{*}creator"))
        title, date = (package.findtext(f".//{{*}}{name}") or "" for name in ("title", "date"))
        day = DAY.match(date.strip())
        about = {TITLE: title, "author": authors, "date": day[0] if day else ""}
        metadata |= {key: said.strip()[:MAX_TITLE] for key, said in about.items() if said.strip()}
        return Reading(text, metadata, [heading._replace(anchor="") for heading in headings])
