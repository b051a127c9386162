"""Handlers that lower each function that a model may call. Importing this package registers all of them."""

from . import attentions, cells, convolutions, shapes, sums, symbols, transformers

__all__ = ["attentions", "cells", "convolutions", "shapes", "sums", "symbols", "transformers"]
