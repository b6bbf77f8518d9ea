"""Servers of an index on this machine."""
