"""E-mails, mailboxes and invitations, including those saved by Outlook."""

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from hashlib import sha256
from mimetypes import MimeTypes
from os import SEEK_END
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from hierindex.node import TITLE, Heading
from hierindex.read.html import html_reading
from hierindex.read.office import check_growth
from hierindex.read.text import (
    MALFORMED,
    MAX_TITLE,
    OLE,
    Reading,
    UnreadableError,
    decode,
    read_bytes,
    read_text,
    reading_as,
)

if TYPE_CHECKING:
    from oxmsg import Message

FIELDS = {"subject": TITLE, "from": "from", "to": "to", "cc": "cc", "date": "date"}
WORD = re.compile(r"[^\W_]+")
POSTED = re.compile(  # the line before an e-mail, with its sender and date
    rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]{1,200}?\d:\d\d[^\r\n]{,40}?\d{4}[^\r\n]{,40}\r?\n"
)
ATTACHED = "attachments"  # metadata key of how many there are, for those who read them
TYPES = MimeTypes()
NO_TEXT = b"\0"
NOT_TEXT = re.compile(r"(audio|font|image|video)/|application/(pgp|pkcs7|x-pkcs7)")
LABEL = re.compile(  # fields that tell one e-mail from others
    rb"^(?:date|from|message-id|subject|to)[ \t]*:.*(?:\n[ \t].*)*", re.IGNORECASE | re.MULTILINE
)
END_OF_HEADER = re.compile(rb"\r?\n\r?\n")
MAX_LABEL = 80  # characters of the name of an e-mail in a mailbox
BETWEEN = re.compile(rb"(?<=\n)\r?\n\Z")  # e-mails of a mailbox, and perhaps after the last
QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
CALENDAR = {
    "SUMMARY": "Summary",
    "DTSTART": "Start",
    "DTEND": "End",
    "DUE": "Due",
    "DURATION": "Duration",
    "RRULE": "Repeats",
    "RDATE": "Also",
    "EXDATE": "Except",
    "STATUS": "Status",
    "LOCATION": "Place",
    "ORGANIZER": "Organiser",
    "ATTENDEE": "Invited",
    "DESCRIPTION": "Description",
}
EVENTS = {"VEVENT", "VTODO", "VJOURNAL"}
TIMES = {"DTSTART", "DTEND", "DUE", "RDATE", "EXDATE", "RRULE"}
TIME = re.compile(r"\b(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z)?)?\b")
FIELD = re.compile(r'((?:[^":]|"[^"]*")*):')  # its name and parameters
DISPLAY = {"To": 0x0E04, "Cc": 0x0E03}  # properties: the recipients' names, between semicolons


def read_mail(file: BinaryIO) -> Reading:
    """Return subject, texts and attachment names; sender, recipients and date are metadata.

    The texts are all text parts, forwarded messages and invitations, in order. Of alternative
    parts, the plain text is read unless the HTML has more text. A file without an e-mail header is
    read as text.
    """
    is_outlook = _is_ole(file)
    with reading_as("an Outlook message" if is_outlook else "an e-mail"):
        message = _message(file)
        about = _metadata(message)
        if about or is_outlook:
            return mail_reading(message, about)
    file.seek(0)
    return read_text(file)


def _message(file: BinaryIO) -> EmailMessage:
    """Return the message in a file, which Outlook may have saved."""
    return _as_email(file) if _is_ole(file) else _parsed(read_bytes(file))


def _parsed(data: bytes) -> EmailMessage:
    from email.policy import default

    data = data.removeprefix(BOM_UTF8)  # of a mail that an editor has saved
    return message_from_bytes(data, _class=EmailMessage, policy=default)


def mail_reading(
    message: EmailMessage, metadata: dict[str, Any], *, inside: bool = False
) -> Reading:
    """Return the reading of an e-mail with the given metadata, see `read_mail`.

    An e-mail inside another one has sender, recipients and date in its text as well, and a heading
    even without a subject.
    """
    title = metadata.get(TITLE, metadata.get("from", "Message") if inside else "")
    keys = ("from", "to", "cc", "date") if inside else ()
    fields = "\n".join(f"{key.title()}: {metadata[key]}" for key in keys if key in metadata)
    found = [Reading.block(text) for text in (title, fields) if text]
    found += _texts(message)
    if names := [each.get_filename() or each.get_content_type() for each in _attached(message)]:
        found.append(Reading.block(f"Attachments: {', '.join(names)}"))
    text, more, headings = Reading.joined(found, 1 if title else 0)
    if not inside and (n_attached := len([*_attached(message, also_forwarded=True)])):
        more[ATTACHED] = n_attached
    first = [Heading(1, title, 0)] if title else []
    return Reading(text, {**more, **metadata}, [*first, *headings])


def _metadata(message: EmailMessage) -> dict[str, str]:
    """Return the beginnings of the fields of the header, and the date in ISO 8601."""
    metadata: dict[str, str] = {}  # parsing takes time quadratic in the length
    for name, raw in message.raw_items():
        if (key := FIELDS.get(name.lower())) is None:
            continue
        value = _plain(raw[:MAX_TITLE])
        with suppress(*MALFORMED):  # as of a year that no calendar has
            value = message.policy.header_fetch_parse(name, value)
        if said := " ".join(value.split()):
            metadata.setdefault(key, said)
    if "date" in metadata:
        with suppress(ValueError, OverflowError):
            metadata["date"] = parsedate_to_datetime(metadata["date"]).isoformat()
    return metadata


def _plain(raw: str) -> str:
    """Return a field, in which bytes that are not ASCII should be encoded and may not be."""
    return raw if raw.isascii() else decode(raw.encode("utf-8", "surrogateescape")).text


def _texts(part: EmailMessage) -> Iterator[Reading]:
    """Yield the readings of a part and of the parts inside it."""
    kind = part.get_content_type()
    if kind == "multipart/alternative" and part.is_multipart():
        yield from _alternatives(part)
    elif kind.startswith("message/") and part.is_multipart():
        for message in _parts(part):
            yield mail_reading(message, _metadata(message), inside=True)
    elif part.is_multipart():
        for inside in _parts(part):
            yield from _texts(inside)
    elif _is_text(part) and (reading := _text(part, kind)).text.strip():
        yield reading


def _attached(part: EmailMessage, *, also_forwarded: bool = False) -> Iterator[EmailMessage]:
    """Yield the parts that are files, perhaps also those of e-mails within the e-mail."""
    if not part.is_multipart():
        if not _is_text(part):
            yield part
    elif also_forwarded or not part.get_content_type().startswith("message/"):
        for inside in _parts(part):
            yield from _attached(inside, also_forwarded=also_forwarded)


def _is_text(part: EmailMessage) -> bool:
    """Return whether a part is read as text of its e-mail."""
    kind = part.get_content_type()
    is_inline = kind.startswith(("text/", "multipart/")) and not part.is_attachment()
    return (is_inline and kind != "text/css") or kind == "text/calendar"


def _parts(part: EmailMessage) -> Iterator[EmailMessage]:
    return (inside for inside in part.iter_parts() if isinstance(inside, EmailMessage))


def _text(part: EmailMessage, kind: str) -> Reading:
    """Return the reading of a text part in its encoding."""
    text, metadata, _ = decode(_content(part), part.get_content_charset(""))
    if kind == "text/html":
        return html_reading(text, metadata)
    return Reading(as_lines(text) if kind == "text/calendar" else text, metadata)


def _alternatives(part: EmailMessage) -> Iterator[Reading]:
    """Yield the plain text, or HTML if it has more text, and all invitations.

    The plain text is a stub if it lacks most words of the HTML.
    """
    by_kind = {"text/plain": list[Reading](), "text/calendar": list[Reading]()}
    plain, rich = by_kind["text/plain"], list[Reading]()  # HTML, alone or with its pictures
    for inside in _parts(part):
        by_kind.get(inside.get_content_type(), rich).extend(_texts(inside))
    in_plain, in_rich = (_words(readings) for readings in (plain, rich))
    if len(in_plain & in_rich) < len(in_rich) / 2:
        plain = rich if len(in_rich) >= len(in_plain) else [*plain, *rich]
    elif plain and (n_more := len(in_rich - in_plain)):
        plain[0].leaving_out({"word(s) that only the HTML has": n_more})
    yield from (*(plain or rich), *by_kind["text/calendar"])


def _words(readings: Iterable[Reading]) -> set[str]:
    return {word for reading in readings for word in WORD.findall(reading.text.lower())}


def attachments(file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each attachment; an empty attachment yields a zero byte."""
    for part in _attached(_message(file), also_forwarded=True):
        kind, name = part.get_content_type(), part.get_filename() or "unnamed"
        if not PurePath(name).suffix and kind != "application/octet-stream":
            name += TYPES.guess_extension(kind) or ""
        try:
            data = NO_TEXT if NOT_TEXT.match(kind) else _content(part)
            if charset := part.get_content_charset(""):
                data = decode(data, charset).text.encode("utf-8", "replace")
        except (*MALFORMED, UnreadableError):
            data = NO_TEXT
        yield name, data


def _content(part: EmailMessage) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def read_mailbox(file: BinaryIO) -> Reading:
    """Return an empty reading for a mailbox, which `mails` splits; read other files as text."""
    data = read_bytes(file)
    return decode(data) if POSTED.match(data) is None else Reading("", {})


def mails(file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each e-mail of a mailbox in mbox format, without copies.

    A name consists of the time in UTC, the subject and a digest. The digest does not change when
    other e-mails are added or removed, or when the e-mail is marked as read.
    """
    each = POSTED.split(read_bytes(file))[1:]
    yield from {_label(mail): QUOTED.sub(rb"\1", BETWEEN.sub(b"", mail)) for mail in each}.items()


def _label(mail: bytes) -> str:
    """Return the name of an e-mail."""
    header, *body = END_OF_HEADER.split(mail, maxsplit=1)
    lines = LABEL.findall(header)
    about = _metadata(_parsed(b"\n".join(lines)))
    said = [about[TITLE]] if TITLE in about else []
    with suppress(ValueError, OverflowError):
        time = datetime.fromisoformat(about.get("date", ""))
        said.insert(0, f"{time.astimezone(UTC) if time.tzinfo else time:%Y-%m-%d %H:%M}")
    name = " ".join(said)[:MAX_LABEL] or "e-mail"
    content = b"\n".join([*lines, *body]).rstrip()
    return f"{name} ({short_digest(content)}).eml"


def short_digest(data: bytes) -> str:
    """Return a short digest that distinguishes files of the same name."""
    return sha256(data).hexdigest()[:6]


def read_web_archive(file: BinaryIO) -> Reading:
    """Return the page, with its frames, in a web archive that a browser saved."""
    data = read_bytes(file)
    with reading_as("a web archive"):
        message = _parsed(data)
        if "content-type" not in message:
            return decode(data)
        parts = {"text/html": list[Reading](), "text/plain": list[Reading]()}
        for part in message.walk():
            kind = part.get_content_type().replace("application/xhtml+xml", "text/html")
            if kind in parts:
                parts[kind].append(_text(part, kind))
        found = parts["text/html"] or parts["text/plain"] or [Reading("", {})]
        text, metadata, headings = Reading.joined(page for page in found if page.text.strip())
        return Reading(text, {**found[0].metadata, **metadata}, headings)


def read_calendar(file: BinaryIO) -> Reading:
    """Return the events of a calendar, or the unchanged text if it has no events."""
    text, metadata, _ = read_text(file)
    return Reading(as_lines(text) or text, metadata)


def as_lines(calendar: str) -> str:
    r"""Return the fields of a calendar's events that are meant for people.

    >>> as_lines("BEGIN:VEVENT\nSUMMARY:Tea\\, cake\nDTSTART:20240514T100000Z\nEND:VEVENT")
    'Summary: Tea, cake\nStart: 2024-05-14 10:00 UTC'
    """
    events, inside = list[list[str]](), [""]
    for line in re.sub(r"\n[ \t]", "", calendar).split("\n"):
        field = found[1] if (found := FIELD.match(line)) else line.partition(":")[0]
        name, value = field.upper().partition(";")[0], line[len(field) + 1 :].strip()
        if name == "BEGIN":
            inside.append(value.upper())
            events += [[] for _ in range(inside[-1] in EVENTS)]
        elif name == "END" and len(inside) > 1:
            inside.pop()
        elif name in CALENDAR and inside[-1] in EVENTS and value:
            said = re.sub(r"\\(.)", lambda m: "\n" if m[1] in "nN" else m[1], value)
            if name in TIMES:
                said = TIME.sub(_time, said)
                zone = re.search(r'TZID="?([^";:]+)', field)
                said += f" ({zone[1]})" if zone else ""
            elif name in ("ORGANIZER", "ATTENDEE"):
                called = re.search(r'CN="?([^";:]+)', field, re.IGNORECASE)
                said = called[1] if called else said.rpartition(":")[2]
            events[-1].append(f"{CALENDAR[name]}: {said}")
    return "\n\n".join("\n".join(event) for event in events if event)


def _time(match: re.Match[str]) -> str:
    year, month, day, hour, minute, zulu = match.groups("")
    clock = f" {hour}:{minute}" if hour else ""
    return f"{year}-{month}-{day}{clock}{' UTC' if zulu else ''}"


def _is_ole(file: BinaryIO) -> bool:
    """Return whether a file begins like one saved by Outlook, and go back to its start."""
    begins = file.read(len(OLE))
    file.seek(0)
    return begins == OLE


def _as_email(file: BinaryIO) -> EmailMessage:
    from olefile import OleFileIO
    from oxmsg import Message
    from oxmsg.domain.model import UnrecognizedCodePageError

    with OleFileIO(file) as parts:  # several of which may be at one place of the file
        size = sum(part.size for part in parts.direntries if part is not None)
    check_growth(size - file.seek(0, SEEK_END))
    file.seek(0)
    try:
        return _converted(Message.load(file))
    except UnrecognizedCodePageError as error:
        raise ValueError from error


def _converted(saved: "Message") -> EmailMessage:
    """Return a message with its plain and HTML text and its attachments."""
    email = EmailMessage()
    fields = {"Subject": saved.subject, "From": saved.sender}
    for name, display in DISPLAY.items():
        names = saved.properties.str_prop_value(display) or ""
        fields[name] = saved.message_headers.get(name, names.replace(";", ","))
    for name, value in fields.items():
        if value:
            email[name] = _line(value)
    if saved.sent_date is not None:
        email["Date"] = saved.sent_date
    text = (saved.body or "").rstrip("\0")
    email.set_content(text)
    if html := saved.html_body:
        email.add_alternative(html, subtype="html")
    for attachment in saved.attachments:
        name = _line(attachment.file_name or "unnamed")
        data = NO_TEXT
        with suppress(*MALFORMED):
            data = attachment.file_bytes or NO_TEXT
        email.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return email


def _line(value: str) -> str:
    return " ".join(value.rstrip("\0").split())[:MAX_TITLE]
