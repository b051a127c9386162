"""The atlas: icy's own measurements of its zoo, and placement of new results in it."""
