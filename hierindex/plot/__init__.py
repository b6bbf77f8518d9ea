"""Figures of a tree, of its corpus and of evaluations, by Plotly; and a picture of a tree."""
