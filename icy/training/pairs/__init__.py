"""Training a sender and a receiver together."""
