"""Subtitles of films and talks: what is said, with times and speakers."""

import re
from html import unescape
from typing import BinaryIO

from hierindex.read.text import Reading, read_text

CUE = re.compile(r"((?:\d{1,3}:)?\d\d:\d\d)[.,]\d{1,3}[ \t]*-->.*\n?")
VOICE = re.compile(r"<v(?:\.[^\s<>]{,99})?\s([^<>]{,200})>")
TAG = re.compile(r"<[a-z/\d][^<>]*>|\{\\[^{}]*\}", re.IGNORECASE)
GROWING = re.compile(r"<\d\d:\d\d[^<>]*><c>")  # words as they are recognised; lines come again


def read_subtitles(file: BinaryIO) -> Reading:
    """Return a line for each cue of SubRip or WebVTT: the time, the speaker if named, the words.

    A file without cues is read as text.
    """
    text, metadata, _ = read_text(file)
    is_growing = GROWING.search(text) is not None
    cues, last = list[str](), ""
    for block in re.split(r"\n[ \t]*\n", text):
        if (cue := CUE.search(block)) is None:  # a title, styles or a note
            continue
        words = VOICE.sub(r"\1: ", block[cue.end() :])
        lines = [" ".join(unescape(TAG.sub("", line)).split()) for line in words.split("\n")]
        said = [line for line in lines if line and not (is_growing and line == last)]
        if said:
            last = said[-1]
            cues.append(f"{cue[1]} {' '.join(said)}")
    return Reading("\n".join(cues) or text, metadata)
