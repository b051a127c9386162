"""The game as environments of Gymnasium and PettingZoo, so that other trainers run on it unchanged."""
