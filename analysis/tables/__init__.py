"""Tables of results, and reference values in them."""
