"""Recurrent PPO by icy and by sb3-contrib: `python -m benchmarks.s2b_library [--seeds 3] [--steps 60000]`.

Both train an LSTM of 64 units on the same game, with the posdis speaker: icy's `CoreLearning` on dealt episodes, and
sb3-contrib's RecurrentPPO in the environment S2B/Listener-v0. They see the same number of steps of the game, in batches
of about the same number of episodes, equally often, with the same discount and learning rate. Tokens are not permuted,
so that both learn the game in a minute. Prints a table.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from benchmarks.harness import print_table
from icy.s2b import GameSettings, evaluate
from icy.s2b.agents.memories.dealt_learning import DealtLearningSettings
from icy.s2b.agents.networks.listener import CoreLearning, CoreListener
from icy.s2b.agents.networks.network import NetworkSettings
from icy.s2b.environments.spaces import observed
from icy.s2b.game import Seen
from icy.s2b.players.interface import Action, Player, Seat
from results.pages import read_options

GAME = GameSettings(most=2, permutation=False)
SIZE, EPOCHS, BATCHES, RATE, ENTROPY = 64, 4, 4, 1e-3, 0.01
EPISODES = 64  # at the same time
STEPS_AT_ONCE = 32  # steps of each episode at once, in the library


class LibraryPlayer(Player):
    """Player that takes the most likely action of a model of sb3-contrib."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def begin(self, seat: Seat) -> None:
        """Reset the player for new episodes; see `Player.begin`."""
        super().begin(seat)
        self.state: Any = None

    def acting(self, seen: Seen) -> Action:
        """Return the model's action; its state is reset where an episode begins."""
        observation = observed(seen, "listener", self.seat.settings)
        found, self.state = self.model.predict(observation, self.state, seen.fresh.copy(), deterministic=True)
        return Action(decision=np.where(seen.may_decide, found, 0))


def by_icy(steps: int, seed: int) -> Player:
    """Return a listener that icy trained."""
    torch.manual_seed(seed)
    network = NetworkSettings(
        core="LSTM", options={"sizes": (SIZE,), "relu": False}, stimulus=(), joint=(), mask="none", head="policy"
    )
    learning = CoreLearning(
        CoreListener(GAME, network, own=True),
        GAME,
        DealtLearningSettings(
            updates=10**6, episodes=EPISODES, epochs=EPOCHS, minibatch=EPISODES // BATCHES, learning_rate=RATE,
            entropy=ENTROPY, warm_up=0, decay=0, clip_norm=0.5, baseline="value",
        ),
        seed=seed,
    )  # fmt: skip
    done = 0
    while done < steps:
        games = learning.batch(learning.updates)
        done += int(games.there.sum()) * (GAME.rounds + 2) - EPISODES
        learning.run(1)
    return learning.listener()


def by_library(steps: int, seed: int) -> Player:
    """Return a listener that sb3-contrib trained."""
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.env_util import make_vec_env

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about spaces of a type that it does not prefer
        games = make_vec_env("S2B/Listener-v0", EPISODES, seed=10**6 * (seed + 1), env_kwargs={"settings": GAME})
        model = RecurrentPPO(
            "MultiInputLstmPolicy", games, n_steps=STEPS_AT_ONCE, batch_size=EPISODES * STEPS_AT_ONCE // BATCHES,
            n_epochs=EPOCHS, learning_rate=RATE, gamma=0.0, ent_coef=ENTROPY, seed=seed, device="cpu",
            policy_kwargs={
                "lstm_hidden_size": SIZE, "net_arch": [], "shared_lstm": True, "enable_critic_lstm": False
            },
        )  # fmt: skip
        return LibraryPlayer(model.learn(steps))


WAYS: Mapping[str, Callable[[int, int], Player]] = {"icy": by_icy, "sb3-contrib": by_library}


def scores(way: str, steps: int, seeds: int) -> tuple[list[float], float]:
    """Train with each seed; return the accuracies over all decisions, and the mean processor time of training."""
    began, found = time.process_time(), []
    players = [WAYS[way](steps, seed) for seed in range(seeds)]
    took = (time.process_time() - began) / seeds
    for player in players:
        table = evaluate("posdis", player, GAME, episodes=500, seeds=[10**9]).table()
        found.append(float(table["zsct"][0] + table["support"][0]) / 2)
    return found, took


def main() -> None:
    """Train by both, and print the table."""
    given = read_options(__doc__, seeds=3, steps=60_000)
    torch.set_num_threads(1)
    rows = ((way, *scores(way, given.steps, given.seeds)) for way in WAYS)
    print_table(
        ["by", "accuracy in query and support, mean, %", "seconds of the processor"],
        ((way, ", ".join(f"{100 * one:.1f}" for one in found), f"{took:.1f}") for way, found, took in rows),
    )


if __name__ == "__main__":
    main()
