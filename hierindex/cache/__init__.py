"""What is kept beside an index: vectors, and texts of models and summarisers."""
