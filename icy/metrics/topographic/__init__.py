"""Topographic similarity."""
