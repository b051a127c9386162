"""Searches: choose models by their biases, with Optuna. `icy.search` is in the module `search` of this package."""
