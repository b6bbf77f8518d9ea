"""Groups of texts in, one summary per group out, in order."""
