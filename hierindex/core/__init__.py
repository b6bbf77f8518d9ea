"""Clustering, segmentation and ranking: pure functions of arrays, without I/O or LlamaIndex.

A row is a node, `X` its unit vector. `M` is the membership of a level's rows in the groups that
become the next level.
"""
