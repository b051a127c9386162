"""Attention memories that learn S2B: listeners, speakers, and pairs of a speaker and a listener."""
