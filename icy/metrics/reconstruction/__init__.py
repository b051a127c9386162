"""Tree reconstruction error (TRE)."""
