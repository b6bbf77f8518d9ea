"""Texts to unit vectors: the default model, on ONNX Runtime, and its window."""
