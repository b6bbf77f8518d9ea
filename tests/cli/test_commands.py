"""The command line, as its users meet it: flags in, text or JSON and an exit status out."""

import io
import json
import os
import re
import resource
import shlex
import socket
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from shutil import copytree, rmtree
from types import SimpleNamespace
from zlib import crc32

import llama_index.core
import nltk
import pytest
from commands import COMMANDS
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.utils import get_tokenizer, globals_helper
from loopback import Fault, LoopbackServer, names_words
from processes import PATIENCE, started
from tenacity import wait_none

from hierindex import HierarchicalIndex, HierarchyStore
from hierindex.cli.output import print_note
from hierindex.cli.progress import ShownProgress
from hierindex.demo import demo_documents
from hierindex.errors import InputError
from hierindex.retrieve.retrieval import TOP_K
from hierindex.settings import CONTEXT, NAMES

SOURCE = {"id", "level", "score", "raw_score", "text", "citations", "path", "title"}
TEXT = "\n\n".join(
    f"On day {i} the keeper of the lighthouse wrote to {name}. The storm had broken {what}."
    for i in range(4)
    for name, what in (("Ada", "the lamp"), ("Bo", "the pier"), ("Cy", "his best boat"))
)


def write_letters(source: Path) -> Path:
    source.mkdir()
    (source / "storm.txt").write_text(TEXT)
    (source / "calm.md").write_text(TEXT.replace("storm", "calm").replace("broken", "mended"))
    return source


def llm_at(server) -> tuple[str, ...]:
    return ("--llm", "m", "--llm-base-url", server.base_url)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_letters(tmp_path / "letters")


@pytest.fixture
def hierindex(run, monkeypatch, tmp_path):
    """Runs a command line beside the letters."""
    monkeypatch.chdir(tmp_path)
    return run


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """An index of the letters, built once."""
    at = tmp_path_factory.mktemp("built")
    HierarchicalIndex.build(write_letters(at / "letters"), at / "index", chunk_size=64)
    return at / "index"


@pytest.fixture
def index(hierindex, folder, built, tmp_path) -> Path:
    """As `hierindex build letters --index index --chunk-size 64` makes it."""
    return copytree(built, tmp_path / "index")


@pytest.fixture
def hard_linked(monkeypatch, tmp_path) -> str:
    """NLTK's data as uv installs it, with a second link to every file."""
    static = Path(llama_index.core.__file__).parent / "_static"
    data = tmp_path / "data"
    for used in ("corpora", "tokenizers/punkt_tab/english"):
        copytree(static / "nltk_cache" / used, data / used)
    copytree(data, tmp_path / "uv", copy_function=os.link)
    monkeypatch.setenv("NLTK_DATA", str(data))
    monkeypatch.setattr("nltk.data.path", [])
    monkeypatch.setattr(globals_helper, "_punkt_tokenizer", None)
    return str(data)


def test_an_environment_of_uv(hierindex, folder, hard_linked) -> None:
    (folder / "bell.txt").write_text("Mr. A. Bell came at 5 p.m. from St. Ives. " * 4)
    args = ("--index", "W", "--chunk-size", 64)
    assert hierindex("build", folder, *args)[0] == 0
    assert hierindex("query", "What did the storm break?", *args[:2])[0] == 0
    with pytest.raises(PermissionError, match="multiply-linked"):
        nltk.data.find("corpora/stopwords/english", [hard_linked]).open()


@pytest.mark.parametrize("method", ["raptor", "document"])
def test_build_info_query_show(hierindex, folder, method) -> None:
    args = ("--index", "W", "--method", method, "--chunk-size", 64, "--json")
    status, out, err = hierindex("build", folder, *args)
    report = json.loads(out)
    assert (status, err) == (0, "")
    assert (report["added"], report["changed"], report["removed"]) == (2, 0, 0)
    assert report["skipped"] == []
    assert report["seconds"]["total"] > 0

    info = json.loads(hierindex("info", "--index", "W", "--json")[1])
    assert info["documents"] == 2
    assert info["method"] == method
    assert info["levels"][-1]["nodes"] == len(info["roots"]) == 1
    assert info["embed_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert info["usage"]["llm_calls"] == 0
    assert f" in {info['precision']}\n" in hierindex("info", "--index", "W")[1]

    question = ("query", "What did the storm break?", "--index", "W", "--level", 1, "--json")
    answer = json.loads(hierindex(*question)[1])
    assert answer["answer_kind"] == "extractive"
    assert set(answer["seconds"]) == {"embed", "search", "respond"}
    for source in answer["sources"]:
        assert set(source) == SOURCE
        assert source["level"] == 1
        assert source["path"][-1:] in ([], info["roots"][:1])
        for c in source["citations"]:
            text = (folder / c["document"]).read_text()[c["start"] : c["end"]]
            assert c["quote"] == text in source["text"]
    assert answer["citations"]
    for c in answer["citations"]:
        assert (folder / c["document"]).read_text()[c["start"] : c["end"]] == c["quote"]
        assert (c["supported"], c["by"]) == (True, "hierindex")

    shown = json.loads(hierindex("show", info["roots"][0], "--index", "W", "--json")[1])
    assert shown["parents"] == []
    assert shown["children"]
    assert {block["kind"] for block in shown["blocks"]} == {"paragraph"}
    assert "\nblocks    " in hierindex("show", info["roots"][0], "--index", "W")[1]
    assert f"method {method}" in hierindex("info", "--index", "W")[1]
    head, *_ = hierindex("show", info["roots"][0], "--index", "W")[1].split("\n")
    assert ", extractive, " in head
    assert "%" not in head  # of what is verbatim


def test_tree(hierindex, index) -> None:
    told = partial(hierindex, "tree", "--index", index)
    status, out, err = told("--json", "--depth", 1)
    contents = json.loads(out)
    (root,) = contents["nodes"]
    assert (status, err) == (0, "")
    assert set(contents) == {"nodes", "hidden"}
    assert [node["title"] for node in root["nodes"]] == ["calm", "storm"]
    assert [node["document"] for node in root["nodes"]] == ["calm.md", "storm.txt"]
    n_chunks = sum(node["chunks"] for node in root["nodes"])
    size = f"2 documents, {n_chunks} chunks"
    assert told("--depth", 1)[1].splitlines() == [
        "level  id            title",
        f"    {root['level']}  {root['id'][:12]}  {root['title']}  ({size})",
        *(
            f"    {node['level']}  {node['id'][:12]}    {node['title']}"
            f"  ({node['document']}, {node['chunks']} chunks)"
            for node in root["nodes"]
        ),
        f"{contents['hidden']} more nodes below; pass NODE or --depth to see them.",
    ]
    assert "more node" not in told(root["nodes"][1]["id"][:8], "--depth", 9)[1]
    assert told("none")[0] == told("--depth", -1)[0] == 2


def test_titles_are_shown(hierindex, index) -> None:
    info = json.loads(hierindex("info", "--index", index, "--json")[1])
    (root,), (title,) = info["roots"], info["titles"]
    shown = json.loads(hierindex("show", root, "--index", index, "--json")[1])
    assert shown["title"] == title
    assert f"({title})" in hierindex("info", "--index", index)[1]
    assert f"title     {title}\n" in hierindex("show", root, "--index", index)[1]
    for command in (("query", "What did the storm break?", "-v"), ("outline", "--budget", 600)):
        told = partial(hierindex, *command, "--index", index)
        answer, text = json.loads(told("--json")[1]), told()[1]
        for node in answer.get("nodes") or answer["sources"]:
            assert re.search(rf"{node['id'][:12]}  {re.escape(node['title'])}  \S", text)


def test_outline(hierindex, index, folder) -> None:
    told = partial(hierindex, "outline", "--index", index)
    status, out, err = told("--budget", 600, "--json")
    outline = json.loads(out)
    assert (status, err) == (0, "")
    assert set(outline) == {"nodes", "tokens"}
    assert len(outline["nodes"]) > 1
    assert 0 < outline["tokens"] <= 600
    for node in outline["nodes"]:
        assert set(node) == SOURCE
        for c in node["citations"]:
            assert (folder / c["document"]).read_text()[c["start"] : c["end"]] in node["text"]

    text = told("--budget", 600)[1]
    assert text.endswith(f"{len(outline['nodes'])} nodes, {outline['tokens']} tokens\n")
    assert all(node["id"][:12] in text for node in outline["nodes"])

    asked = told("storm.txt", "--question", "What was broken?", "--json")[1]
    assert {c["document"] for n in json.loads(asked)["nodes"] for c in n["citations"]} == {
        "storm.txt"
    }


@pytest.fixture(scope="module")
def mixed_folder(tmp_path_factory) -> Path:
    """A mailbox, two web pages and a table, and an index of them."""
    folder = tmp_path_factory.mktemp("mixed")
    mails = [
        f"From ada@x.org Mon Nov  2 08:05:00 2026\nSubject: Mail {n}\n\nThe ferry sank in {n}.\n\n"
        for n in range(1900, 1912)
    ]
    picture = "<nav>To all pages</nav><p>The bridge was closed.</p>"
    files = {
        "box.mbox": "".join(mails),
        "a.html": picture,
        "b.html": f'{picture}<p><img src="a.png" alt="The bridge"></p>',
        "table.csv": "town,beams\n" + "".join(f"Town {n},{n} of oak\n" for n in range(90)),
    }
    (folder / "files").mkdir()
    for name, text in files.items():
        (folder / "files" / name).write_text(text)
    HierarchicalIndex.build(folder / "files", folder / "mixed")
    return folder


@pytest.fixture
def mixed(run, mixed_folder, monkeypatch) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(mixed_folder)
    return lambda *args: run(*args, "--index", "mixed")


def test_a_mailbox_consists_of_e_mails(mixed) -> None:
    for command in "show", "tree":
        status, out, err = mixed(command, "box.mbox")
        assert (status, out) == (2, "")
        assert "'box.mbox' consists of 12 documents: 'box.mbox#Mail 1900" in err
        assert err.endswith(" and 2 more; `hierindex outline box.mbox` shows its parts.\n")
    status, out, err = mixed("outline", "box.mbox")
    assert (status, err) == (0, "")
    assert out.count("The ferry sank in") == 12


def test_one_empty_line_is_between_the_rows_of_a_table(mixed) -> None:
    shown = mixed("show", "table.csv", "--source")[1]
    assert "\n\ntown: Town 3; beams: 3 of oak\n\ntown: Town 4;" in shown
    assert "\n\n\n" not in shown
    answer = mixed("query", "Which town has 44 of oak?")[1]
    assert "town: Town 44; beams: 44 of oak" in answer
    assert "\n\n\n" not in answer


def test_menus_are_counted_after_what_else_was_not_read(mixed) -> None:
    *_, picture, menus = mixed("info")[1].splitlines()
    assert picture == "Not read of b.html: 1 picture."
    assert menus == "Not read of 2 files: words in menus, headers and footers."
    assert "\n4 of 4 files read, 1 document in part.\n" in mixed("build", "files", "--replace")[1]


EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\u2067[bold]"
SHOWN = r"\u001b]0;title\u0007\u001b[2J\u009b31m\u202e\u2067[bold]"


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A folder whose names and texts would act on a terminal."""
    (folder := tmp_path / "evil").mkdir()
    (folder / f"a\n{EVIL}.txt").write_text(f"The keeper {EVIL} slept\tall day.\n\nHe {EVIL} woke.")
    (folder / f"b\n{EVIL}.txt").write_text("")
    return folder


def test_nothing_that_is_read_acts_on_a_terminal(hierindex, evil, terminal) -> None:
    report = json.loads(hierindex("build", evil, "--index", "W", "--json")[1])
    assert report["skipped"] == [{"path": f"b\n{EVIL}.txt", "reason": "is empty"}]
    terminal(1000)
    out = hierindex("build", evil, "--index", "W")[1]
    *_, read, skipped, total = out.splitlines()
    assert read.startswith(rf"a\n{SHOWN}.txt ")
    assert skipped.startswith(rf"b\n{SHOWN}.txt ")
    assert skipped.endswith("  is empty")
    assert total == "1 of 2 files read."
    question = ("query", "Who slept?", "--index", "W", "--min-score", 0)
    (source,) = (answer := json.loads(hierindex(*question, "--json")[1]))["sources"]
    assert source["text"] == f"The keeper {EVIL} slept\tall day.\n\nHe {EVIL} woke."
    assert source["citations"][0]["document"] == f"a\n{EVIL}.txt"
    asked = re.sub(r"\x1b\[[01]m", "", hierindex(*question)[1])  # bold type
    place, _, text = asked.partition("\n")
    assert place == rf"a\n{SHOWN}.txt"
    assert text.startswith(answer["answer"].replace(EVIL, SHOWN))
    node = hierindex("show", source["id"], "--index", "W")[1]
    assert node.endswith(f"\n\nThe keeper {SHOWN} slept\tall day.\n\nHe {SHOWN} woke.\n")
    for printed in (out, asked, node, hierindex(*question, "--json")[1]):
        assert not re.search("[^\n\t -~]", printed)


def test_nothing_that_a_model_writes_acts_on_a_terminal(hierindex, index, terminal) -> None:
    terminal(1000)
    with LoopbackServer(reply=lambda prompt: f"It slept.\r\n{EVIL}") as server:
        out = hierindex("query", "Who slept?", "--index", index, *llm_at(server))[1]
    assert out.startswith(f"It slept.\n{SHOWN} [?]\n\n[?] No passage supports: {SHOWN}\n")
    assert not re.search("[^\n -~]", out)


@pytest.mark.parametrize(
    "command",
    [
        ("build", f"none{EVIL}", "--index", "W"),
        ("query", "?", f"letters/{EVIL}", "--index", "index"),
        ("query", "?", f"--{EVIL}"),
        (f"query{EVIL}",),
    ],
    ids=["source", "argument", "option", "command"],
)
def test_no_error_acts_on_a_terminal(hierindex, index, terminal, command) -> None:
    terminal(1000)
    status, out, err = hierindex(*command)
    assert (status, out) == (2, "")
    assert re.search(r"(^|\x1b\[2K)hierindex: [ -~]+\[bold\][ -~]+\n$", err)  # after an erased line


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands until it is moved."""
    moved = SimpleNamespace(at=100.0)
    monkeypatch.setattr("rich.console.monotonic", lambda: moved.at)
    return moved


def test_no_progress_acts_on_a_terminal(terminal, capsys) -> None:
    terminal(200)
    with closing(ShownProgress(EVIL)) as shown:
        shown(f"embed {EVIL}", 1, 2, f"cost {EVIL}")
    err = capsys.readouterr().err
    assert f"cost {SHOWN}" in err
    assert not {*EVIL} & {*err} - {*"\x1b[]0;title2J31mbold"}


def test_a_terminal_shows_what_is_done_and_how_fast(terminal, clock, capsys) -> None:
    terminal()
    with closing(ShownProgress("a-model")) as shown:
        clock.at = 102.4
        for done in (0, 205, 410):
            shown("data: embed chunks", done, 1761, "3 tokens")
            clock.at += 5
        shown("summarize level 1", 8, 8)
        shown("summarize level 2", 0, 3)
    err = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().err)
    assert "✓ Loading a-model, 2.4 s" in err
    assert "data: Embedding 410 of 1,761 chunks, 41/s, 0:00:33 left, 3 tokens" in err
    assert "Writing 0 of 3 summaries" in err
    terminal(200)
    with closing(ShownProgress("a-model")) as shown:
        for done in (0, 61_500, 123_000):
            shown("read", done, 1_000_000)
            clock.at += 5
    assert "Reading 123,000 of 1,000,000 files, 12,300/s, " in capsys.readouterr().err


def test_elsewhere_a_sentence_is_printed_every_half_minute(clock, capsys) -> None:
    with closing(ShownProgress("a-model")) as shown:
        for done in range(100):
            shown("split", done, 100)
            clock.at += 1
    assert capsys.readouterr().err.splitlines() == [
        "hierindex: Splitting 30 of 100 documents, 1/s, 0:01:10 left",
        "hierindex: Splitting 60 of 100 documents, 1/s, 0:00:40 left",
        "hierindex: Splitting 90 of 100 documents, 1/s, 0:00:10 left",
    ]
    clock.at += 3600
    shown("read", 1, 2)  # of the next update of `watch`
    assert capsys.readouterr().err == ""


def test_a_note_stands_above_the_progress_and_does_not_break_it(terminal, capsys) -> None:
    terminal(80)
    with closing(ShownProgress("a-model")) as shown:
        shown("read", 1, 2)
        print_note("note: Wait.")
        shown("read", 2, 2)
    assert "\x1b[2Khierindex: note: Wait.\n" in capsys.readouterr().err


def test_a_note_is_wrapped_between_words(terminal, capsys) -> None:
    terminal(30)
    print_note("note: The question was not understood.")
    assert capsys.readouterr().err == "hierindex: note: The question\nwas not understood.\n"


def test_progress_is_shown_again_after_it_was_closed(terminal, capsys) -> None:
    terminal(80)
    with closing(ShownProgress("a-model")) as shown:
        for stage, said, other in (
            ("read", "Reading", "Splitting"),
            ("split", "Splitting", "Reading"),
        ):
            shown(stage, 1, 2)
            shown.close()
            err = capsys.readouterr().err
            assert said in err
            assert other not in err


def test_text_is_as_wide_as_the_terminal_and_as_it_is_elsewhere(
    hierindex, tmp_path, terminal
) -> None:
    lines = [f"Paragraph {i} says {'very ' * 40}little." for i in range(2)]
    (tmp_path / "long.txt").write_text(f"{lines[0]}\n\n  {lines[1]}\n    indented")
    assert hierindex("build", "long.txt", "--index", "W")[0] == 0
    (root,) = json.loads(hierindex("info", "--index", "W", "--json")[1])["roots"]
    show = ("show", root, "--index", "W")
    assert hierindex(*show)[1].endswith(f"\n\n{lines[0]}\n\n  {lines[1]}\n    indented\n")
    for columns in (40, 120):
        terminal(columns)
        text = hierindex(*show)[1].partition("\n\n")[2]
        assert columns - 10 < max(map(len, text.splitlines())) <= columns
        assert text.split() == [word for line in lines for word in line.split()] + ["indented"]


@pytest.fixture
def forbidden(tmp_path: Path):
    """A folder that cannot be entered, while the test is not run by root."""
    (folder := tmp_path / "forbidden").mkdir(mode=0o000)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield folder
    os.seteuid(user)


def test_a_folder_that_cannot_be_entered_is_named(forbidden) -> None:
    for use in (HierarchyStore, HierarchicalIndex.open):
        with pytest.raises(
            InputError, match=r"forbidden/index' cannot be used: Permission denied\."
        ):
            use(forbidden / "index")


def test_a_disk_that_is_full_is_one_sentence(hierindex, folder) -> None:
    """Files that must not grow are refused as those on a full disk are, with another reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        status, out, err = hierindex("build", folder, "--index", "W", "--chunk-size", 64)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    *notes, error = err.splitlines()
    assert (status, out) == (2, "")
    assert error == "hierindex: The index 'W' cannot be used: File too large."
    assert len({*notes}) == len(notes)


@pytest.mark.parametrize(
    "url",
    [
        "http://ada:sek/ret@127.0.0.1:{port}/v1",
        "http://ada:sekret@[::1/v1",
    ],
)
def test_the_password_of_an_address_is_not_shown(hierindex, index, url) -> None:
    llm = ("--llm", "m", "--llm-base-url", url.format(port=closed_port()))
    for command in (("query", "?", "--index", index), ("build", "letters", "--index", "W")):
        status, out, err = hierindex(*command, *llm)
        assert (status, out) == (2, "")
        assert re.fullmatch(r"hierindex: [^\n]+\.\n", err)
        assert not re.search("ada|sek|ret@", err)


def test_what_nothing_answers_is_said_unless_a_guess_is_wanted(hierindex, index) -> None:
    question = ("query", "Which enzyme splits lactose?", "--index", index, "--json")
    status, out, err = hierindex(*question)
    answer = json.loads(out)
    assert (status, err) == (0, "")
    assert (answer["answer"], answer["refused"]) == ("Nothing in the index answers this.", True)
    assert 0 <= answer["score"] < NAMES["min_score"]
    assert answer["sources"]
    guess = json.loads(hierindex(*question, "--min-score", 0)[1])
    assert (guess["refused"], guess["score"]) == (False, answer["score"])
    assert guess["citations"]


def test_a_number_that_no_passage_has_is_named(hierindex, index) -> None:
    question = ("Which enzyme splits 1234 in Xanadu?", "--index", index)
    missing = ["enzyme", "1234", "Xanadu"]
    assert json.loads(hierindex("query", *question, "--json")[1])["missing"] == missing
    for command in ("query", "compare"):
        assert (
            "\nNot in the passages found: enzyme, 1234, Xanadu\n"
            in hierindex(command, *question)[1]
        )


@pytest.mark.parametrize("command", ["query", "compare"])
def test_a_refusal_names_its_score_and_how_to_lower_the_minimum(hierindex, index, command) -> None:
    asked = (command, "broken", "--index", index, "--where", "file_name=storm.txt")
    _, out, _ = hierindex(*asked, "--min-score", 1)
    hint = re.search(r"answers this\.\n\nThe best answer has a score of (0\.\d\d); a lower", out)
    assert hint
    _, out, _ = hierindex(*asked, "--min-score", float(hint[1]) - 0.01)
    assert "Nothing in the index" not in out
    assert "--min-score" not in out
    _, out, _ = hierindex(command, "broken", "--index", index, "--where", "file_name=none")
    assert out.endswith("Nothing in the index that passes the filters answers this.\n")


def test_a_file_that_is_no_document_is_the_reason_of_a_refusal(hierindex, index) -> None:
    asked = ("query", "Summarise strom.txt", "--index", index)
    assert "'strom.txt'; similar ids are 'storm.txt'" in hierindex(*asked)[1].splitlines()[0]
    told = json.loads(hierindex(*asked, "--json")[1])
    assert (told["refused"], [*told["unknown"]]) == (True, ["strom.txt"])


def test_where_nothing_is_found_one_line_is_printed(hierindex, index) -> None:
    asked = ("query", "broken", "--index", index, "--where", "file_name=none", "--level", 0)
    expected = "Nothing at level 0 that passes the filters answers this.\n"
    assert hierindex(*asked)[1] == expected
    with LoopbackServer() as server:
        llm = (*llm_at(server), "--stream")
        assert hierindex(*asked, *llm)[1] == expected


def test_a_refusal_by_summaries_says_so(hierindex, index) -> None:
    asked = ("query", "Which enzyme splits 1234?", "--index", index, "--level", "documents")
    refusal, missing, *_ = hierindex(*asked)[1].split("\n\n")
    assert refusal.endswith(" answers this; without a level, the chunks are searched.")
    assert missing.startswith("Not in the summaries found: ")


def test_a_question_to_a_damaged_index_prints_one_line(index, tmp_path) -> None:
    damaged = copytree(index, tmp_path / "damaged")
    rmtree(damaged / "nodes.lance" / "_indices")
    process = started(["query", "Who left the lamp?", "--index", str(damaged)], tmp_path)
    process.join(PATIENCE)
    err = (tmp_path / "err").read_text()
    assert (process.exitcode, (tmp_path / "out").read_text(), err.count("\n")) == (1, "", 1)
    assert "is missing. Run `hierindex verify`" in err


def test_a_document_is_shown_by_its_id(hierindex, index) -> None:
    shown = json.loads(hierindex("show", "storm.txt", "--index", index, "--json")[1])
    assert shown["level"] > 0
    assert {each["document"] for each in shown["citations"]} == {"storm.txt"}


def test_an_update_reads_what_has_changed(hierindex, index, folder) -> None:
    other = ("--index", "index", "--json")
    hierindex("build", folder, *other, "--chunk-size", 64)
    n_before = json.loads(hierindex("info", *other)[1])["generation"]
    status, out, err = hierindex("update", "--index", "index")
    assert (status, err) == (0, "")
    assert re.fullmatch(rf"Nothing has changed: 2 documents, generation {n_before}, .*\n", out)
    assert hierindex("update", "--index", "index", "--dry-run")[1].startswith("Nothing would")
    (folder / "calm.md").rename(folder / "quiet.md")
    (folder / "new.txt").write_text("The keeper slept through the day. Nothing happened at all.")
    told = json.loads(hierindex("update", "--dry-run", *other)[1])
    counts = {"added": 1, "changed": 0, "removed": 0, "renamed": 1, "unchanged": 1}
    assert {outcome: told[outcome] for outcome in counts} == counts
    assert (told["usage"]["llm_calls"], told["embedded_chunks"]) == (0, 1)
    status, out, err = hierindex("update", *other)
    report = json.loads(out)
    assert (status, err) == (0, "")
    assert counts.items() <= report.items()
    names = {"added": ["new.txt"], "changed": [], "removed": []}
    assert report["names"] == told["names"] == names | {"renamed": [["calm.md", "quiet.md"]]}
    assert {"generation", "skipped", "usage", "seconds"} <= report.keys()
    assert report["usage"]["cached_summaries"] > 0
    assert json.loads(hierindex("info", *other)[1])["documents"] == 3


def test_a_deleted_document_stays_out_until_it_is_named(hierindex, index, folder) -> None:
    hierindex("build", folder, "--index", "index", "--chunk-size", 64)
    told = hierindex("delete", "storm.txt", "--index", "index", "--dry-run")[1]
    said = "Dry run, the index is unchanged: 1 document removed, 1 unchanged.\nRemoved: storm.txt\n"
    assert told.startswith(said)
    status, out, err = hierindex("delete", "storm.txt", "--index", "index", "--json")
    report = json.loads(out)
    assert (status, err, report["removed"], report["unchanged"]) == (0, "", 1, 1)
    assert (folder / "storm.txt").exists()
    out = hierindex("update", "--index", "index")[1]
    assert "Skipped storm.txt: was deleted from the index; name the file" in out
    out = hierindex("update", "letters/storm.txt", "--index", "index")[1]
    assert ": 1 document added, 1 unchanged, " in out


def test_a_build_that_loses_an_index_has_to_be_meant(hierindex, index, folder) -> None:
    slip = ("build", folder, "--index", "index", "--method", "document")
    status, out, err = hierindex(*slip)
    assert (status, out) == (2, "")
    assert "built with the method 'semantic', this build has" in err
    assert "pass --replace" in err
    assert hierindex(*slip, "--replace")[0] == 0
    assert hierindex(*slip)[0] == 0


def test_a_language_model_is_asked_again_if_that_is_said(
    hierindex, build, server, folder, monkeypatch
) -> None:
    monkeypatch.setenv("HIERINDEX_LLM_API_KEY", "sk-very-secret")
    build("--llm-completion-tokens", 900, "--prompt", "questions")
    (folder / "new.txt").write_text("The keeper slept. Nothing happened at all on that day.")
    n_asked, update = len(server.requests), ("update", "--index", "L")
    status, out, err = hierindex(*update)
    assert (status, out, len(server.requests)) == (2, "", n_asked)
    assert "by the language model 'm'; pass it as llm= (on the command line --llm remem" in err
    again = ("--llm", "remembered")
    told = json.loads(hierindex(*update, *again, "--dry-run", "--json")[1])
    assert len(server.requests) == n_asked
    status, out, err = hierindex(*update, *again, "--json")
    assert (status, err) == (0, "")
    usage = json.loads(out)["usage"]
    assert told["usage"]["llm_calls"] == usage["llm_calls"]
    assert usage["llm_calls"] == len(server.requests) - n_asked > 0
    assert server.requests[-1].authorization == "Bearer sk-very-secret"
    assert "questions that it answers" in server.requests[-1].prompt
    named = (*llm_at(server), "--llm-completion-tokens", 900)
    assert hierindex("delete", "new.txt", "--index", "L", *named)[0] == 0
    status, _, err = hierindex(*update, "--llm", "other")
    assert status == 2
    assert "--llm other contradicts the index, which was built with m;" in err


def cites_last(prompt: str) -> str:
    """Return a sentence of the last passage, which is cited, and one that no passage has."""
    *_, last = re.finditer(r"(?m)^(\[\d+\])$", prompt)
    said = re.findall("On day .*?[.]", prompt[: last.start()])[-1]
    return f"{said[:-1]} {last[1]}. Whales sing all night {last[1]}."


def cites_some(prompt: str) -> str:
    """Return these sentences, and two without a citation, of which no passage has the first."""
    return f"{cites_last(prompt)} Bees hum around my garden. The storm had broken the pier."


def test_an_answer_is_streamed_and_its_sources_follow(hierindex, index, folder) -> None:
    question = ("query", "What did the keeper write?", "--index", index, "--top-k", 4)
    with LoopbackServer(reply=cites_some) as server:
        asked = (*question, *llm_at(server))
        answer = json.loads(hierindex(*asked, "--json")[1])
        assert (answer["answer_kind"], answer["usage"]["llm_calls"]) == ("llm", 1)
        plain, streamed = (hierindex(*asked, *flags)[1] for flags in (["-v"], ["-v", "--stream"]))
        assert [bool(r.body.get("stream")) for r in server.requests] == [False, False, True]
        assert hierindex(*asked)[1] == "\n\n".join(plain.split("\n\n")[:3]) + "\n"
    text, citations, unsupported, _, sources, *_ = told = plain.split("\n\n")
    as_said = text.replace("[2?]", "[2]").replace(" [?]", "").replace(" [3*]", "")
    assert streamed.split("\n\n")[:5] == [as_said, *told[1:5]]
    assert re.fullmatch(
        r"On day \d+ [^\n]+ \[1\]\. Whales sing all night \[2\?\]\. "
        r"Bees hum around my garden \[\?\]\. The storm had broken the pier \[3\*\]\.",
        text,
    )
    assert re.fullmatch(
        r"\[1\] \w+\.\w+\n\[2\] \w+\.\w+, differs from its passage\n"
        r"\[3\] \w+\.\w+, found by hierindex",
        citations,
    )
    assert unsupported == "[?] No passage supports: Bees hum around my garden."
    assert answer["unsupported"] == ["Bees hum around my garden."]
    assert [each["by"] for each in answer["citations"]] == ["model", "model", "hierindex"]
    for each in answer["citations"]:
        read = (folder / each["document"]).read_text()
        assert each["quote"] == read[each["start"] : each["end"]] != ""
    head, *lines = sources.splitlines()
    assert head == "Found; `hierindex show ID` prints a node:"
    order = [source["id"][:12] for source in answer["sources"]]
    assert [line.partition("level 0  ")[2][:12] for line in lines] == order


@pytest.mark.parametrize("way", ["query", "query --stream", "compare --response-mode compact"])
def test_an_answer_that_is_cut_off_says_so(hierindex, index, way) -> None:
    command, *flags = way.split()
    asked = (command, "What did the keeper write?", "--index", index, *flags)
    asked = (*asked, "--llm-completion-tokens", 8000)
    for finish, is_cut in (("length", True), ("stop", False)):
        fault = Fault(text="The keeper wrote that", finish_reason=finish)
        with LoopbackServer(faults=lambda number, fault=fault: fault) as server:
            status, out, err = hierindex(*asked, *llm_at(server))
            assert server.requests[0].body["max_tokens"] == 8000
            assert (status, err) == (0, "")
            assert ("cut off at the model's limit" in out) == is_cut
            assert ("--llm-completion-tokens" in out) == is_cut
            if "--stream" not in way:
                told = json.loads(hierindex(*asked, *llm_at(server), "--json")[1])
                assert told.get("modes", [told])[0].get("cut_off", False) == is_cut


def test_what_cannot_be_streamed_is_printed_at_once(hierindex, index) -> None:
    question = ("query", "What did the storm break?", "--index", index)
    assert hierindex(*question, "--stream") == hierindex(*question)
    with LoopbackServer(reply=names_words) as server:
        llm = (*llm_at(server), "--response-mode", "accumulate")
        assert hierindex(*question, *llm, "--stream") == hierindex(*question, *llm)


@pytest.mark.parametrize("form", ["document-summary", "parquet", "json", "svg"])
def test_export(hierindex, index, form) -> None:
    command = ("export", form, "--index", index)
    status, out, err = hierindex(*command, "--to", "out/one", "--json")
    told = json.loads(out)
    assert (status, err) == (0, "")
    assert (told["format"], told["path"]) == (form, "out/one")
    assert told["nodes"] > 0
    assert Path("out/one").is_dir() == (form == "document-summary")
    assert (
        hierindex(*command, "--to", "out/two")[1] == f"{told['nodes']} nodes as {form}: out/two\n"
    )


@pytest.fixture
def server():
    count = get_tokenizer()
    with LoopbackServer(reply=long_summary, count=lambda text: len(count(text))) as server:
        yield server


def long_summary(prompt: str) -> str:
    """Its first hundred words or so, in whole sentences."""
    passages = prompt.split(" ===\n")[-2].rpartition("\n")[0]
    return passages[: passages.find(". ", 560) + 1] or passages


@pytest.fixture
def build(hierindex, folder, server):
    """Builds an index of the letters with a language model and more flags."""
    args = ("build", folder, "--index", "L", "--chunk-size", 64, *llm_at(server))
    return lambda *flags: hierindex(*args, *flags)


def test_a_dry_run_says_what_a_build_takes(hierindex, build, server) -> None:
    status, out, err = build("--dry-run", "--json")
    n_calls = json.loads(out)["usage"]["llm_calls"]
    assert (status, err, server.requests) == (0, "", [])
    assert f"\nllm calls: {n_calls}, prompt" in build("--dry-run")[1]
    assert json.loads(build("--json")[1])["usage"]["llm_calls"] == n_calls == len(server.requests)
    assert json.loads(hierindex("info", "--index", "L", "--json")[1])["summarizer"] == "m"
    again = json.loads(build("--dry-run", "--replace", "--json")[1])["usage"]
    assert (again["llm_calls"], again["cached_summaries"]) == (0, n_calls)


def test_a_token_limit_stops_a_build_that_another_continues(hierindex, build, server) -> None:
    needed = json.loads(build("--dry-run", "--json")[1])["usage"]
    limit = needed["prompt_tokens"] // 2 + needed["completion_tokens"] // needed["llm_calls"]
    status, out, err = build("--max-llm-tokens", limit)
    assert (status, out) == (2, "")
    assert re.fullmatch(r"hierindex: LLM 'm' stopped at its limit [^\n]+\.\n", err)
    assert sum(server.answered[1:]) <= limit
    assert hierindex("info", "--index", "L")[0] == 2
    status, out, _ = build("--json")
    usage = json.loads(out)["usage"]
    prompts = [request.prompt for request in server.requests]
    assert status == 0
    assert len(set(prompts)) == len(prompts)
    assert usage["cached_summaries"] + usage["llm_calls"] == len(prompts)
    assert usage["cached_summaries"] > 0


def test_prompts_can_be_chosen_and_recorded(build, server, tmp_path) -> None:
    (tmp_path / "mine.txt").write_text("In {n_words} words:\n{fence}\n{text}\n{fence}\n")
    for name, said in (("questions", "questions that it answers"), ("mine.txt", "In 140 words")):
        server.requests.clear()
        assert build("--prompt", name, "--llm-record", "calls.jsonl")[0] == 0
        assert all(said in request.prompt for request in server.requests)
    lines = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert {line["model"] for line in lines} == {"m"}
    assert "In 140 words" in lines[-1]["prompt"]


def invented(prompt: str) -> str:
    return f"The storm broke {crc32(prompt.encode())} windows."


@pytest.mark.parametrize(
    ("unsupported", "outcome", "mark"),
    [("extract", "replaced", "[quoted]"), ("drop", "dropped", ""), ("keep", "unsupported", "[?]")],
)
def test_an_invented_number_is_not_supported(
    hierindex, build, server, unsupported, outcome, mark
) -> None:
    def reply(prompt: str) -> str:
        beside = long_summary(prompt) if unsupported == "drop" else ""  # or nothing would be left
        return f"{invented(prompt)} {beside}"

    server.reply = reply
    out = build("--unsupported", unsupported, "--json")[1]
    grounding = json.loads(out)["grounding"]
    assert 0 < grounding[outcome] == len(grounding["faults"])
    assert all(re.fullmatch(r"numbers not in the sources: \d+", f) for f in grounding["faults"])
    (root,) = json.loads(hierindex("info", "--index", "L", "--json")[1])["roots"]
    shown = json.loads(hierindex("show", root, "--index", "L", "--json")[1])
    assert shown["grounding"][outcome] == 1
    bounds = [(s["at"], s["to"]) for s in shown["sentences"] if s["is"] == "unsupported"]
    wrong = [shown["text"][at:to] for at, to in bounds]
    is_kept = unsupported == "keep"
    assert wrong == [shown["text"]] * is_kept
    printed = hierindex("show", root, "--index", "L")[1]
    assert re.search(rf" 1 {outcome} \(numbers not in the sources: \d+\)\n", printed)
    assert mark in printed
    assert ("[?]" in printed) == is_kept


def test_what_is_not_supported_can_be_an_error(hierindex, build, server) -> None:
    server.reply = invented
    status, out, err = build("--unsupported", "fail")
    assert (status, out) == (1, "")
    said = r"that is not supported \(numbers not in the sources: \d+\): 'The storm broke \d+ w"
    assert re.search(said, err)
    assert hierindex("info", "--index", "L")[0] == 2


def test_a_script_can_tell_a_refusal(hierindex, index) -> None:
    asked = ("query", "Which kings of Sweden fought Denmark?", "--index", index, "--json")
    for question, status in (("query", "What did the storm break?", *asked[2:]), 0), (asked, 3):
        plain, failing = hierindex(*question), hierindex(*question, "--fail-if-refused")
        assert (plain[0], failing[0]) == (0, status)
        without_times = [re.sub(r"\d+\.\d+", "", out) for _, out, _ in (plain, failing)]
        assert without_times[0] == without_times[1]
        assert plain[2] == failing[2] == ""


def test_demo(hierindex, monkeypatch) -> None:
    documents = demo_documents()
    assert len(documents) > 30
    asked = {"sklearn.manifold.md", "sklearn.neighbors.md", "sklearn.impute.md"}
    few = [document for document in documents if document.doc_id in asked]
    monkeypatch.setattr("hierindex.demo.demo_documents", lambda: few)
    for _ in range(2):
        status, out, err = hierindex("demo")
        assert (status, err) == (0, "")
        for answered in ("sklearn.manifold › TSNE", "LocalOutlierFactor", "sklearn.impute\n"):
            assert answered in out
        assert out.count("level  nodes  tokens") == 1


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


LLM = "build letters --index W --llm m --llm-base-url http://x/v1"
BAD_COMMANDS = {
    "build '' --index W": "an empty string",
    "build letters --index W --llm m": "--llm-base-url",
    "build letters --index letters/calm.md/deeper": "'letters/calm.md/deeper'",
    f"{LLM} --prompt y": "'y'",
    f"{LLM} --unsupported invent": "--unsupported",
    f"{LLM} --llm-record none/calls": "'none/calls'",
    f"{LLM} --summarizer y": "--summarizer, not both, got y",
    "mcp --index index --port 1": "--port needs --http",
    "update none --index index": "'none'",
    "update --index index --llm remembered": "--llm remembered",
    "update --index index --llm m --llm-base-url http://x/v1": "--llm m",
    "query ? --index index --response-mode essay": "response_mode",
    "query ? --index index --where author": "KEY=VALUE",
    "query ? --index index --where file_nam=storm.txt": "'file_nam'; the nearest is file_name;",
    "query ? --index index --stream --json": "--stream and --json",
    "compare ? --index index --where level=1": "No chunk has the key 'level'",
    "build letters --index ''": "an empty string",
    "show xyz --index index": "No document has the id 'xyz'",
    "build letters --index letters": "both a source and the folder of the index",
    "outline --index index --budget 0": "--budget is invalid: it must be at least 1, got '0'",
}
"""Command lines, and what their errors name."""


def test_a_question_that_is_not_utf8_is_asked(hierindex, index, chat) -> None:
    asked = ("compare", "Who slept in the caf\udce9?", "--index", "index", "--json")
    assert json.loads(hierindex(*asked)[1])["sources"]
    assert " [1]\n" in chat("What did the \udcff storm break?")[1]


@pytest.mark.parametrize(("command", "message"), BAD_COMMANDS.items(), ids=BAD_COMMANDS)
def test_bad_commands(hierindex, index, command, message) -> None:
    status, out, err = hierindex(*shlex.split(command))
    assert (status, out) == (2, "")
    assert re.fullmatch(r"hierindex: [^\n]+\.\n", err)
    assert message in err
    assert not Path("W").exists()


def test_key_is_in_no_message_and_no_file(hierindex, folder, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HIERINDEX_LLM_API_KEY", "sk-very-secret")
    with LoopbackServer() as server:
        output = hierindex("build", folder, "--index", "W", "--chunk-size", 64, *llm_at(server))
        assert server.requests[0].authorization == "Bearer sk-very-secret"
    assert "secret" not in str(output)
    stored = [path.read_bytes() for path in (tmp_path / "W").rglob("*") if path.is_file()]
    assert stored
    assert not any(b"very-secret" in data for data in stored)


def test_every_command_is_in_the_readme_and_every_setting_a_flag() -> None:
    readme, flags = (Path(__file__).parents[2] / "README.md").read_text(), set[str]()
    for name, command in COMMANDS.items():
        assert f"hierindex {name}" in readme
        flags |= {option.name for option in command.params}
    assert flags >= NAMES.keys()


def test_every_default_is_in_the_help() -> None:
    """In words, or written by typer; a switch is off by default."""
    values = NAMES | {"top_k": TOP_K}
    for name, command in COMMANDS.items():
        for option in command.params:
            is_switch = option.default is False and not option.secondary_opts
            if option.required or is_switch or option.default is not None:
                continue
            assert "default" in option.help.lower(), (name, option.name)
            value = values.get(option.name)
            assert value in (None, False) or str(value) in option.help, (name, option.name)


def test_rerank(hierindex, index, monkeypatch) -> None:
    class AnyButTheFirst:
        def rank(self, question, texts):
            return [float(i > 0) for i in range(len(texts))]

    loaded = dict[str, AnyButTheFirst]()
    monkeypatch.setattr(
        "hierindex.retrieve.retrieval.load_reranker",
        lambda name: loaded.setdefault(name, AnyButTheFirst()),
    )
    asked = ("query", "What did the storm break?", "--index", index, "--top-k", 2, "--json")
    without, reranked = (
        [source["text"] for source in json.loads(hierindex(*asked, *flags)[1])["sources"]]
        for flags in ((), ("--rerank", "some/model"))
    )
    assert loaded.keys() == {"some/model"}
    assert reranked[0] != without[0]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What did the storm break?", "the chunks by context: "),
        ("What is this about?", "all levels for an outline: "),
    ],
)
def test_the_default_says_what_it_searched_and_why(hierindex, index, question, said) -> None:
    asked = ("query", question, "--index", index)
    answer = json.loads(hierindex(*asked, "--json")[1])
    assert answer["sources"]
    assert answer["why"].startswith(said)
    plain, told = hierindex(*asked)[1], hierindex(*asked, "--verbose")[1]
    first, rest = told.removeprefix(plain.removesuffix("\n")).split("\n\nFound; ")
    assert first.startswith(f"\n\nSearched {said}")
    head, *found, _, spent = rest.splitlines()
    assert head == "`hierindex show ID` prints a node:"
    assert len(found) == len(answer["sources"])
    assert re.fullmatch(r"embed \d+\.\d\d s, search \d+\.\d\d s, respond \d+\.\d\d s", spent)
    assert not any(source["id"][:12] in plain for source in answer["sources"])


def test_a_filter_may_name_a_section(hierindex, tmp_path) -> None:
    text = "# Report\n\n## 3 Results\n{}\n## 4 Outlook\n{}\n"
    sections = "The lamp was lit within nine seconds. " * 9, "The pier is to be mended. " * 9
    (tmp_path / "report.md").write_text(text.format(*sections))
    assert hierindex("build", "report.md", "--index", "W", "--chunk-size", 60)[0] == 0
    asked = ("query", "Was the lamp lit?", "--index", "W", "--level", 0, "--json", "--where")
    for condition, section in (("section~results", "3 Results"), ("section~out", "4 Outlook")):
        found = json.loads(hierindex(*asked, condition)[1])["sources"]
        assert {c["section"][1] for s in found for c in s["citations"]} == {section}


def test_a_citation_is_opened_in_its_document(hierindex, folder, index) -> None:
    asked = ("query", "What had the storm broken on day 3?", "--index", index, "--level", 0)
    node = json.loads(hierindex(*asked, "--json")[1])["sources"][0]["id"]
    show = ("show", node, "--index", index)
    assert "passages" not in json.loads(hierindex(*show, "--json")[1])
    (folder / "storm.txt").unlink()  # it is not read again
    status, out, _ = hierindex(*show, "--source", "--json")
    shown = json.loads(out)
    (passage,) = shown["passages"]
    assert status == 0
    assert (passage["document"], passage["text"]) == ("storm.txt", shown["text"])
    whole = passage["before"] + passage["text"] + passage["after"]
    assert whole.split() == TEXT[passage["before_start"] : passage["after_end"]].split()
    assert 0 < len(passage["before"]) <= CONTEXT
    text = hierindex(*show, "--source")[1]
    place = f"storm.txt ({passage['start']}-{passage['end']})"
    marked = f"{passage['before']}⟦{passage['text']}⟧{passage['after']}"
    assert text.endswith(f"{shown['text']}\n\n{place}\n\n{marked}\n")


STORM = "What did the storm break?"
USAGE = "llm_calls", "prompt_tokens", "completion_tokens"
ALL_CHUNKS = ("--level", 0, "--top-k", 500, "--token-budget", 100_000)


@pytest.fixture
def small_window(monkeypatch):
    """So that an answer takes many calls."""
    monkeypatch.setattr("hierindex.models.llm.CONTEXT_WINDOW", 800)


def test_compare_with_a_model(hierindex, index, small_window) -> None:
    with LoopbackServer(reply=names_words) as server:
        question = ("compare", STORM, "--index", index, *ALL_CHUNKS, *llm_at(server))
        status, out, err = hierindex(*question, "--json")
        assert (status, err) == (0, "")
        told = json.loads(out)
        status, table, err = hierindex(*question)
        assert (status, err) == (0, "")
    assert [*told] == ["question", "sources", "modes", "seconds"]
    by_mode = {mode["mode"]: mode for mode in told["modes"]}
    modes = {"extractive", *(mode.value for mode in ResponseMode)}
    assert {*by_mode} == modes - {"no_text", "context_only"}
    assert {"error", "usage"} <= {key for mode in told["modes"] for key in mode}
    rows = {line.split()[0]: line.split()[1:] for line in table.split("\n\n")[1].splitlines()}
    for mode in by_mode:
        usage = by_mode[mode].get("usage")
        told = ["failed"] if usage is None else [f"{usage[key]:,}" for key in USAGE]
        assert rows[mode][: len(told)] == told
        said = by_mode[mode].get("answer") or by_mode[mode]["error"]
        assert re.search(rf"\n\n{mode}\n([\w.]+\n)?{re.escape(said.partition('[1]')[0])}", table)


@pytest.fixture
def chat(hierindex, index, monkeypatch):
    """Runs a chat whose input is a pipe with these lines."""

    def run(*lines: str, flags: tuple[object, ...] = ("--min-score", 0)) -> tuple[int, str, str]:
        piped = "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped), "utf-8"))
        return hierindex("chat", "--index", index, *flags)

    return run


def answers_or_rewrites(prompt: str) -> str:
    if "Standalone question" in prompt:
        return f"What did the calm mend?{EVIL}"
    return cites_last(prompt)


def test_a_chat_answers_each_line(hierindex, index, chat) -> None:
    status, out, err = chat(STORM, "", "  \t", "What did the calm mend?")
    assert status == 0
    assert re.fullmatch(r"hierindex: note: Without --llm, each question [^\n]+\n", err)
    asked = ("--index", index, "--min-score", 0)
    questions = STORM, "What did the calm mend?"
    assert out == "".join(f"{hierindex('query', each, *asked)[1]}\n" for each in questions)
    assert chat() == (0, "", err)


def test_a_chat_with_a_model_knows_what_was_said_before(chat, terminal) -> None:
    with LoopbackServer(reply=answers_or_rewrites) as server:
        flags = ("--top-k", 4, "-v", *llm_at(server))
        terminal(1000)
        status, out, err = chat(STORM, "And then?", flags=flags)
        prompts = [request.prompt for request in server.requests]
        assert [bool(r.body.get("stream")) for r in server.requests] == [True, False, True]
    assert (status, err) == (0, "")
    assert STORM in prompts[1]
    assert "And then?" in prompts[1]
    assert "What did the calm mend?" in prompts[2]
    first, *_, last = out.strip().split("\n\n")
    assert re.fullmatch(r"On day \d+ [^\n]+ \[1\]\. Whales sing all night \[2\]\.", first)
    assert first.replace("[2]", "[2?]") in prompts[1]  # with what the check found
    assert last == f"The question was searched for as: What did the calm mend?{SHOWN}"
    assert out.count("Searched the chunks by context: ") == 2


def test_a_refusal_does_not_end_a_chat(chat) -> None:
    _, out, _ = chat(STORM, flags=("--min-score", 1, "-v"))
    assert out.startswith("Nothing in the index answers this.\n\nThe best answer has a score of ")
    assert re.search(r"(?m)^level 0  \w{12}  ", out)
    _, out, _ = chat(STORM, flags=("--where", "file_name=none"))
    assert out.startswith("Nothing in the index that passes the filters answers this.\n\n")


def test_a_model_that_fails_does_not_end_a_chat(chat, monkeypatch) -> None:
    monkeypatch.setattr("hierindex.models.llm.WAIT", wait_none())
    faults = {0: Fault(401), 1: Fault(dropped=True)}
    with LoopbackServer(cites_last, faults.get) as server:
        status, out, err = chat("Lost?", "Lost, too?", STORM, flags=llm_at(server))
        assert len(server.requests) == 3  # nothing to rewrite
        assert "Lost" not in server.requests[2].prompt
    assert status == 0
    assert re.fullmatch(r"(hierindex: LLM 'm' (cannot be used|failed to answer)[^\n]+\.\n){2}", err)
    assert out.rstrip().splitlines()[-1].startswith("[2] ")


@pytest.mark.parametrize("stop", [EOFError, KeyboardInterrupt])
def test_a_chat_in_a_terminal_has_a_prompt_and_is_left_politely(
    hierindex, index, terminal, monkeypatch, stop
) -> None:
    terminal(100)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    prompts = list[str]()

    def typed(prompt: str) -> str:
        prompts.append(prompt)
        raise stop

    monkeypatch.setattr("builtins.input", typed)
    status, out, err = hierindex("chat", "--index", index)
    assert (status, out, err.count("hierindex: ")) == (0, "\n", 1)
    assert prompts == ["> "]


def test_ctrl_c_leaves_a_chat_that_is_answering(hierindex, chat, monkeypatch) -> None:
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(HierarchicalIndex, "ask", interrupted)
    status, out, err = chat(STORM, STORM)
    assert (status, out) == (0, "")
    assert "Interrupted" not in err


def test_a_chat_loads_a_cross_encoder_once(chat, monkeypatch) -> None:
    class Backwards:
        def rank(self, question, texts):
            return [-float(i) for i in range(len(texts))]

    loaded = list[str]()

    def load(name):
        loaded.append(name)
        return Backwards()

    monkeypatch.setattr("hierindex.load_reranker", load)
    status, _, err = chat(STORM, STORM, flags=("--rerank", "some/model"))
    assert (status, err.count("\n")) == (0, 1)
    assert loaded == ["some/model"]


@pytest.mark.parametrize(("fault", "status"), [(Fault(401), 2), (Fault(dropped=True), 1)])
def test_an_llm_that_fails_in_the_middle_is_one_sentence(
    hierindex, index, small_window, monkeypatch, fault, status
) -> None:
    monkeypatch.setattr("hierindex.models.llm.WAIT", wait_none())
    with LoopbackServer(faults=lambda number: fault if number >= 1 else None) as server:
        found, out, err = hierindex("query", STORM, "--index", index, *ALL_CHUNKS, *llm_at(server))
        assert len(server.requests) > 1
    assert (found, out) == (status, "")
    cost, error = err.splitlines()
    assert cost.startswith("hierindex: note: Sending at most ")
    assert error.startswith("hierindex: LLM 'm' ")


@pytest.mark.parametrize("command", ["build letters", "compare Who?"])
def test_an_llm_that_is_down_is_one_sentence(hierindex, index, command) -> None:
    llm = ("--llm", "m", "--llm-base-url", f"http://127.0.0.1:{closed_port()}/v1")
    at = "W" if command.startswith("build") else index
    status, out, err = hierindex(*command.split(), "--index", at, *llm)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("hierindex: LLM 'm' cannot be used: nothing answers ")
    assert hierindex("info", "--index", "W")[0] == 2  # what was embedded is kept, an index is not


def test_one_failure_of_an_llm_is_not_noticed(hierindex, index, monkeypatch) -> None:
    monkeypatch.setenv("HIERINDEX_LLM_CONCURRENCY", "1")
    faults = {0: Fault(503), 2: Fault(drips=True)}
    with LoopbackServer(names_words, faults.get) as server:
        bounds = ("--llm-timeout", 1)
        question = ("compare", STORM, "--index", index, *llm_at(server), *bounds, "--json")
        status, out, err = hierindex(*question)
        answers = json.loads(out)["modes"]
        assert not any(answer.get("error") for answer in answers)
        assert sum(answer["usage"]["llm_calls"] for answer in answers) == len(server.requests)
        assert len(server.requests) > 1
        assert server.most_in_flight == 1
    assert (status, err) == (0, "")
