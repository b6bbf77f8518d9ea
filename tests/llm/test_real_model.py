"""From documents to answers with a real model; what must hold whatever it writes."""

import asyncio
import json
import re

import pytest
from clients import Calls, with_retries
from respond.asking import CHAT_MODES, NEED_LLM, WITHOUT_LLM

from hierindex import HierarchicalIndex, SemanticHierarchy
from hierindex.summarize import LLMRewriter, TwoStageSummarizer

FILES = {
    "mill.md": "# The mill\n\nThe mill at Orsby was built in 1788 by Anna Reed. It grinds rye and "
    "spelt, and its wheel has 32 buckets.\n\n## Repairs\n\nIn March 2021 the axle broke. The "
    "carpenter Jonas Pell made a new one of oak within nine days, for 4,350 crowns. The village "
    "paid half of it.\n",
    "ferry.md": "# The ferry\n\nThe ferry crosses the Lune every 20 minutes from 6:00 to 22:00. A "
    "ticket costs 3 crowns, and children ride free.\n\n## Storms\n\nIn a storm the captain decides "
    "whether it runs. In 2022 it stood still on 11 days, most of them in November.\n",
}
EDIT = ("4,350 crowns", "4,800 crowns")
QUESTION = "How much did the new axle of the mill cost?"
TAGS = re.compile(r"(?i)</?think|<\|im_|^\W*title:")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real") / "docs"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def build(folder, llm):
    rewriter = LLMRewriter(llm, concurrency=1, timeout=1200)
    hierarchy = SemanticHierarchy(summarizer=TwoStageSummarizer(rewriter))
    where = folder.parent / "index"
    return HierarchicalIndex.build(folder, where, hierarchy=hierarchy, chunk_size=48)


@pytest.fixture(scope="module")
def index(folder, llm):
    return build(folder, llm)


def check(answer):
    """Usage is counted, no thought is shown, and citations lie in documents."""
    assert answer.usage.llm_calls == len(answer.calls) > 0
    assert answer.usage.prompt_tokens > 0 < answer.usage.completion_tokens
    assert not TAGS.search(answer.answer)
    for cited in answer.citations:
        assert 0 <= cited["start"] < cited["end"] <= len(FILES[cited["document"]])


def test_summaries_are_written_and_counted(index):
    usage = index.last_build.usage
    assert usage.llm_calls > 0
    assert min(usage.prompt_tokens, usage.completion_tokens) > usage.llm_calls
    assert index.verify().ok


def test_a_second_build_asks_nothing(index, folder, llm):
    assert build(folder, llm).last_build.usage.llm_calls == 0


def test_an_edit_asks_only_for_what_is_above_it(index, folder, llm):
    (folder / "mill.md").write_text(FILES["mill.md"].replace(*EDIT))
    try:
        rewritten = build(folder, llm)
        assert 0 < rewritten.last_build.usage.llm_calls <= index.last_build.usage.llm_calls
        assert rewritten.verify().ok
    finally:
        (folder / "mill.md").write_text(FILES["mill.md"])
    assert build(folder, llm).last_build.usage.llm_calls == 0  # as it was


def test_titles_and_summaries_have_no_labels_or_thoughts(index):
    found = index.as_retriever(level="top", top_k=99, token_budget=None).retrieve(QUESTION)
    texts = [each.text for each in found] + [
        source.title for source in index.ask(QUESTION, level="top").sources
    ]
    assert found
    assert not any(map(TAGS.search, texts))


@pytest.mark.parametrize("mode", sorted({"extractive"} | WITHOUT_LLM | NEED_LLM))
def test_every_mode_answers(index, llm, mode):
    answer = index.ask(QUESTION, llm=llm, response_mode=mode, level=0, top_k=2)
    if mode in NEED_LLM:
        check(answer)
    else:
        assert answer.usage.llm_calls == 0


def test_a_stream_is_the_answer(index, llm):
    calls = Calls()
    engine = index.as_query_engine(llm=with_retries(llm, calls), streaming=True, level=0, top_k=2)
    pieces = [*engine.query(QUESTION).response_gen]
    assert calls.usage.llm_calls == 1
    assert not TAGS.search("".join(pieces))

    async def asked():
        response = await engine.aquery(QUESTION)
        return [piece async for piece in response.async_response_gen()]

    assert not TAGS.search("".join(asyncio.run(asked())))
    assert calls.usage.llm_calls == 2


@pytest.mark.parametrize("mode", CHAT_MODES)
def test_a_chat_remembers(index, llm, mode):
    calls = Calls()
    chat = index.as_chat_engine(llm=with_retries(llm, calls), chat_mode=mode, level=0, top_k=1)
    said = [str(chat.chat(QUESTION)), str(chat.chat("And who made it?"))]
    assert len(chat.chat_history) == 4
    assert calls.usage.llm_calls >= 2
    assert not any(map(TAGS.search, said))


def test_the_command_line(folder, url, run, monkeypatch):
    monkeypatch.chdir(folder.parent)
    model = ["--index", "by-command", "--llm", "qwen", "--llm-base-url", url]
    model += ["--llm-timeout", "1200"]
    status, out, err = run("build", "docs", *model, "--llm-concurrency", "1", "--json")
    assert (status, json.loads(out)["usage"]["llm_calls"] > 0) == (0, True), err
    status, out, err = run("query", QUESTION, *model, "--stream", "--level", "0", "--top-k", "2")
    assert status == 0, err
    assert not TAGS.search(out)
    assert run("verify", "--index", "by-command")[0] == 0
