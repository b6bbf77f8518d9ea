"""Requests to language models: clients, limits, retries, errors and records."""
