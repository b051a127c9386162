"""Tree reconstruction error (TRE): the metric in `tre`, the problem it solves, and its exact and trained solutions."""
