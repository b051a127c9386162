"""Configuration: requests, training settings, protocols and presets."""
