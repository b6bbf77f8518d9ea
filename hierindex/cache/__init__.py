"""The cache of an index: readings of files, vectors of texts, completions and summaries."""
