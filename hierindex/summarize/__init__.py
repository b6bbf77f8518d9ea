"""Summarisers, extractive and abstractive, and how similar summaries are to their sources."""
