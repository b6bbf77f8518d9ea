"""Builds, updates and deletions of an index, with estimates and reports."""
