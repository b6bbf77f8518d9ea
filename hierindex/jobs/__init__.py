"""Documents to an index: what it holds and is to hold, builds, updates, deletions, estimates."""
