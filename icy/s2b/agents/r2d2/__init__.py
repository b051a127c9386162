"""R2D2: action values learned from a replay buffer of sequences, by one player or by both (VDN)."""
