"""FC2L that has learned other languages before, a plug-in for the intervention of results/iterated/experiments.md.

`FC2L-after-rot` and `FC2L-after-concat` start from the weights of one of five networks, which the seed chooses. Each
network learned 20 languages of the grammar, one after the other. `python -m results.iterated.pretrained` trains
the networks again; their weights are in the folder pretrained.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import icy
from icy.core.register import register_sender
from icy.core.registry import registry
from icy.core.streams import stream_key

FOLDER = Path(__file__).with_name("pretrained")
GRAMMARS = ("concat", "rot")
NETWORKS = 5
LANGUAGES = 20  # of each network
UPDATES = 4000  # with each language
FIRST_SEED = 5000
SETTING = {"meanings": "4x5", "word_length": 3, "hidden": 64}


def after(grammar: str, folder: Path):  # type: ignore[no-untyped-def]
    """Return a factory of FC2L with the weights of a network in `folder`."""
    built_in = registry.find("sender", "FC2L")

    def make(space, message_length, vocab_size, hidden_size):  # type: ignore[no-untyped-def]
        model = built_in.create(space, message_length, vocab_size, hidden_size)
        model.load_state_dict(load_file(folder / f"{grammar}-{torch.initial_seed() % NETWORKS}.safetensors"))
        return model

    return make


def pretrain(grammar: str) -> None:
    """Train the networks of a grammar."""
    seeds: dict[int, list[int]] = {number: [] for number in range(NETWORKS)}  # seeds that choose each network
    seed = FIRST_SEED
    while min(map(len, seeds.values())) < LANGUAGES:
        seeds[stream_key(seed, "weights") % NETWORKS].append(seed)
        seed += 1
    with tempfile.TemporaryDirectory() as place:
        weights = Path(place) / "weights"
        for turn in range(LANGUAGES):
            model = after(grammar, weights) if turn else "sender/FC2L"
            own = [seeds[number][turn] for number in range(NETWORKS)]
            options = {"target": 0.3, "max_updates": UPDATES, "keep_models": True, "workers": 1, **SETTING}
            found = icy.probe(model, grammar, seeds=own, out=Path(place) / f"{turn}", **options)  # type: ignore[arg-type]
            states = [found.model(grammar, seed).state_dict() for seed in own]  # before the weights change
            weights.mkdir(exist_ok=True)
            for number, state in enumerate(states):
                save_file(state, weights / f"{grammar}-{number}.safetensors")
            print(grammar, turn + 1, [round(record["accuracy"], 2) for record in found.records], flush=True)
        FOLDER.mkdir(exist_ok=True)
        for file in weights.iterdir():
            shutil.copy(file, FOLDER)


if __name__ == "__main__":
    for name in GRAMMARS:
        pretrain(name)
else:
    for name in GRAMMARS:
        register_sender(
            f"FC2L-after-{name}",
            description=f"FC2L that learned {LANGUAGES} languages of {name} before.",
            source="results/iterated/pretrained.py",
        )(after(name, FOLDER))
