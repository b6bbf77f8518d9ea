"""`hierindex build --llm-batch` in processes that are killed and interrupted."""

import json
import os
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from batch_service import BatchServer, Plan
from processes import started

PATIENCE = 120  # seconds


def build(folder: Path, server: BatchServer) -> BaseProcess:
    """Start a build of the documents in a folder."""
    llm = ("--llm", "tiny", "--llm-base-url", server.base_url, "--llm-batch")
    options = ("--index", "index", "--method", "document", "--chunk-size", "64", "--json")
    return started(["build", "documents", *options, *llm], folder)


def wait_for(call: str, server: BatchServer, process: BaseProcess) -> None:
    patience = time.monotonic() + PATIENCE
    while call not in server.calls and process.is_alive() and time.monotonic() < patience:
        time.sleep(0.01)
    assert call in server.calls


@pytest.mark.slow
def test_a_batch_outlives_its_builds(tmp_path: Path) -> None:
    """The first is killed, the second interrupted, and the third pays for nothing anew."""
    documents = tmp_path / "documents"
    documents.mkdir()
    for i in range(3):
        lines = (f"On day {i}-{j} the keeper met the miller by the bridge." for j in range(20))
        (documents / f"{i}.txt").write_text("\n\n".join(lines))
    with BatchServer(plans=lambda number: Plan(("in_progress",))) as server:
        first = build(tmp_path, server)
        wait_for("POST /v1/batches", server, first)
        first.kill()
        first.join()
        second = build(tmp_path, server)
        wait_for("GET /v1/batches/batch_0", server, second)
        os.kill(second.pid, signal.SIGINT)
        second.join(PATIENCE)
        assert second.exitcode == 130
        told = (tmp_path / "err").read_text()
        assert "LLM 'tiny' works on batch_0.\n" in told
        assert "LLM 'tiny' goes on with batch_0, which it charges for; the next build " in told
        server.plans = lambda number: Plan(("in_progress", "completed"))
        server.continue_with(server.plans(0))
        third = build(tmp_path, server)
        third.join(PATIENCE)
        assert third.exitcode == 0, (tmp_path / "err").read_text()
        usage = json.loads((tmp_path / "out").read_text())["usage"]
        assert usage["llm_calls"] == server.paid.total() == len(server.paid)
        assert len(server.batches[0].lines) == 3
        assert (server.requests, server.files) == ([], {})
