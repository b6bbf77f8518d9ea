"""Command line of hierindex."""
