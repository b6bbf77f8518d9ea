"""E-mails: their subject and body."""

from contextlib import suppress
from email import message_from_bytes
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from io import BytesIO
from typing import BinaryIO

from hierindex.headings import Heading
from hierindex.read.html import read_html
from hierindex.read.text import MAX_TITLE, Reading, UnreadableError, read_bytes, read_text
from hierindex.record import TITLE

FIELDS = {"subject": TITLE, "from": "from", "to": "to", "date": "date"}


def read_mail(file: BinaryIO) -> Reading:
    """Return subject, body and names of attachments; sender, recipients and date as metadata.

    The body is the plain part, or else the HTML part. A file without the header of an e-mail is
    read as text.
    """
    from email.policy import default

    data = read_bytes(file)
    try:
        message = message_from_bytes(data, _class=EmailMessage, policy=default)
        if not _metadata(message):
            return read_text(BytesIO(data))
        return mail_reading(message)
    except MALFORMED as error:
        raise UnreadableError("cannot be read as an e-mail") from error


def mail_reading(message: EmailMessage) -> Reading:
    """Return what is read of an e-mail, see `read_mail`."""
    metadata, body = _metadata(message), _body(message)
    names = [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]
    before = f"{metadata[TITLE]}\n\n" if TITLE in metadata else ""
    after = f"\n\nAttachments: {', '.join(names)}" if names else ""
    headings = [Heading(1, metadata[TITLE], 0)] if before else []
    headings += (h._replace(level=h.level + 1, start=len(before) + h.start) for h in body.headings)
    return Reading(before + body.text + after, metadata, headings)


def _metadata(message: EmailMessage) -> dict[str, str]:
    """Return the beginnings of the fields of the header, and the date in ISO 8601."""
    metadata: dict[str, str] = {}  # parsing takes time quadratic in the length
    for name, raw in message.raw_items():
        key = FIELDS.get(name.lower(), "")
        value = message.policy.header_fetch_parse(name, raw[:MAX_TITLE]) if key else ""
        if said := " ".join(value.split()):
            metadata.setdefault(key, said)
    if "date" in metadata:
        with suppress(ValueError, OverflowError):
            metadata["date"] = parsedate_to_datetime(metadata["date"]).isoformat()
    return metadata


def _body(message: EmailMessage) -> Reading:
    """Return the first part of text that is not blank."""
    for kind, read in (("plain", read_text), ("html", read_html)):
        part = message.get_body((kind,))
        if part is not None and (text := part.get_content()).strip():
            return read(BytesIO(text.encode("utf-8", "replace")))
    return Reading("", {})


MALFORMED = ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError
"""Exceptions of `email` for malformed messages."""
