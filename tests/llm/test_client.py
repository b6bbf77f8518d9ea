"""Clients of language models."""

import subprocess
import sys

import pytest

CODE = """
import sys
from hierindex.llm.client import load_client, load_llm
{first}
load_client()
before = set(sys.modules)
if "openai" in before:
    load_llm("m", "http://127.0.0.1:9/v1")._get_client().chat.completions
print(sorted(name for name in sys.modules if name.startswith("openai") and name not in before))
"""


@pytest.mark.parametrize("first", ["", "import llama_index.llms.openai_like"])
def test_what_a_first_request_imports_is_there_if_the_client_is(first):
    command = [sys.executable, "-W", "ignore", "-c", CODE.format(first=first)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout == "[]\n", run.stderr
