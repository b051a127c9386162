"""Tree reconstruction error (TRE): the metric in `tre`, its problem, and the exact and trained solutions."""
