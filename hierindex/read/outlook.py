"""Messages that Outlook saved: read as e-mails."""

import struct
from email.message import EmailMessage
from os import SEEK_END
from typing import TYPE_CHECKING, BinaryIO

from hierindex.read.mail import MALFORMED, mail_reading
from hierindex.read.office import MAX_GROWTH, OLE
from hierindex.read.text import MAX_TITLE, Reading, UnreadableError, read_text

if TYPE_CHECKING:
    from oxmsg import Message

DISPLAY_TO = 0x0E04  # property: the recipients' names, between semicolons


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
