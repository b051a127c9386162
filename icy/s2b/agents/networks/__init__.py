"""The papers' networks for S2B: observations, actions, players and training."""
