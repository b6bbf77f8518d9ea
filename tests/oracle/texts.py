"""The corpora that the oracle builds: parts of data sets, and a town's papers in many formats."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

SETS = {"qmsum": ".txt", "squality": ".txt", "tech_books": ".md"}  # data sets, and their files
MOST_CHARACTERS = 45_000  # of a corpus
N_QUESTIONS = 15  # of a corpus
VARYING = {"seconds", "time", "last_modified_date", "size", "bytes"}  # keys of JSON
DIGITS = 4  # of scores and weights
DAY = 1_700_000_000  # when every file was changed, in seconds since 1970

LOG = """\
# The harbour log

## January
The harbour froze on 3 January. Nobody in the town had seen that since 1947. The ferry Marta
stayed at pier 2 for nine days, and her crew of six slept in the school.

The harbour master, Ada Brandt, ordered 40 tonnes of sand. The sand came by rail on 7 January.

## February
The ice broke on 12 January, and the ferry sailed again. In February the council closed the old
bridge, because two of its cables had rusted through. A temporary bridge was opened on 20 February.
It carries 12 tonnes.

## March
Repairs of the old bridge began on 1 March and cost 310,000 euros. They ended three weeks early.
"""
FILES = {
    "log.md": LOG,
    "letter.txt": """\
Dear Ada,

the baker says that the oven of the mill has been cold since Tuesday. He needs 200 loaves for the
ferry on Friday, and the flour has come from Aarhus already.

Could the mason look at the chimney before Thursday? He repaired it in 1998, and nobody else knows
where the draught comes from.

\f
The school has asked again for its stove. Thirty children sit in coats. Please bring it to the
council.

Yours, Jonas Lind
""",
    "minutes.html": """\
<html><head><title>Minutes of the council</title></head><body>
<h1>Minutes</h1><p>Present were Ada Brandt, Jonas Lind and Ole Falk.</p>
<h2 id="bridge">The bridge</h2><p>The council accepted the offer of Falk &amp; Sons. The repair of
the bridge costs 310,000 euros and takes until 20 April.</p>
<ul><li>Ole Falk did not vote.</li><li>A toll was refused.</li></ul>
<h2>The stove</h2><p>The school gets a new stove. It is paid from the harbour's dues.</p>
<table><tr><th>What</th><th>Euros</th></tr><tr><td>Stove</td><td>2,400</td></tr></table>
</body></html>
""",
    "tides.py": '''\
"""Tides of the harbour."""

PERIOD = 12.42  # hours


def height(hours: float, amplitude: float = 1.8) -> float:
    """Return the height of the water in metres."""
    from math import cos, pi

    return amplitude * cos(2 * pi * hours / PERIOD)


class Gauge:
    """A gauge at pier 2, read every hour."""

    def read(self) -> float:
        return height(0)
''',
    "dues.csv": "ship,tonnes,euros\nMarta,240,1200\nFreya,90,450\nNjord,610,3050\n",
    "notes/stove.rst": """\
The stove
=========

The stove of the school was built in 1931. It burns peat, and since the peat works closed it has
been cold.

What it takes
-------------

A new pipe of four metres and a mason for two days. The mason asks for 480 euros.
""",
    "mail.eml": """\
From: Ole Falk <ole@example.org>
To: Ada Brandt <ada@example.org>
Date: Mon, 04 Mar 2024 09:00:00 +0000
Subject: Cables of the bridge
Content-Type: text/plain; charset=utf-8

The new cables have come. Each is 84 metres long and carries 90 tonnes. We hang the first one on
Wednesday if the wind allows it.
""",
    "diary.jsonl": '{"day": "1 March", "text": "Rain. The masons began."}\n'
    '{"day": "2 March", "text": "Rain. The masons stayed at home."}\n',
}
QUESTIONS = [
    "What are these papers about?",
    "What is log.md about?",
    "When did the harbour freeze?",
    "How much did the repair of the bridge cost?",
    "Who is the harbour master?",
    "Why was the old bridge closed?",
    "Who did not vote?",
    "What does the stove of the school burn?",
    "How long are the new cables?",
    "How many loaves does the baker need?",
    "What does the Marta pay?",
    "Which function returns the height of the water?",
    "How many tonnes does the temporary bridge carry?",
    "Who won the election in Paris?",
    "stove",
]


class Corpus(NamedTuple):
    """A folder of files, and questions about them."""

    folder: Path
    questions: list[str]


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files that were all changed on the same day, and return their folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (DAY, DAY))
    return folder


def corpora(data: Path | None, place: Path) -> dict[str, Corpus]:
    """Write the town's papers and what `data` has of `SETS`, and return the corpora by name."""
    made = {"town": Corpus(write(place / "town", FILES), QUESTIONS)}
    for name, suffix in SETS.items() if data else ():
        files = dict[str, str]()
        documents = lines(data / name / "documents.jsonl")
        for document in sorted(documents, key=lambda each: len(each["text"])):  # the shortest
            files[document["doc_id"].replace("/", "-") + suffix] = document["text"]
            if sum(map(len, files.values())) > MOST_CHARACTERS and len(files) > 1:
                break
        asked = [
            each["question"]
            for each in lines(data / name / "questions.jsonl")
            if each["doc_id"].replace("/", "-") + suffix in files
        ]
        every = max(1, len(asked) // N_QUESTIONS)
        made[name] = Corpus(write(place / name, files), asked[::every][:N_QUESTIONS])
    return made


def lines(path: Path) -> list[dict[str, str]]:
    """Return the objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def settled(value: Any, place: Path | None = None) -> Any:
    """Return a JSON value without times and without the path of a place, and rounded."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if key not in VARYING}
        return {key: settled(each, place) for key, each in kept.items()}
    if isinstance(value, list | tuple):
        return [settled(each, place) for each in value]
    if isinstance(value, float):
        return round(value, DIGITS)
    return value.replace(str(place), "PLACE") if place and isinstance(value, str) else value
