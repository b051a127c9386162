"""Attention memories that learn S2B: listeners, speakers, and pairs of both."""
