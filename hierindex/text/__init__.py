"""Words: characters, sentences, the blocks that they stand in, and words that say little."""
