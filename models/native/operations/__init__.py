"""Handlers that lower each function that a model may call. Importing this package registers all of them."""

from . import cells, convolutions, shapes, sums, symbols, transformers

__all__ = ["cells", "convolutions", "shapes", "sums", "symbols", "transformers"]
