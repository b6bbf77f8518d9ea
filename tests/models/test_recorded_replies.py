"""What real models replied to hierindex's prompts, replayed.

`replies.jsonl` has replies of Qwen2.5-Coder-Instruct with 0.5B and 1.5B parameters, temperature 0,
as `python tests/benchmarks/real_model.py record SIZE` writes them. `made_replies.jsonl` has what
these models do not do, made by hand.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from clients import Calls, llm_of, with_retries
from fakes import HashingEmbedding
from llama_index.core.schema import Document
from loopback import LoopbackServer, as_text

from hierindex import HierarchicalIndex, SemanticHierarchy
from hierindex.models.llm import load_llm
from hierindex.summarize import LLMRewriter

pytestmark = pytest.mark.usefixtures("no_wait")

HERE = Path(__file__).parent
SUMMARY_TOKENS, TIMEOUT = 200, 600
LABELS = {"Title", "Summary"}

TEXTS = {
    name: (HERE / "texts" / f"{name}.txt").read_text("utf-8")
    for name in ("meeting", "notice", "library", "report")
}
QUESTIONS = [
    ("Who rings Greenstep, and when?", "compact"),
    ("How much did dredging cost?", "compact"),
    ("Wann wird das Wasser abgestellt?", "compact"),
    ("自习室有多少个座位?", "compact"),
    ("Which orchestra played at the opening?", "compact"),
    ("Why was there a deficit?", "tree_summarize"),
]


def index_in(folder: Path) -> HierarchicalIndex:
    """An index of the texts, one document each."""
    documents = [Document(text=text, id_=f"{name}.txt") for name, text in TEXTS.items()]
    hierarchy = SemanticHierarchy(HashingEmbedding())
    return HierarchicalIndex.build(documents, folder, hierarchy=hierarchy, chunk_size=256)


def recorded(model: str, url: str) -> Iterator[dict[str, Any]]:
    """Ask a model for summaries and answers; yield each prompt with what came back."""
    llm = load_llm(model, url, timeout=TIMEOUT).model_copy(update={"temperature": 0.0})
    with TemporaryDirectory() as folder:
        calls = Calls(model, Path(folder) / "record")
        rewriter = LLMRewriter(llm, concurrency=1, timeout=TIMEOUT, record=calls.path)
        index = index_in(Path(folder) / "index")
        for name, text in TEXTS.items():
            rewriter.rewrite([text], max_tokens=SUMMARY_TOKENS)
            yield from told(calls.path, "summary", name)
        for question, mode in QUESTIONS:
            asked = {"response_mode": mode, "token_budget": 400}
            index.ask(question, llm=with_retries(llm, calls), **asked)
            yield from told(calls.path, mode, question)


def told(record: Path, kind: str, about: str) -> Iterator[dict[str, Any]]:
    """Take the calls out of a record."""
    for line in record.read_text().splitlines():
        yield {"kind": kind, "about": about} | json.loads(line)
    record.write_text("")


def lines_of(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / file).read_text().splitlines()]


REAL = lines_of("replies.jsonl")
MADE = lines_of("made_replies.jsonl")[1:]
COPIES = {"0.5b: library", "0.5b: report", "1.5b: library"}  # of the whole text
NOT_IN_A_SUMMARY = re.compile(
    r"(?i)\A\W*(sure\b|certainly|here (is|are)|title\b|summary\b)"
    r"|```|</?think|===|follow no instruction"
)


def id_of(line: dict[str, Any]) -> str:
    return f"{line['model'].split('-')[2]}: {line['about']}" if "model" in line else line["about"]


def rewritten(line: dict[str, Any]) -> tuple[str, str | None]:
    """The title and the text of a summary that a model replied."""
    text = TEXTS[line.get("text", line["about"])]
    with serving(line) as server:
        (made,) = LLMRewriter(llm_of(server)).rewrite([text], max_tokens=SUMMARY_TOKENS)
    return made.title, made.text


def serving(line: dict[str, Any]) -> LoopbackServer:
    """A server that replies a line, in which {prompt} is what it was asked."""

    def in_parts(text: str) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": text}]}

    return LoopbackServer(
        reply=lambda prompt: line["completion"].replace("{prompt}", prompt),
        message=in_parts if line.get("in_parts") else as_text,
    )


def cases(lines: list[dict[str, Any]], *, summaries: bool) -> list[Any]:
    """The summaries among lines, or the answers; a known fault is expected."""
    return [
        pytest.param(line, id=id_of(line), marks=marks_of(line))
        for line in lines
        if (line["kind"] == "summary") == summaries
    ]


def marks_of(line: dict[str, Any]) -> list[pytest.MarkDecorator]:
    known = line.get("known_fault")
    return [pytest.mark.xfail(strict=True, reason=known)] if known else []


@pytest.mark.parametrize("line", cases(REAL, summaries=True))
def test_a_real_summary_is_split_and_loses_nothing(line) -> None:
    title, text = rewritten(line)
    if id_of(line) in COPIES:
        assert text is None
        return
    said = [word for word in re.findall(r"\w+", line["completion"]) if word not in LABELS]
    kept = re.findall(r"\w+", f"{title} {text}")
    assert not NOT_IN_A_SUMMARY.search(text)
    assert bool(title) == line["completion"].startswith("Title:")
    if len(title) < 80:  # one of over 100 was cut
        assert kept == said
    assert " ".join(kept).endswith(" ".join(said[-5:]))


@pytest.mark.parametrize("line", cases(MADE, summaries=True))
def test_what_a_model_adds_to_a_summary_is_left_out(line) -> None:
    assert rewritten(line) == (line["title"], line["result"])


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> HierarchicalIndex:
    return index_in(tmp_path_factory.mktemp("replies") / "index")


@pytest.mark.parametrize("line", cases([*REAL, *MADE], summaries=False))
def test_an_answer_cites_only_what_was_read(index, line) -> None:
    with serving(line) as server:
        asked = {"response_mode": line["kind"], "token_budget": 400}
        answer = index.ask(line["about"], llm=llm_of(server), **asked)
    cited = {int(number) for number in re.findall(r"\[(\d+)[?*]?\]", answer.answer)}
    assert cited <= {*range(1, len(answer.citations) + 1)}
    assert all(each.document.removesuffix(".txt") in TEXTS for each in answer.citations)
    assert not NOT_IN_A_SUMMARY.search(answer.answer)
    reply = re.sub(r"(?s)<think>.*</think>", "", line["completion"])
    assert " ".join(words_of(reply)) in " ".join(words_of(answer.answer))


def words_of(answer: str) -> list[str]:
    """The words of an answer without its citations, such as [2], or (2) at its end."""
    return re.findall(r"\w+", re.sub(r"\[[^\]]*\]|【[^】]*】|\(\d\)\Z", "", answer))
