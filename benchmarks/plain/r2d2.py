"""R2D2 with an LSTM in ordinary PyTorch: Q-learning from a replay buffer of sequences (Kapturowski et al. 2019).

A vector environment, `nn.LSTM` over whole sequences, and `torch.optim.Adam`. The settings and the network are from
MetaRG22. As in the paper of R2D2, learning does not cross the end of an episode: later steps of a sequence are masked.
"""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

import icy.s2b  # noqa: F401  # registers the environment

ACTORS, LENGTH, STRIDE, BURN_IN, BATCH, STEPS = 32, 20, 10, 10, 32, 3
PLACES, OBSERVATIONS_PER_UPDATE = 1560, 320  # steps of each actor in the replay buffer
DISCOUNT, PRIORITY, IMPORTANCE, ETA, TARGET_INTERVAL = 0.997, 0.9, 0.6, 0.9, 2_500


class Network(nn.Module):
    """Perceptrons for the stimulus and for all inputs, two LSTM layers with ReLU, and a dueling head."""

    def __init__(self, stimulus: int, others: int, actions: int) -> None:
        super().__init__()
        self.sees = _perceptron(stimulus, 512, 256, 128)
        self.joins = _perceptron(128 + others, 512, 256, 256)
        self.layers = nn.ModuleList([nn.LSTM(256, 256), nn.LSTM(256, 128)])
        self.value, self.advantage = nn.Linear(128, 1), nn.Linear(128, actions)
        self.stimulus = stimulus

    def forward(self, x: Tensor, states: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Return the action values [step, batch, action], and the states after the last step."""
        y, after = self.joins(torch.cat([self.sees(x[..., : self.stimulus]), x[..., self.stimulus :]], -1)), []
        for layer, state in zip(self.layers, states, strict=True):
            y, state = layer(y, state)
            y = y.relu()
            after.append(state)
        advantage = self.advantage(y)
        return self.value(y) + advantage - advantage.mean(-1, keepdim=True), after


def _perceptron(*sizes: int) -> nn.Sequential:
    layers = [nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in pairwise(sizes)]
    return nn.Sequential(*layers)


class R2D2:
    """Training of a listener of S2B; a call of `update` plays 320 observations and makes one update."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.env = gymnasium.make_vec(
            "S2B/Listener-v0", num_envs=ACTORS, vectorization_mode="vector_entry_point",
            observations="box", observe_mask=True,
        )  # fmt: skip
        seen, _ = self.env.reset(seed=seed)
        self.actions = int(self.env.single_action_space.n)  # type: ignore[attr-defined]
        self.earned, self.previous = np.zeros((ACTORS, 1), np.float32), np.zeros((ACTORS, self.actions), np.float32)
        self.fresh, self.x = np.ones(ACTORS, bool), self._inputs(seen)
        self.mask = seen["action_mask"].astype(bool)
        self.network = Network(3, self.x.shape[1] - 3, self.actions)
        self.target = deepcopy(self.network).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=6.25e-5, eps=1e-12)
        self.states = [(torch.zeros(1, ACTORS, n), torch.zeros(1, ACTORS, n)) for n in (256, 128)]
        self.explore = 0.4 ** (1 + 7 * np.arange(ACTORS) / (ACTORS - 1))
        self._make_replay()
        self.count = self.updates = 0
        while self.count < 2 * LENGTH:
            self.step()

    def _make_replay(self) -> None:
        shape = PLACES, ACTORS
        self.held: dict[str, Any] = {
            "x": np.zeros((*shape, self.x.shape[1]), np.float32),
            "mask": np.zeros((*shape, self.actions), bool),
            "action": np.zeros(shape, np.int64),
            "reward": np.zeros(shape, np.float32),
            "done": np.zeros(shape, bool),
            "fresh": np.zeros(shape, bool),
        }
        self.starts = [np.zeros((PLACES // STRIDE, ACTORS, n), np.float32) for n in (256, 256, 128, 128)]
        self.chances, self.highest = np.zeros((PLACES // STRIDE, ACTORS)), 1.0

    def _inputs(self, seen: dict[str, Any]) -> Any:
        parts = seen["observation"], self.earned, self.previous, seen["action_mask"]
        return np.concatenate(parts, 1).astype(np.float32)

    @torch.no_grad()
    def step(self) -> None:
        """Play one step in all environments, and store it."""
        if self.fresh.any():
            going = torch.as_tensor(~self.fresh, dtype=torch.float32)[:, None]
            self.states = [(h * going, c * going) for h, c in self.states]
        place = self.count % PLACES
        if place % STRIDE == 0:
            parts = [part for state in self.states for part in state]
            for start, part in zip(self.starts, parts, strict=True):
                start[place // STRIDE] = part[0].numpy()
            self.chances[place // STRIDE] = 0
        values, self.states = self.network(torch.as_tensor(self.x)[None], self.states)
        action = np.where(self.mask, values[0].numpy(), -np.inf).argmax(1)
        explores = self.rng.random(ACTORS) < self.explore
        drawn = np.where(self.mask, self.rng.random(self.mask.shape), -1).argmax(1)
        action = np.where(explores, drawn, action)
        seen, reward, done, _, _ = self.env.step(action)
        step = {"x": self.x, "mask": self.mask, "action": action, "reward": reward, "done": done, "fresh": self.fresh}
        for name, value in step.items():
            self.held[name][place] = value
        self.count += 1
        begun = self.count - LENGTH
        if begun >= 0 and begun % STRIDE == 0:
            self.chances[begun % PLACES // STRIDE] = self.highest**PRIORITY
        self.fresh = self.held["done"][place] & ~self.fresh  # the environment resets at the next step
        self.earned = (reward * ~self.fresh)[:, None].astype(np.float32)
        self.previous = np.eye(self.actions, dtype=np.float32)[action] * ~self.fresh[:, None]
        self.x, self.mask = self._inputs(seen), seen["action_mask"].astype(bool)

    def update(self) -> None:
        """Play the steps between two updates, and make an update on sequences from the replay buffer."""
        for _ in range(OBSERVATIONS_PER_UPDATE // ACTORS):
            self.step()
        chances = self.chances.ravel()
        rows = self.rng.choice(len(chances), BATCH, p=chances / chances.sum())
        begun, actor = rows // ACTORS, rows % ACTORS
        weights = ((chances > 0).sum() * chances[rows] / chances.sum()) ** -IMPORTANCE
        places = (begun * STRIDE + np.arange(LENGTH)[:, None]) % PLACES
        held = {name: torch.as_tensor(values[places, actor]) for name, values in self.held.items()}
        parts = [torch.as_tensor(start[begun, actor])[None] for start in self.starts]
        errors, counted = self._errors(held, [(parts[0], parts[1]), (parts[2], parts[3])])
        loss = 0.5 * (torch.as_tensor(weights / weights.max()).float() * counted * errors.square()).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), 5.0)
        self.optimizer.step()
        size = (errors.detach().abs() * counted).numpy()
        priority = ETA * size.max(0) + (1 - ETA) * size.sum(0) / counted.numpy().sum(0).clip(1)
        self.highest = max(self.highest, float(priority.max()))
        self.chances.ravel()[rows] = priority.clip(1e-6) ** PRIORITY
        self.updates += 1
        if self.updates % TARGET_INTERVAL == 0:
            self.target.load_state_dict(self.network.state_dict())

    def _errors(self, held: dict[str, Tensor], start: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Return the errors of the values after the burn-in, and a mask of the errors that count."""
        with torch.no_grad():
            _, state = self.network(held["x"][:BURN_IN], start)
            later = self.target(held["x"], start)[0][BURN_IN:]
        values, _ = self.network(held["x"][BURN_IN:], state)
        mask, action, reward, done = (held[name][BURN_IN:] for name in ("mask", "action", "reward", "done"))
        with torch.no_grad():
            best = values.masked_fill(~mask, -torch.inf).argmax(-1, keepdim=True)
            worth = later.gather(-1, best).squeeze(-1)
            targets, complete = worth, torch.ones_like(done)
            for _ in range(STEPS):
                following = reward[:-1] + DISCOUNT * targets[1:] * ~done[:-1]
                targets = torch.where(done, reward, torch.cat([following, worth[-1:]]))
                complete = done | torch.cat([complete[1:], torch.zeros_like(complete[:1])])
            same = ~held["fresh"][1:].cummax(0).values[BURN_IN - 1 :]  # the sequence's first episode
        return targets - values.gather(-1, action[..., None]).squeeze(-1), complete & same
