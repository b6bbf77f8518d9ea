"""Messages as Outlook saves them: properties in a compound file."""

from collections.abc import Mapping
from datetime import datetime
from struct import pack

SUBJECT, BODY, HTML, FROM, TO, FILE_NAME = 0x0037, 0x1000, 0x1013, 0x0C1A, 0x0E04, 0x3707
DATA = 0x3701
ADDRESS, HEADERS, SENT = 0x0C1F, 0x007D, 0x0039
NONE, CHAIN_ENDS, IS_FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD  # numbers of sectors and entries
Folder = dict[str, "bytes | Folder"]
Values = Mapping[int, str | bytes | datetime]


def outlook(values: Values, attachments: Mapping[str, bytes] | tuple[str, ...] = ()) -> bytes:
    """Return a message with properties and attachments, perhaps with their contents."""
    data = attachments if isinstance(attachments, Mapping) else dict.fromkeys(attachments, b"")
    inside: Folder = {
        f"__attach_version1.0_#{i:08X}": properties({FILE_NAME: name, DATA: content}, 8)
        for i, (name, content) in enumerate(data.items())
    }
    return compound(properties(values, 32) | inside)


def properties(values: Values, head: int) -> Folder:
    """Return a stream for each property, and the one that lists them after so many bytes."""
    folder: Folder = {}
    listed = bytes(head)
    for number, value in values.items():
        if isinstance(value, datetime):
            since = value - datetime(1601, 1, 1, tzinfo=value.tzinfo)
            listed += pack("<HHIQ", 0x0040, number, 6, int(since.total_seconds()) * 10**7)
            continue
        kind, data = 0x0102, value
        if isinstance(value, str):
            kind, data = 0x001F, value.encode("utf-16-le")
        folder[f"__substg1.0_{number:04X}{kind:04X}"] = data
        listed += pack("<HHIQ", kind, number, 6, len(data))
    return {**folder, "__properties_version1.0": listed}


def compound(folder: Folder) -> bytes:
    """Return a compound file; [MS-CFB] describes its sectors, chains and entries."""
    entries, minis, mini_fat = [b""], b"", list[int]()

    def entry(name: str, kind: int, after: int, child: int, start: int, size: int) -> bytes:
        encoded = name.encode("utf-16-le")
        head = pack("<64sHBB3I", encoded, len(encoded) + 2, kind, 1, NONE, after, child)
        return head + bytes(36) + pack("<IQ", start, size)

    def add(folder: Folder) -> int:
        """Append entries, each of which names the next one, and return the first."""
        nonlocal minis
        after = NONE
        for name, inside in sorted(folder.items(), key=lambda item: (-len(item[0]), item[0])):
            if isinstance(inside, dict):
                child = add(inside)
                entries.append(entry(name, 1, after, child, 0, 0))
            else:
                n = -(-len(inside) // 64)
                first = len(mini_fat) if n else CHAIN_ENDS
                mini_fat.extend([*range(first + 1, first + n), CHAIN_ENDS] if n else [])
                minis += inside.ljust(64 * n, b"\0")
                entries.append(entry(name, 2, after, NONE, first, len(inside)))
            after = len(entries) - 1
        return after

    first = add(folder)
    fat = [IS_FAT]

    def chain(data: bytes) -> tuple[int, bytes]:
        n, start = -(-len(data) // 512), len(fat)
        fat.extend([*range(start + 1, start + n), CHAIN_ENDS])
        return start, data.ljust(512 * n, b"\0")

    at_minis, minis_padded = chain(minis)
    at_fat, mini_fat_padded = chain(pack(f"<{len(mini_fat)}I", *mini_fat).ljust(512, b"\xff"))
    entries[0] = entry("Root Entry", 5, NONE, first, at_minis, len(minis))
    at_entries, entries_padded = chain(b"".join(entries))
    assert len(fat) <= 128, "a file of one sector of FAT"
    numbers = pack(f"<{len(fat)}I", *fat).ljust(512, b"\xff")
    n_mini = len(mini_fat_padded) // 512
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += pack("<5H6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += pack("<9I", 0, 1, at_entries, 0, 4096, at_fat, n_mini, CHAIN_ENDS, 0)
    header += pack("<109I", 0, *[NONE] * 108)
    return header + numbers + minis_padded + mini_fat_padded + entries_padded
