"""Retrieval: choosing levels, searching, merging and selecting nodes for a question."""
