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

HERE = Path(__file__).parent
SUMMARY_TOKENS, TIMEOUT = 200, 600
LABELS = {"Title", "Summary"}

TEXTS = {
    "meeting": """\
Okay, shall we start? We have, let me see, about forty minutes. So, the playground at Mill Lane. \
Priya, you had the quotes. Yes, so, there are two of them. Hartley and Sons want twelve thousand \
four hundred for the rubber floor, and that is without the fence. The other one, Greenstep, is \
fifteen thousand two hundred but the fence is in there. And how long would they take? Hartley says \
six weeks, Greenstep said, um, three to four. I would rather have it open before the summer fair \
on the twenty-first of June. Right. Then Greenstep, unless anybody, no? Tom is shaking his head. \
Well, I just do not think we have fifteen thousand. We have thirteen thousand nine hundred in the \
account, and the council grant of two and a half thousand comes only in September. Could we ask \
them to split the bill? I can ring Mrs Okafor on Monday. Good. Priya rings Greenstep on Monday and \
asks whether the last third can wait until the grant is there. If not, we take it to the next \
meeting on the ninth of May. Nobody decides anything about Hartley yet.""",
    "notice": """\
Bekanntmachung der Gemeinde Oberlauterbach: Wegen der Erneuerung der Wasserleitung ist die \
Bahnhofstraße zwischen der Apotheke und dem Kindergarten vom 3. März bis voraussichtlich 17. April \
2025 für den Durchgangsverkehr gesperrt. Anlieger können ihre Grundstücke außer montags zwischen 7 \
und 9 Uhr erreichen. Die Buslinie 412 hält in dieser Zeit nicht am Rathaus, sondern an der \
Ersatzhaltestelle in der Gartenstraße 8. Am Donnerstag, dem 13. März, wird das Wasser von 8 bis 14 \
Uhr abgestellt; betroffen sind 86 Haushalte. Wir bitten darum, vorher einen Vorrat anzulegen. Die \
Müllabfuhr holt die Tonnen nicht vor den Häusern ab: Stellen Sie sie bitte bis 6 Uhr an die Ecke \
Lindenweg. Die Kosten der Maßnahme von 418.000 Euro trägt die Gemeinde, Anlieger zahlen keinen \
Beitrag. Auskunft gibt Frau Reiter im Bauamt, Zimmer 11, Telefon 09876 5521. Beschwerden richten \
Sie bitte schriftlich an die Gemeinde.""",
    "library": """\
东湖区图书馆于二〇二四年十月八日重新开放。改造工程历时十四个月,耗资二千六百万元,建筑面积从三千平方米扩大到\
五千二百平方米。新馆共有四层:一层是儿童阅览室和咖啡厅,二层和三层收藏图书三十一万册,四层设有自习室,提供二百八十个座位。\
馆长周敏介绍说,自习室每天早上八点开放,晚上十点关闭,周一闭馆。读者凭身份证可以免费办理借书证,每人一次最多借阅十本,\
期限为三十天,逾期每本每天收取两角钱。图书馆还与三所小学合作,每个星期六下午举办故事会,由志愿者为孩子们朗读。\
不过,停车位只有四十五个,周敏建议读者乘坐地铁二号线,在文化宫站下车后步行五分钟。地下停车场预计要到二〇二六年才能建成。""",
    "report": """\
The Tessaly Harbour Authority closed its financial year on 31 March 2024 with a deficit of \
£184,000, after a surplus of £62,500 the year before. Income from berths fell from £1.92 million \
to £1.71 million, mainly because the ferry to Corran made 412 crossings instead of 630. The \
company Seaforth Lines had withdrawn its second ship on 4 September 2023 and brought it back on \
19 February 2024. Dredging cost £305,000, which is £41,000 more than planned, since 18,000 cubic \
metres of sand had to be removed after the storm of 27 October. Staff costs rose by 3.8% to \
£644,000. The authority did not raise its fees. It sold the old customs shed to a cooperative of \
boat builders for £120,000; this sum is not part of the result, but goes to the reserve, which \
stood at £388,000 at the end of the year. The board expects a balanced budget in 2025, provided \
that both ships sail throughout the summer. The auditor, Brown & Petrie, approved the accounts on \
12 June 2024 and recommended that dredging contracts be put out to tender every three years.""",
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
