"""Agents of the recall task: how they train, what they are compared with, and their kind of job."""
