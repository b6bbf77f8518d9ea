"""Answers to questions, written from the retrieved nodes."""
