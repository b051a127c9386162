"""R2D2: values learned from a replay of sequences, alone or as a pair (VDN)."""
