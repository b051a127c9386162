"""Agents of the recall task: their training, their floors, and their kind of job."""
