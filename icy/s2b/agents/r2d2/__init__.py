"""R2D2: one or both players (VDN) learn action values from a replay buffer of sequences."""
