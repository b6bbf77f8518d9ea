"""Embedding models: texts to unit vectors."""
