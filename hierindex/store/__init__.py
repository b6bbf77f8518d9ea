"""The index in LanceDB: a table with all levels of a tree."""
