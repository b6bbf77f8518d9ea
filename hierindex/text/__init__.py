"""Text processing: characters, sentences, blocks, and words by language."""
