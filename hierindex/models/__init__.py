"""Embedding models and language models."""
