"""Subtitles of films and talks: what is said, with times and speakers."""

import re
from html import unescape
from typing import BinaryIO

from hierindex.read.text import Reading, note_left_out, read_text

TIMES = r"^[ \t]*((?:\d{1,3}:)?\d\d:\d\d)[.,]\d{1,3}[ \t]*-->.*\n?"
CUE = re.compile(rf"(?:^[ \t]*\d+[ \t]*\n)?{TIMES}", re.MULTILINE)  # perhaps after its number
WEB_CUE = re.compile(rf"(?:(?<=\n\n).+\n|^\d+\n)?{TIMES}", re.MULTILINE)  # or its name
NOTE = re.compile(r"(?<=\n\n)NOTE(?:[ \t].*)?(?:\n.+)*\n?")
VOICE = re.compile(r"<v(?:\.[^\s<>]{,99})?\s([^<>]{,200})>")
TAG = re.compile(r"<[a-z/\d][^<>]*>|\{\\[^{}]*\}", re.IGNORECASE)
GROWING = re.compile(r"<\d\d:\d\d[^<>]*><c>")  # words as they are recognised; lines come again


def read_subtitles(file: BinaryIO) -> Reading:
    """Return a line for each cue of SubRip or WebVTT: the time, the speaker if named, the words.

    A file without cues is read as text.
    """
    text, metadata, _ = read_text(file)
    is_growing, is_web = GROWING.search(text) is not None, text.startswith("WEBVTT")
    track = re.sub(r"\n[ \t]+(?=\n)", "\n", text)
    if is_web:
        track, n_notes = NOTE.subn("", track)
        note_left_out(metadata, {"note": n_notes})
    _, *parts = (WEB_CUE if is_web else CUE).split(track)  # first a title and styles
    cues, last = list[str](), ""
    for time, words in zip(parts[::2], parts[1::2], strict=True):
        lines = VOICE.sub(r"\1: ", words).split("\n")
        lines = [" ".join(unescape(TAG.sub("", line)).split()) for line in lines]
        said = [line for line in lines if line and not (is_growing and line == last)]
        if said:
            last = said[-1]
            cues.append(f"{time} {' '.join(said)}")
    return Reading("\n".join(cues) or text, metadata)
