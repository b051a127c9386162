"""Networks for S2B as in the papers: observations, actions, players and training."""
