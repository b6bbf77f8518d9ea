"""The multilevel index in LanceDB."""
