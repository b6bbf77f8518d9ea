"""LlamaIndex transforms that build trees of TextNodes."""
