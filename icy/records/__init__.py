"""Results on disk: records, the store, and loading them as tables."""
