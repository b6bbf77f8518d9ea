"""A server of what the commands `query`, `outline` and `show` ask, and its client."""
