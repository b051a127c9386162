"""Agents of the recall task: their training, baselines and kind of job."""
