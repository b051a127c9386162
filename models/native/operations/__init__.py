"""What lowers each function that a model may call: importing this package registers all of them."""

from . import cells, convolutions, shapes, sums, symbols, transformers

__all__ = ["cells", "convolutions", "shapes", "sums", "symbols", "transformers"]
