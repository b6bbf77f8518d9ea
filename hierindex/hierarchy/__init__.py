"""Trees of TextNodes, grown by LlamaIndex transforms."""
