"""Agents of the recall task: training, floors and kind of job."""
