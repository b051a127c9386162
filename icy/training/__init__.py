"""Training: the replicate engine, which trains many models as one batched program, and the protocols it follows."""
