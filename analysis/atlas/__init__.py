"""The atlas: icy's measurements of its own models, and the placement of new results among them."""
