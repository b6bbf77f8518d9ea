"""What the command line prints, and with which exit status."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from texts import FILES, QUESTIONS, settled, write

CHANGING = """
build papers --index i --json
build papers --index i
build papers --index d --method document --max-levels 1 --chunk-size 60 --seed 3 --json
export json --index i --to tree.json
"""
READING = """
info --index i
info --index d --json
generations --index i --json
verify --index i
tree --index i
tree --index i --depth 1 --json
outline log.md --index i --budget 200 --question bridge --json
query 'Who did not vote?' --index i
query 'Who did not vote?' --index i --json
query 'Who did not vote?' --index i --level documents --by dense --json
query 'Who did not vote?' --index i --level sections --top-k 3 --json
query 'Who did not vote?' --index i --where file_name~l --where file_name!=log.md --json
query 'Who did not vote?' --index i --token-budget 300 --min-score 0 --json
query 'Who won the election in Paris?' --index i --fail-if-refused --json
compare 'Who did not vote?' --index i --json
chat --index i
export parquet --index i --to nodes.parquet --json
export svg --index i --to tree.svg --json
export document-summary --index i --to summary --json
report --index i --to page.html --json
build papers --index w --dry-run --llm m --llm-base-url http://127.0.0.1:1/v1 --json
evaluate data --ways dense,hybrid,collapsed --budgets 300 --json
"""
REFUSED = """

bild papers
build papers
build absent --index i
build papers twice/papers --index i
build papers --index i --method rapor
build papers --index i --method raptor
build papers --index i --chunk-size 0
build papers --index i --max-levels x
build papers --index i --llm m
info --index absent
info --index papers
query '' --index i
query bridge --index i --level 9
query bridge --index i --level up
query bridge --index i --mode all
query bridge --index i --by words
query bridge --index i --top-k 0
query bridge --index i --token-budget 1
query bridge --index i --min-score 2
query bridge --index i --where year
query bridge --index i --where year=3
query bridge --index i --mode collapsed --by context
query bridge --index i --response-mode refine
query bridge --index i --response-mode fine
query bridge --index i --no-such-flag
show zz --index i
outline --index i --budget 1
outline absent --index i
export xml --index i --to x
rollback 99 --index i
delete absent --index i
evaluate papers
"""
LAST = """
delete dues.csv --index i --json
delete dues.csv --index i
rollback --index i
update papers --index i --json
info --index i --json
"""
GOLD = [
    {"qid": "1", "doc_id": "log.md", "question": QUESTIONS[2], "answer": "3 January"},
    {"qid": "2", "doc_id": "mail.eml", "question": QUESTIONS[8], "answer": "84 metres"},
]
SAID = f"{QUESTIONS[3]}\n{QUESTIONS[2]}\n"  # to `chat`


def environment() -> dict[str, str]:
    """Return variables under which a command runs this project and prints the same each time."""
    dropped = "HIERINDEX_", "PYTHONDONTWRITEBYTECODE"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    wide = {"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1", "TZ": "UTC", "HF_HUB_OFFLINE": "1"}
    return kept | wide | {"PYTHONPATH": sys.path[0]}


def run(arguments: Sequence[str], place: Path) -> "subprocess.CompletedProcess[str]":
    """Run the `hierindex` of the project in a folder."""
    scripts = tomllib.loads(Path(sys.path[0], "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["hierindex"].partition(":")
    start = f"import sys; sys.argv[0] = 'hierindex'; from {module} import {function} as f; f()"
    return subprocess.run(
        [sys.executable, "-c", start, *arguments],
        input=SAID,
        capture_output=True,
        text=True,
        env=environment(),
        cwd=place,
        check=False,
    )


def command(place: Path, *arguments: str) -> dict[str, Any]:
    """Return the exit status of a command, what it printed, and the first line of an error."""
    done = run(arguments, place)
    before, brace, rest = done.stdout.partition("{")  # nothing should be before it
    try:
        printed = json.loads(brace + rest)
        printed = {"before": before.splitlines(), **printed} if before else printed
    except ValueError:
        timeless = re.sub(r"\b\d+(\.\d+)? ?(s|ms|seconds)\b|\d\d:\d\d:\d\d", "TIME", done.stdout)
        printed = [line.rstrip() for line in timeless.splitlines()]
    errors = done.stderr.splitlines()[:1] if done.returncode else []
    return settled({"status": done.returncode, "stdout": printed, "stderr": errors}, place)


def commands(place: Path) -> dict[str, Any]:
    """Return what commands print, by their arguments."""
    rows = {
        "documents": [{"doc_id": name, "text": text} for name, text in FILES.items()],
        "questions": GOLD,
    }
    write(place / "papers", FILES)
    write(place / "twice" / "papers", {"log.md": "Another log."})
    for name, objects in rows.items():
        text = "".join(f"{json.dumps(each)}\n" for each in objects)
        write(place / "data", {f"{name}.jsonl": text})

    def told(line: str) -> dict[str, Any]:
        return command(place, *shlex.split(line))

    found = {line: told(line) for line in CHANGING.strip().splitlines()}
    exported = json.loads((place / "tree.json").read_text(encoding="utf-8"))
    root = exported["roots"][0]
    reading = READING.strip().splitlines()
    reading += [f"show {root} --index i --json", f"show {root[:12]} --index i --source"]
    reading += REFUSED.removeprefix("\n").splitlines()
    with ThreadPoolExecutor(2) as two:
        found |= zip(reading, two.map(told, reading), strict=True)
    found |= {f"at last: {line}": told(line) for line in LAST.strip().splitlines()}
    summary = sorted(path.name for path in (place / "summary").iterdir())
    return found | {"tree.json": settled(exported, place), "summary": summary}


def flags(place: Path) -> dict[str, Any]:
    """Return the commands of the program, and the flags of each."""
    page = run(["--help"], place).stdout
    names = re.findall(r"^[ │]+([a-z]+) {2,}\S", page, re.MULTILINE)
    found = {name: run([name, "--help"], place).stdout for name in names}
    return {name: sorted({*re.findall(r"--[a-z][a-z-]+", text)}) for name, text in found.items()}
