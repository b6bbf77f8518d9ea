"""Checks of a stored index against its invariants, and repair of what needs no model."""
