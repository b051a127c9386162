"""Agents that learn S2B: cores, learners, and what trains them."""
