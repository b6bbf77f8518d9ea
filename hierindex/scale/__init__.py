"""Builds on many machines: the same functions, mapped over a Ray cluster."""
