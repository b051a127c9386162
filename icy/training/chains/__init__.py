"""Chains of learners: iterated learning."""
