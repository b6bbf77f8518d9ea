"""The algorithm: arrays in, arrays out.

numpy, scipy and scikit-learn, umap where it pays. No input or output, no clock, no
global random state, nothing of LlamaIndex.

A row is a node, `X` its unit vector, `M` the membership of a level's rows in the next
level's groups.
"""
