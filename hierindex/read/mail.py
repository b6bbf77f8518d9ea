"""E-mails, also those that Outlook saved: their subject and body."""

import struct
from contextlib import suppress
from email import message_from_bytes
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from io import BytesIO
from os import SEEK_END
from typing import TYPE_CHECKING, BinaryIO

from hierindex.node import TITLE, Heading
from hierindex.read.html import read_html
from hierindex.read.office import MAX_GROWTH, OLE
from hierindex.read.text import MAX_TITLE, Reading, UnreadableError, read_bytes, read_text

if TYPE_CHECKING:
    from oxmsg import Message

FIELDS = {"subject": TITLE, "from": "from", "to": "to", "date": "date"}
DISPLAY_TO = 0x0E04  # property: the recipients' names, between semicolons

MALFORMED = ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError
"""Exceptions of `email` for malformed messages."""


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


def read_outlook(file: BinaryIO) -> Reading:
    """Return what `read_mail` returns of an e-mail; other files with the suffix are text."""
    is_message = file.read(len(OLE)) == OLE
    file.seek(0)
    if not is_message:
        return read_text(file)
    try:
        return mail_reading(_as_email(file))
    except ImportError as error:
        raise UnreadableError("needs `pip install 'hierindex[office]'`") from error
    except (*MALFORMED, OSError, struct.error) as error:
        raise UnreadableError("cannot be read as an Outlook message") from error


def _as_email(file: BinaryIO) -> EmailMessage:
    from olefile import OleFileIO
    from oxmsg import Message
    from oxmsg.domain.model import UnrecognizedCodePageError

    with OleFileIO(file) as parts:  # several of which may be at one place of the file
        size = sum(part.size for part in parts.direntries if part is not None)
    if (growth := size - file.seek(0, SEEK_END)) > MAX_GROWTH:
        reason = f"grows by {growth:,} bytes when unpacked, more than {MAX_GROWTH:,}"
        raise UnreadableError(reason)
    file.seek(0)
    try:
        return _converted(Message.load(file))
    except UnrecognizedCodePageError as error:
        raise ValueError from error


def _converted(saved: "Message") -> EmailMessage:
    """Return a message with its plain or HTML text, and with attachments that are empty."""
    email = EmailMessage()
    to = saved.properties.str_prop_value(DISPLAY_TO) or ""
    to = saved.message_headers.get("To", to.replace(";", ","))
    for name, value in {"Subject": saved.subject, "From": saved.sender, "To": to}.items():
        if value:
            email[name] = _line(value)
    if saved.sent_date is not None:
        email["Date"] = saved.sent_date
    text = (saved.body or "").rstrip("\0")
    html = "" if text.strip() else saved.html_body or ""
    email.set_content(html or text, subtype="html" if html else "plain")
    for attachment in saved.attachments:
        name = _line(attachment.file_name or "unnamed")
        email.add_attachment(b"", maintype="application", subtype="octet-stream", filename=name)
    return email


def _line(value: str) -> str:
    return " ".join(value.rstrip("\0").split())[:MAX_TITLE]
