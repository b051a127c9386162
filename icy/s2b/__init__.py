"""S2B, the symbolic behaviour benchmark: meta-referential games (MetaRG22, MetaRG24)."""
