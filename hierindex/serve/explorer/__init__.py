"""The explorer: a tree in a browser, served on this machine or in one file."""
