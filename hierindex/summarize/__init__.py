"""Summarisers, extractive and abstractive, and the grounding of summaries in their sources."""
