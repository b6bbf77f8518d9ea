"""The cache of an index: vectors of texts, completions of models and summaries."""
