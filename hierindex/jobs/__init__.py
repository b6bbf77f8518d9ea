"""Builds, updates and deletions: what changes in an index, the work, estimates and reports."""
