"""Tables of results, and the published numbers to hold them against."""
