import json
import os
import subprocess
import sys

import llama_index.core
from llama_index.core.utils import get_tokenizer

from hierindex.models.record import TIKTOKEN_FOLDER, llm_tokenizer

TEXTS = ["", "The keeper wrote.", "灯台守。 🌊", "<|endoftext|> <|im_start|>", "  Two\n\nlines "]
COUNTING = f"""
import json, os, sys
from hierindex.models.record import llm_tokenizer
tokens = [llm_tokenizer()(text) for text in json.load(sys.stdin)]
print(json.dumps([tokens, "llama_index.core" in sys.modules, {TIKTOKEN_FOLDER!r} in os.environ]))
"""


def test_tokens_are_those_of_llama_index_before_it_is_imported():
    command = [sys.executable, "-c", COUNTING]
    run = subprocess.run(
        command, input=json.dumps(TEXTS), capture_output=True, text=True, timeout=60, check=True
    )
    expected = [get_tokenizer()(text) for text in TEXTS]
    assert json.loads(run.stdout) == [expected, False, TIKTOKEN_FOLDER in os.environ]


def test_a_tokenizer_of_the_user_counts(monkeypatch):
    monkeypatch.setattr(llama_index.core, "global_tokenizer", str.split)
    assert llm_tokenizer() is str.split
