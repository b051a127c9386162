"""Configuration: specs, training settings, protocols and presets."""
