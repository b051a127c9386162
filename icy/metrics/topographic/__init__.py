"""Topographic similarity: the metric in `topsim`, distances between rows, and counts of pairs by their distances."""
