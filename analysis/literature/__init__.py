"""Published results as data, and agreement of measured results with them."""
