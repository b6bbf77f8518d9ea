"""The explorer from its start to its end, in this process and in one of its own."""

import sys

import httpx
import pytest
from processes import PATIENCE

import hierindex.serve
from hierindex.errors import InputError
from hierindex.serve import explore


def test_a_port_that_is_taken_is_not_asked_for(own, monkeypatch) -> None:
    with explore(own, 0) as first:
        port = int(first.url.split(":")[2][:-1])
        monkeypatch.setattr("hierindex.serve.explorer.server.EXPLORER_PORT", port)
        with explore(own) as second:
            assert httpx.get(second.url).status_code == httpx.get(first.url).status_code == 200
            assert second.url != first.url
    with pytest.raises(httpx.ConnectError):
        httpx.get(first.url)


def test_it_can_be_waited_for(own) -> None:
    with explore(own, 0) as explorer:
        explorer.close()
        explorer.wait()
        explorer.close()


def test_a_language_model_may_answer(own) -> None:
    with explore(own, 0, llm=lambda prompt: "The harbour met a lantern [1].") as explorer:
        question = {"q": "What did the harbour meet?"}
        answer = httpx.get(f"{explorer.url}api/ask", params=question, timeout=PATIENCE).json()
    assert answer["answer_kind"] == "llm"
    assert answer["answer"].startswith("The harbour met a lantern [1")
    assert [each["citation"] for each in answer["passages"]] == answer["citations"] != []
    assert answer["passages"][0]["text"].split() == answer["citations"][0]["quote"].split()


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_the_extra_is_named_if_it_is_missing(own, uninstall, missing) -> None:
    uninstall(missing)
    with pytest.raises(InputError, match=r"The explorer needs `pip install 'hierindex\[serve\]'`"):
        hierindex.serve.explore(own, 0)


def test_a_report_needs_no_server(own, uninstall, tmp_path, monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "hierindex.export.report", raising=False)
    uninstall("starlette")
    from hierindex.export import to_html

    assert to_html(own, tmp_path / "report.html").nodes
