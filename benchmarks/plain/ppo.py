"""PPO with an attention memory in ordinary PyTorch: whole episodes are played step by step, then learned from.

The memory has an entry per game, dimension and token. All environments begin an episode at the same time.
"""

from __future__ import annotations

import math

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import icy.s2b  # noqa: F401  # registers the environment

EPISODES, EPOCHS, MINIBATCH, CLIP, ENTROPY, RATE, ALIGNMENT_TIMES = 128, 2, 32, 0.2, 0.01, 1e-3, 20
DIMENSIONS, TOKENS, SYMBOLS, OCTAVES, TOKEN, HEADS, WIDTH, HIDDEN = 3, 3, 7, 6, 16, 2, 32, 64
ENTRY = 1 + 2 * OCTAVES + TOKEN


class Memory(nn.Module):
    """Attention over the entries of earlier games, and a perceptron that compares the result with the present entry."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, TOKEN)
        self.query, self.key = nn.Linear(ENTRY, HEADS * WIDTH), nn.Linear(ENTRY, HEADS * WIDTH, bias=False)
        self.nothing, self.empty = nn.Parameter(torch.zeros(HEADS)), nn.Parameter(torch.zeros(HEADS, ENTRY))
        self.judge = nn.Sequential(
            nn.Linear(ENTRY * (1 + 2 * HEADS), HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
            nn.Linear(HIDDEN, 1),
        )  # fmt: skip
        self.alignment = nn.Parameter(torch.zeros(DIMENSIONS, TOKENS))
        self.register_buffer("periods", math.pi / 2 * 2.0 ** torch.arange(OCTAVES))

    def entries(self, stimuli: Tensor, messages: Tensor) -> Tensor:
        """Return an entry per pair of dimension and token [batch, pair, game, ENTRY]."""
        phases = stimuli[..., None] * self.periods
        numbers = torch.cat([stimuli[..., None], phases.sin(), phases.cos()], -1)
        tokens = self.embed(messages)
        shape = *stimuli.shape, TOKENS, -1
        pairs = torch.cat([numbers[..., None, :].expand(shape), tokens[..., None, :, :].expand(shape)], -1)
        return pairs.flatten(2, 3).transpose(1, 2)

    def forward(self, now: Tensor, stored: Tensor, known: Tensor | None) -> Tensor:
        """Return the logits of "same" and "different" [batch, game, 2]; `known` masks entries, [game, stored]."""
        query = self.query(now).unflatten(-1, (HEADS, WIDTH)).transpose(-2, -3)
        key = self.key(stored).unflatten(-1, (HEADS, WIDTH)).transpose(-2, -3)
        scores = query @ key.mT / math.sqrt(WIDTH)
        if known is not None:
            scores = scores.masked_fill(~known, -torch.inf)
        nothing = self.nothing.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
        weights = torch.cat([nothing, scores], -1).softmax(-1)
        read = weights[..., 1:] @ stored[:, :, None] + weights[..., :1] * self.empty[:, None]
        read = read.transpose(-2, -3)
        compared = torch.cat([now, read.flatten(-2), (read - now[..., None, :]).abs().flatten(-2)], -1)
        agree = self.judge(compared).squeeze(-1).unflatten(1, (DIMENSIONS, TOKENS))
        by_dimension = (agree * self.alignment.softmax(1)[..., None]).sum(2)
        together = F.logsigmoid(by_dimension).sum(1)
        odds = together - torch.log(-torch.expm1(together.clamp(max=-1e-6)))
        return torch.stack([odds, torch.zeros_like(odds)], -1)


class PPO:
    """Training of a listener of S2B; a call of `update` plays 128 episodes and makes 8 steps of Adam."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.env = gymnasium.make_vec(
            "S2B/Listener-v0", num_envs=EPISODES, vectorization_mode="vector_entry_point", messages="tokens"
        )
        self.env.reset(seed=seed)
        self.memory = Memory()
        slow = [p for name, p in self.memory.named_parameters() if name != "alignment"]
        groups = [{"params": slow}, {"params": [self.memory.alignment], "lr": RATE * ALIGNMENT_TIMES}]
        self.optimizer = torch.optim.Adam(groups, lr=RATE)

    @torch.no_grad()
    def play(self) -> dict[str, Tensor]:
        """Play an episode in every environment; return the values of each game [episode, game, ...]."""
        seen, _ = self.env.reset()
        there, games = np.ones(EPISODES, bool), []
        stored = torch.zeros(EPISODES, DIMENSIONS * TOKENS, 0, ENTRY)
        while there.any():
            if games:
                seen, *_ = self.env.step(np.zeros(EPISODES, int))  # after the feedback, the next game begins
            seen, *_ = self.env.step(np.zeros(EPISODES, int))  # the speaker's message arrives
            game = {name: torch.as_tensor(seen[name])[:, None] for name in ("stimulus", "message", "phase")}
            logs = self.memory(self.memory.entries(game["stimulus"], game["message"]), stored, None).log_softmax(-1)
            decided = torch.multinomial(logs[:, 0].exp(), 1)
            feedback, reward, done, _, _ = self.env.step(decided[:, 0].numpy())
            game["feedback"] = torch.as_tensor(feedback["stimulus"])[:, None]
            game |= {"decided": decided, "log": logs[:, 0].gather(1, decided), "there": torch.as_tensor(there)[:, None]}
            game["reward"] = torch.as_tensor(reward, dtype=torch.float32)[:, None]
            games.append(game)
            stored = torch.cat([stored, self.memory.entries(game["feedback"], game["message"])], 2)
            there = there & ~done
        return {name: torch.cat([game[name] for game in games], 1) for name in games[0]}

    def update(self) -> None:
        """Play episodes, and learn from them in minibatches."""
        games = self.play()
        there, query = games["there"], games["phase"] == 1
        gain = games["reward"].clone()
        for phase in (query, ~query):
            gain -= gain[phase & there].mean() * phase
        gain = gain / gain[there].std()
        for _ in range(EPOCHS):
            for rows in torch.randperm(EPISODES).split(MINIBATCH):
                longest = int(there[rows].sum(1).max())
                self._learn({name: value[rows, :longest] for name, value in (games | {"gain": gain}).items()})

    def _learn(self, some: dict[str, Tensor]) -> None:
        count = some["there"].shape[1]
        now = self.memory.entries(some["stimulus"], some["message"])
        stored = self.memory.entries(some["feedback"], some["message"])
        logs = self.memory(now, stored, torch.ones(count, count, dtype=torch.bool).tril(-1)).log_softmax(-1)
        ratio = (logs.gather(-1, some["decided"][..., None]).squeeze(-1) - some["log"]).exp()
        objective = torch.minimum(ratio * some["gain"], ratio.clamp(1 - CLIP, 1 + CLIP) * some["gain"])
        surprise = -(logs.exp() * logs).sum(-1)
        loss = -(objective + ENTROPY * surprise)[some["there"]].mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.memory.parameters(), 1.0)
        self.optimizer.step()
