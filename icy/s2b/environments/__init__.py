"""The game in the terms of Gymnasium and PettingZoo, so that other people's trainers run on it unchanged."""
