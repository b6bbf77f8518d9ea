"""Checks of a stored index against its invariants, and repairs that need no model."""
