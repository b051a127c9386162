"""The papers' networks for S2B: what they observe, what they may do, and how they play and learn."""
