"""Figures of a tree and of its corpus, by Plotly."""
