"""Experiment trackers: TensorBoard, MLflow, Weights & Biases."""
