"""Clients of language models."""

import subprocess
import sys

CODE = """
import sys
from hierindex.llm.client import load_client, load_llm

def of_openai():
    return {name for name in sys.modules if name.partition(".")[0] == "openai"}

load_client()
assert not of_openai(), "no client, nothing to load"
import llama_index.llms.openai_like
load_client()
before = of_openai()
load_llm("m", "http://127.0.0.1:9/v1")._get_client().chat.completions
assert of_openai() == before, of_openai() - before
"""


def test_what_a_first_request_imports_is_there_if_the_client_is():
    command = [sys.executable, "-W", "ignore", "-c", CODE]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
