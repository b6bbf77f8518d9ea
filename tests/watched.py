"""A folder of small files whose changes are watched."""

from pathlib import Path


def text_of(name: str) -> str:
    return "\n\n".join(f"In {name} the keeper met boat {i} at the gate." for i in range(4))


def small_folder(folder: Path) -> Path:
    folder.mkdir()
    for name in ("a.txt", "b.txt", "c.md"):
        (folder / name).write_text(text_of(name))
    return folder
