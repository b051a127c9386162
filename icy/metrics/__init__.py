"""Measures of compositionality, on plain arrays of meanings and messages. Nothing here knows of training."""

from .topographic import topsim

__all__ = ["topsim"]
