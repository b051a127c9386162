"""Training: jobs, the replicate engine that trains many models as one batched program, pairs, and runners."""
