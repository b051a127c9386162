"""Agents that learn S2B: cores, learners and their training."""
