"""Published results, and how far measured ones agree with them."""
